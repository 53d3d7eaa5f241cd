#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Speaks the protocol of NCCL's RAS service for a job that never ran: ras.py RANKS [late=R] [hang=R|all] [dead=R] [old=1]
[noise=1] [ends=N] [other=1] [damaged=1]. ends: it breaks off after N lines; other: it is another service; damaged: what it says is no JSON; many=N: N further rows of rank 1. Prints its port. Every rank enqueues 4 collectives a step of 100 ms; a late one 60 ms after the others; from the
start on nothing moves with hang (rank R has not enqueued the last step's)."""
import json
import random
import socket
import sys
import time

ranks = int(sys.argv[1])
p = dict(a.split("=") for a in sys.argv[2:])
began = time.time() - 60


def calls(rank, now):
    step = int((now - began) / 0.1)
    late = 0.06 if str(rank) == p.get("late") else 0.05 * random.Random(rank * 100003 + step).random() if "noise" in p else 0
    if "hang" in p:
        return 400 - (4 if str(rank) == p["hang"] else 0)
    return 4 * int((now - began - late) / 0.1)


def status():
    now = time.time()  # of all ranks: a machine that is busy between two of them makes nobody late
    missing = [r for r in range(ranks) if str(r) == p.get("dead")]
    row = lambda r: {"rank": r, "host": f"node{r // 8}", "pid": 4000 + r, "cuda_dev": r % 8, "nvml_dev": r % 8}
    there = [dict(row(r), status={"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False},
                  collective_counts={"Broadcast": 1, "Reduce": 0, "AllGather": 0, "ReduceScatter": 0, "AllReduce": calls(r, now)})
             for r in range(ranks) if r not in missing]
    gone = [dict(row(r), status={"unresponsive": True, "considered_dead": True}) for r in missing]
    comm = {"hash": "0x1f2e3d4c5b6a7988", "secondary_hash": "0xca531c9cdbb89992:0x22faab754609c2e8", "size": ranks, "ranks_count": len(there),
            "missing_ranks_count": len(gone), "ranks": there, "missing_ranks": gone}
    there += [{"rank": 1}] * int(p.get("many", 0))
    return {"nccl_version": "2.28.9", "cuda_runtime_version": 13000, "cuda_driver_version": 13000, "timestamp": "2026-11-15 22:40:23",
            "communicators_count": 1, "communicators": [comm], "ras": {"collection_time_sec": 0.003, "timeouts_count": 0}}


server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    client, _ = server.accept()
    with client, client.makefile("rw", newline="\n") as lines:
        for count, line in enumerate(lines):
            words = line.strip().upper()
            if str(count) == p.get("ends"):
                lines.write("S" * 400 if "longer" in p else "SERVER PROT")
                break
            if "other" in p:
                lines.write("220 ready\n")
                lines.flush()
                continue
            if "damaged" in p and words == "VERBOSE STATUS":
                lines.write('{"nccl_version": "2.28.9", "communicators": [{"hash":')
                break
            if words.startswith("CLIENT PROTOCOL"):
                lines.write("SERVER PROTOCOL 2\n")
            elif words == "SET FORMAT JSON":
                lines.write("ERROR: unknown command\n" if "old" in p else "OK\n")
            elif words == "VERBOSE STATUS":
                lines.write(json.dumps(status(), indent=None if "many" in p else 2) + "\n")
                lines.flush()
                break
            lines.flush()
