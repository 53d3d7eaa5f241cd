# SPDX-License-Identifier: MIT
"""One rank of a job whose step is a CUDA graph with an all-reduce in it; in the second half one all-reduce more outside of it.
With --trace PyTorch's profiler records three steps of the second half."""
import argparse
import json
import os
import time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

p = argparse.ArgumentParser()
p.add_argument("--steps", type=int, default=300)
p.add_argument("--trace", default="")
p.add_argument("--keep", action="store_true", help="the graph outlives the process group: NCCL then never ends")
o = p.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=rank, world_size=world)
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
grads = torch.randn(4 << 20, device="cuda", dtype=torch.bfloat16)
more = torch.randn(1 << 20, device="cuda", dtype=torch.bfloat16)


def work():
    y = a
    for _ in range(20):
        y = (y @ a).clamp_(-1, 1)
    grads.mul_(0.5)
    dist.all_reduce(grads)
    return y


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        work()
torch.cuda.current_stream().wait_stream(side)
torch.cuda.synchronize()
dist.barrier()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, capture_error_mode="thread_local"):
    out = work()
torch.cuda.synchronize()
dist.barrier()


def steps(count, outside):
    took = []
    for _ in range(count):
        t = time.perf_counter()
        graph.replay()
        if outside:
            dist.all_reduce(more)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - t)
    return sorted(took)[count // 2]


first = steps(o.steps // 2, False)
second = steps(o.steps // 2, True)
if o.trace:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        steps(3, True)
    prof.export_chrome_trace(f"{o.trace}/rank{rank}.json")
    steps(o.steps // 4, True)
print(json.dumps({"rank": rank, "median_s": first, "with_one_outside_s": second, "finite": bool(torch.isfinite(out).all())}), flush=True)
if not o.keep:
    graph.reset()
dist.destroy_process_group()
