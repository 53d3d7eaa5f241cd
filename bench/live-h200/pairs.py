# SPDX-License-Identifier: MIT
"""Runs of job.py in several modes of the agent, in an order that chance chose: pairs.py OUT AGENT RANKS ROUNDS MODE,MODE,... ARGUMENT...

PyTorch is loaded once and every rank of every run is a fork of this process, which has not touched CUDA: a run costs seconds
less that way, and all runs share one layout. Appends a line "ROUND KIND MODE {...}" per run to OUT."""
import json
import os
import random
import runpy
import signal
import sys
import tempfile
import time

import torch  # noqa: F401  loaded before the forks
import torch.distributed  # noqa: F401
import torch.profiler  # noqa: F401

MODES = {
    "none": {},
    "none2": {},
    "inject": {"inject": 1, "KNEE_LIVE_CUPTI": "0", "KNEE_LIVE_NVML": "0"},  # loaded by the driver, nothing more
    "muted": {"inject": 1, "plugin": 1, "pause": 1, "KNEE_LIVE_CUPTI": "0", "KNEE_LIVE_NVML": "0"},  # NCCL tells nothing
    "calls": {"inject": 1, "plugin": 1, "KNEE_LIVE_CUPTI": "0"},
    "sampled": {"inject": 1, "plugin": 1},
    "old": {"inject": 1, "plugin": 1, "old": 1},  # the agent that KNEE_OLD_AGENT names, sampled
    "always": {"inject": 1, "plugin": 1, "KNEE_LIVE_ALWAYS": "1"},
}


def rank_main(agent, mode, rank, ranks, port, live, words):
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="2",
                      NCCL_HOSTID=f"host{rank}", NCCL_NET="Socket", NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1", NCCL_SOCKET_IFNAME="lo",
                      KNEE_LIVE_DIR=live, TEARDOWN_CUPTI="1")
    agent = os.environ["KNEE_OLD_AGENT"] if "old" in MODES[mode] else agent
    for key, value in MODES[mode].items():
        if key == "inject":
            os.environ["CUDA_INJECTION64_PATH"] = agent
        elif key == "plugin":
            os.environ["NCCL_PROFILER_PLUGIN"] = agent
        elif key == "pause":
            open(live + "/pause", "w").close()
        elif key != "old":
            os.environ[key] = value
    fd = os.open(f"{live}/r{rank}.out", os.O_CREAT | os.O_WRONLY)
    os.dup2(fd, 1)
    os.dup2(fd, 2)
    sys.argv = ["job.py", *words]
    torch.set_num_threads(2)
    runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "job.py"), run_name="__main__")


def run(agent, mode, ranks, words):
    live = tempfile.mkdtemp(prefix="knee-pairs-")
    port = random.randrange(20000, 40000)
    pids = []
    for rank in range(ranks):
        pid = os.fork()
        if pid == 0:
            rank_main(agent, mode, rank, ranks, port, live, words)
            sys.stdout.flush()
            sys.exit(0)
        pids.append(pid)
    end = time.time() + 90
    while pids and time.time() < end:
        done, _ = os.waitpid(-1, os.WNOHANG)
        if done:
            pids.remove(done)
        else:
            time.sleep(0.02)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    text = open(f"{live}/r0.out").read()
    lines = [line for line in text.splitlines() if line.startswith("{")]
    out = json.loads(lines[-1]) if lines else {"failed": text[-400:]}
    steps = [f"{live}/{d}/steps.jsonl" for d in os.listdir(live) if os.path.isdir(f"{live}/{d}")]
    out["agent"] = []
    for path in steps:
        if os.path.exists(path):
            rows = [json.loads(line) for line in open(path)]
            last, at = rows[-1], [i for i, r in enumerate(rows) if r["sampled"]]
            around = [[(r["step"], round(r["step_s"] * 1e3, 3)) for r in rows[max(0, i - 4):i + 6]] for i in at[:3]]
            out["agent"].append({"overhead": last["overhead"], "cpu": last["cpu"], "every": last["every"], "sampled": len(at), "around_ms": around})
    out["said"] = sorted({line for line in text.splitlines() if line.startswith("knee live")})
    return out


def sized(words, i):
    """The same job with another batch in each round, equal for all modes of the round: where processes take turns on a GPU a step lasts
    whole turns (2 ms), so that a little more work may add a turn or nothing; over many lengths of step that evens out."""
    at = words.index("--batch") + 1
    return [*words[:at], str(int(words[at]) * (16 + i % 8) // 16), *words[at + 1:]]


def main():
    path, agent, ranks, rounds, modes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5].split(",")
    words = sys.argv[6:]
    kind = f"{'fsdp' if '--fsdp' in words else 'ddp'}{ranks}"
    chance = random.Random(len(modes))
    with open(path, "a") as f:
        for i in range(rounds):
            for mode in chance.sample(modes, len(modes)):
                began = time.time()
                out = run(agent, mode, ranks, sized(words, i))
                out["run_s"] = round(time.time() - began, 1)
                f.write(f"{i} {kind} {mode} {json.dumps(out)}\n")
                f.flush()


main()
