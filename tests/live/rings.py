#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rings as the live agent writes them, of a job that never ran.
rings.py DIR RANKS STEPS [KEY=VALUE...]: late=RANK by=MS from=STEP calls=N (per step) group=N (ranks of a
communicator; 0: all) noise=MS step=MS slow=COMM (whose wire takes twice as long) seed=N gpu=1 (NVML's figures)"""
import os
import random
import sys

START_NS = 1794770000000000000


def main():
    directory, ranks, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    p = {"late": -1, "by": 40, "from": 0, "calls": 4, "group": 0, "noise": 0.5, "step": 100, "slow": -1, "seed": 1, "gpu": 0}
    p.update((k, type(p[k])(v)) for k, v in (a.split("=") for a in sys.argv[4:]))
    group = p["group"] or ranks
    rng = random.Random(p["seed"])
    files = []
    for r in range(ranks):
        folder = f"{directory}/node{r // 8:03d}-r{r}-{4000 + r}"
        os.makedirs(folder)
        with open(folder + "/about.json", "w") as f:
            f.write(f'{{"schema": "knee.live/1", "agent": "0.1.0", "pid": {4000 + r}, "rank": {r}, "world": {ranks}, '
                    f'"local_rank": {r % 8}, "start_ns": {START_NS}, "host": "node{r // 8:03d}", "source": "nccl", '
                    f'"nccl": "2.28.9", "profiler_api": 5, "gpu": "NVIDIA H200", "cupti": "sampled", "kernel_times": true}}\n')
        files.append(([], []))
    now = START_NS
    for step in range(steps):
        late_ms = p["by"] if step >= p["from"] else 0
        waits = []
        for r in range(ranks):
            own = abs(rng.gauss(0, p["noise"])) + (late_ms if r == p["late"] else 0)
            waits.append(own)
        length = p["step"] + (late_ms if p["late"] >= 0 else 0)
        end = now + int(1e6 * length)
        for first in range(0, ranks, group):
            members = range(first, min(first + group, ranks))
            last = max(waits[r] for r in members)
            comm = first // group
            for c in range(p["calls"]):
                wire = 2_000_000 * (2 if comm == p["slow"] else 1)
                for r in members:
                    dur = wire + (int(1e6 * (last - waits[r])) if c == 0 else rng.randrange(20000))
                    files[r][1].append(
                        f'{{"comm": "{0xabc000 + comm:x}", "seq": {step * p["calls"] + c}, "op": "AllReduce", "bytes": {1 << 25}, '
                        f'"start_ns": {now + c * 1000000}, "dur_ns": {dur}, "step": {step}, "sn": {step * p["calls"] + c}, '
                        f'"algo": "RING", "proto": "SIMPLE", "channels": 16, "rank": {r - first}, "n": {len(members)}}}\n')
        for r in range(ranks):
            more = (', "gpu_s": 2.0, "energy_j": 1200.0, "sm_mhz": 1980, "throttle": 0, "temp_c": 55, "power_w": 600.0'
                    if p["gpu"] and step % 20 == 0 else "")
            files[r][0].append(
                f'{{"t_ns": {end}, "step": {step}, "steps": 1, "step_s": {length / 1e3:.9f}, "calls": {p["calls"]}, '
                f'"bytes": {p["calls"] << 25}, "comm": "{0xabc000 + r // group:x}", "seq": {step * p["calls"]}, "sampled": false{more}, '
                f'"overhead": 0.0002, "cpu": 0.001, "every": 128, "left_out": 0}}\n')
        now = end
    for r in range(ranks):
        folder = f"{directory}/node{r // 8:03d}-r{r}-{4000 + r}"
        for name, lines in zip(("steps.jsonl", "calls.jsonl"), files[r]):
            with open(f"{folder}/{name}", "w") as f:
                f.write("".join(lines))


main()
