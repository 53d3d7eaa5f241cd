#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How to record a training loop for `knee trace`: every rank, a few steps, one file each.
Run it as it is, or copy the lines between the marks into your own loop.

    torchrun --nproc-per-node 2 examples/record_torch.py --out runs
    knee trace runs

--late RANK makes one rank sleep before its backward pass, to see that knee names it."""
import argparse, os, time, torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

parser = argparse.ArgumentParser()
parser.add_argument("--out", default="runs")
parser.add_argument("--backend", default="nccl" if torch.cuda.is_available() else "gloo")
parser.add_argument("--late", type=int, default=-1)
parser.add_argument("--late-ms", type=float, default=30)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--hidden", type=int, default=1024)
parser.add_argument("--no-marks", action="store_true", help="record without prof.step()")
options = parser.parse_args()
rank = int(os.environ.get("RANK", 0))
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count()) if options.backend == "nccl" else torch.device("cpu")
torch.set_num_threads(2)
dist.init_process_group(options.backend)
model = torch.nn.Sequential(*[torch.nn.Linear(options.hidden, options.hidden) for _ in range(8)]).to(device)
model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=8)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.randn(256, options.hidden, device=device)


def step():
    loss = model(data).square().mean()
    if rank == options.late:
        time.sleep(options.late_ms / 1000)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


# ---- from here ----
os.makedirs(options.out, exist_ok=True)
activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.type == "cuda" else [])
recording = profile(
    activities=activities,  # CPU too: it has the launches, which tell host-bound from idle
    schedule=None if options.no_marks else schedule(wait=2, warmup=2, active=options.steps),  # the same steps everywhere
    record_shapes=True,  # sizes of operations; with_stack=True costs far more and is not needed
    on_trace_ready=lambda p: p.export_chrome_trace(f"{options.out}/rank{rank}.json.gz"),
)
if options.no_marks:
    for _ in range(4):
        step()
with recording as prof:
    for _ in range(options.steps if options.no_marks else options.steps + 4):
        began = time.perf_counter()
        step()
        if device.type == "cuda":
            torch.cuda.synchronize()  # only so that this file can print its own step time
        if not options.no_marks:
            prof.step()  # marks the steps: knee reads ProfilerStep#N
        took = time.perf_counter() - began
# ---- to here ----
print(f"rank {rank}: last step {1000 * took:.2f} ms", flush=True)
dist.destroy_process_group()
