# SPDX-License-Identifier: MIT
"""One rank of a real DDP or FSDP job, the way people write them: nothing in it knows of knee.

It times its steps between CUDA synchronisations, with --suspect it is late (in the host, on the GPU, in its loader or in
the backward pass), with --trace it has PyTorch's profiler record three steps in the middle. Prints one line of JSON."""
import argparse
import ctypes
import json
import os
import random
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule

p = argparse.ArgumentParser()
p.add_argument("--hidden", type=int, default=2048)
p.add_argument("--layers", type=int, default=6)
p.add_argument("--seq", type=int, default=512)
p.add_argument("--batch", type=int, default=4)
p.add_argument("--steps", type=int, default=200)
p.add_argument("--fsdp", action="store_true")
p.add_argument("--suspect", default="none", choices=["none", "host", "gpu", "loader", "backward"])
p.add_argument("--who", type=int, default=1)
p.add_argument("--ms", type=float, default=30)
p.add_argument("--trace", default="")
p.add_argument("--pause", default="", help="file that is there in every second block of steps")
p.add_argument("--block", type=int, default=40)
p.add_argument("--workers", type=int, default=-1, help="a real DataLoader with so many processes")
p.add_argument("--ablate", default="", help="ablate.so: what of the agent costs what, in blocks of steps in one job")
p.add_argument("--parts", default="masks,attached,recording")
p.add_argument("--rounds", type=int, default=12)
p.add_argument("--sync", type=int, default=1, help="wait for the GPU after every step, as loss.item() does")
o = p.parse_args()
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(0)
torch.manual_seed(0)
dist.init_process_group("nccl", rank=rank, world_size=world)
late = o.who in (rank, -1)


class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        if o.suspect == "backward" and late:
            time.sleep(o.ms / 1e3)
        return g


class Block(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(h), nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, h, layers):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Block(h) for _ in range(layers)), nn.Linear(h, 256)

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i == len(self.blocks) // 2:
                x = Slow.apply(x)
        return self.head(x)


net = Net(o.hidden, o.layers).cuda().bfloat16()
if o.fsdp:
    from torch.distributed.fsdp import fully_shard
    for block in net.blocks:
        fully_shard(block)
    fully_shard(net)
    model = net
else:
    model = nn.parallel.DistributedDataParallel(net, device_ids=[0])
opt = torch.optim.SGD(model.parameters(), lr=1e-3)
batch_now = o.batch
x = torch.randn(o.batch * (2 if o.ablate else 1), o.seq, o.hidden).bfloat16().pin_memory()
heavy = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16) if o.suspect == "gpu" and late else None


class Batches(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        if o.suspect == "loader" and late:
            time.sleep(o.ms / 1e3)
        return x[:batch_now].clone()


batches = None
if o.workers >= 0:
    batches = iter(torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=o.workers, pin_memory=True))


def load():
    if batches:
        return next(batches).cuda(non_blocking=True)
    if o.suspect == "loader" and late:
        time.sleep(o.ms / 1e3)
    return x[:batch_now].cuda(non_blocking=True)


def step():
    with torch.profiler.record_function("enumerate(DataLoader)#job.__next__"):
        batch = load()
    loss = model(batch).float().square().mean()
    if o.suspect == "host" and late:
        time.sleep(o.ms / 1e3)
    if heavy is not None:
        for _ in range(int(o.ms * 4)):
            heavy.copy_((heavy @ heavy).clamp_(-1, 1))
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    if o.sync:
        torch.cuda.synchronize()


def timed(count):
    took = []
    for _ in range(count):
        t = time.perf_counter()
        step()
        took.append(time.perf_counter() - t)
    return took


def record(path):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=3)) as prof:
        for _ in range(5):
            step()
            prof.step()
    prof.export_chrome_trace(path)


