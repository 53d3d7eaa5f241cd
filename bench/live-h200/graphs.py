# SPDX-License-Identifier: MIT
"""CUPTI comes and goes around CUDA graphs: graphs.py SHIM CASE. Which cases break a replay?"""
import ctypes
import sys

import torch

shim = ctypes.CDLL(sys.argv[1])
for name in ("ablate_on", "ablate_off", "ablate_detach"):
    getattr(shim, name).restype = ctypes.c_int64
case = sys.argv[2]
a = torch.randn(1024, 1024, device="cuda")


def work():
    y = a
    for _ in range(20):
        y = (y @ a).clamp_(-1, 1)
    return y


def capture():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        g.result = work()
    return g


def replay(g, n=50):
    for _ in range(n):
        g.replay()


g = capture()
replay(g)
torch.cuda.synchronize()
for i in range(5):
    if case == "untouched":  # it is there, but not launched while CUPTI is
        print("on", shim.ablate_on(6)), work(), torch.cuda.synchronize()
        shim.ablate_off()
    elif case == "recorded":  # launched while CUPTI records; all done before it leaves
        shim.ablate_on(6), replay(g), torch.cuda.synchronize(), shim.ablate_off()
    elif case == "attached":  # launched while CUPTI is there, but records nothing
        shim.ablate_on(6), shim.ablate_off(), replay(g), torch.cuda.synchronize()
    elif case == "captured":  # made while CUPTI records
        shim.ablate_on(6)
        g = capture()
        shim.ablate_off()
    elif case == "calls":  # launched while only calls of the host are recorded
        shim.ablate_kind(5), shim.ablate_kind(4), replay(g), torch.cuda.synchronize(), shim.ablate_off()
    torch.cuda.synchronize()
    print("detach", shim.ablate_detach())
    replay(g)
    torch.cuda.synchronize()
print(case, "goes on")
