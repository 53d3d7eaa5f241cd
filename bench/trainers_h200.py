#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bench/trainers_h200.py KNEE FOLDER: on a machine with a GPU and torch, what tests/python can only try on a CPU.

1. knee.torch.trace_handler around a small model on the GPU: three lines, and what a recorded step costs in time.
2. knee run -- python (this file again): the exit status, and the verdict of the agent's recording.
3. A job whose rank 1 never comes to an all-reduce, under knee run, with NCCL's watchdog at 20 s: where it hung.
Run with PYTHONPATH=python. Nothing is fetched."""
import os, subprocess, sys, time
from pathlib import Path


def train(folder, steps=40):
    import torch
    import knee

    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    times = []
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=10, warmup=2, active=3, repeat=1),
                                on_trace_ready=knee.torch.trace_handler(folder)) as prof:
        for _ in range(steps):
            start = time.perf_counter()
            optimizer.zero_grad()
            model(torch.randn(2048, 4096, device="cuda")).sum().backward()
            optimizer.step()
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
            prof.step()
    usual = sorted(times[:10] + times[20:])[len(times) // 3]
    print(f"step {1e3 * usual:.2f} ms, recorded step {1e3 * times[13]:.2f} ms")


def hang(rank):
    import datetime
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(0)
    dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20))
    value = torch.ones(1024, device="cuda")
    for step in range(5):
        if rank == 1 and step == 3:
            time.sleep(120)
        dist.all_reduce(value)
    torch.cuda.synchronize()


if __name__ == "__main__":
    if sys.argv[1] == "--train":
        train(sys.argv[2])
    elif sys.argv[1] == "--hang":
        hang(int(os.environ["RANK"]))
    else:
        knee_program, folder = sys.argv[1], Path(sys.argv[2])
        me = [sys.executable, __file__]
        for name, words in (("trace_handler", [*me, "--train", str(folder / "runs")]),
                            ("knee run", [knee_program, "run", "--dir", str(folder / "run"), "--", *me, "--train", str(folder / "runs2")]),
                            ("knee run, a job that hangs", [knee_program, "run", "--dir", str(folder / "hang"), "--", sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__, "--hang"])):
            done = subprocess.run(words, capture_output=True, text=True, timeout=300)
            print(f"== {name}: exit status {done.returncode}\n{done.stdout}{done.stderr[-3000:]}")