def blocks():
    """Steps with the agent and steps with it paused, in turn; the first quarter of a block does not count."""
    halves = ([], [])
    for i in range(max(2, o.steps // o.block)):
        dist.barrier()
        if rank == 0 and i % 2:
            open(o.pause, "w").close()
        elif rank == 0 and os.path.exists(o.pause):
            os.remove(o.pause)
        time.sleep(0.8)
        dist.barrier()
        halves[i % 2].append(timed(o.block)[o.block // 4:])
    return halves


def micro():
    """Microseconds of the host for one launch."""
    t = torch.zeros(1024, device="cuda")
    best = 1e9
    for _ in range(5):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(1000):
            t.add_(1)
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - began)
    return best * 1e3


KINDS = (1, 2, 4, 5, 10, 22)  # copies, fills, driver, runtime, kernels, copies between GPUs


class Ablation:
    """Blocks of steps in one job, in an order that chance chose, each in one state of the agent's parts."""

    def __init__(self):
        self.shim = ctypes.CDLL(o.ablate)
        for name in ("ablate_calls", "ablate_took_ns", "ablate_on", "ablate_off", "ablate_detach", "ablate_records"):
            getattr(self.shim, name).restype = ctypes.c_int64
        self.chance = random.Random(1)
        self.took, self.calls, self.spent, self.micros, self.kept = {}, {}, {}, {}, {}

    def size(self, i):
        """Another batch in each round: where processes take turns on a GPU a step lasts whole turns, and what adds a little may add a turn
        or nothing. Over many lengths of step that evens out."""
        global batch_now
        batch_now = o.batch * (16 + i % 8) // 16

    def spend(self, name, ns):
        self.spent.setdefault(name, []).append(ns)

    def block(self, name):
        torch.cuda.synchronize()
        dist.barrier()
        timed(3)
        self.shim.ablate_calls(), self.shim.ablate_took_ns()
        self.took.setdefault(name, []).append(timed(o.block))
        self.calls.setdefault(name, []).append((self.shim.ablate_calls(), self.shim.ablate_took_ns()))

    def ask(self, name):
        dist.barrier()
        if rank == 0:
            self.micros.setdefault(name, []).append(micro())
        dist.barrier()

    def masks(self):
        self.ask("never attached")
        for i in range(o.rounds):
            self.size(i)
            for name, mask in self.chance.sample([("mask 0", 0), ("mask 0 again", 0), ("calls", 7), ("calls and kernels", 71)], 4):
                self.shim.ablate_mask(mask)
                self.block(name)
        self.shim.ablate_mask(0)

    def attached(self):
        for i in range(o.rounds):
            self.size(i)
            torch.cuda.synchronize()
            self.spend("attach", self.shim.ablate_on(6))
            self.spend("off", self.shim.ablate_off())
            self.block("attached, off")
            if i < 2:
                self.ask("attached, off")
            torch.cuda.synchronize()
            self.spend("detach", self.shim.ablate_detach())
            self.block("detached")
            if i < 2:
                self.ask("detached")

    # name: kinds of records, asked for them every so many ms, buffers zeroed by us
    STATES = {
        "attached, off again": (0, 0, 0),
        "kernels, copies": (4, 0, 0),
        "with host calls": (6, 0, 0),
        "asked every 20 ms": (6, 20, 0),
        "asked, zeroed by us": (6, 20, 1),
        "asked every 250 ms": (6, 250, 1),
    }

    def recording(self):
        self.shim.ablate_on(0)
        for i in range(o.rounds):
            self.size(i)
            for name, (kinds, every, zeroed) in self.chance.sample(list(self.STATES.items()), len(self.STATES)):
                code = self.shim.ablate_zeroed(zeroed)
                self.spend("on " + name, self.shim.ablate_on(kinds))
                self.shim.ablate_ask_every(every)
                self.shim.ablate_count(int(i == 0))
                for kind in (-1, *KINDS):
                    self.shim.ablate_records(kind)
                self.block(name)
                self.shim.ablate_ask_every(0)
                if i < 2:
                    self.ask(name)
                self.spend("off " + name, self.shim.ablate_off())
                if i == 0:
                    self.kept[name] = {"zeroed says": code, "steps": o.block + 3, "records": {k: self.shim.ablate_records(k) for k in (-1, *KINDS)}}


def ablate():
    a = Ablation()
    for part in o.parts.split(","):
        getattr(a, part)()
    return {"took": a.took, "calls": a.calls, "spent_ns": a.spent, "launch_us": a.micros, "records": a.kept}


for _ in range(5):
    step()
torch.cuda.synchronize()
dist.barrier()
out = {"rank": rank}
if o.ablate:
    out.update(ablate())
elif o.pause:
    out["on"], out["off"] = blocks()
else:
    took = timed(o.steps // 2)
    if o.trace:
        record(f"{o.trace}/rank{rank}.json")
    took += timed(o.steps - o.steps // 2)
    took.sort()
    out.update(steps=len(took), median_s=took[len(took) // 2], mean_s=sum(took) / len(took),
               trimmed_s=sum(took[:len(took) * 95 // 100]) / (len(took) * 95 // 100))
torch.cuda.synchronize()
dist.barrier()
print(json.dumps(out), flush=True)
dist.destroy_process_group()
