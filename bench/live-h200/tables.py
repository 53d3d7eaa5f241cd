# SPDX-License-Identifier: MIT
"""The tables of bench/live-h200/run: what was measured, from the files of the agent and of the jobs."""
import glob
import json
import os
import statistics
import subprocess
import sys


def median(values):
    return statistics.median(values) if values else float("nan")


def overhead():
    """Lines "RUN KIND MODE {...}": each mode beside the runs without the agent of the same round. "none2" is a run without the
    agent too: what it shows is chance."""
    times = {}
    for line in sys.stdin:
        run, kind, mode, text = line.split(None, 3)
        if "median_s" in text:
            times[kind, mode, int(run)] = json.loads(text)
    for kind in sorted({k for k, _, _ in times}):
        modes = [m for m in ("none2", "inject", "muted", "calls", "old", "sampled", "always") if any(k[:2] == (kind, m) for k in times)]
        for mode in modes:
            for which in ("median_s", "trimmed_s", "mean_s"):
                compare(kind, mode, which, times)


def compare(kind, mode, which, times):
    more, bases = [], []
    for _, _, r in sorted(k for k in times if k[:2] == (kind, mode)):
        names = ("none",) if mode == "none2" else ("none", "none2")
        base = [times[kind, m, r][which] for m in names if (kind, m, r) in times]
        if base:
            bases.append(statistics.mean(base))
            more.append(100 * (times[kind, mode, r][which] / bases[-1] - 1))
    if more:
        error = statistics.stdev(more) / len(more) ** 0.5 if len(more) > 1 else float("nan")
        print(f"{kind:6} {mode:8} {which:9} {median(bases) * 1e3:8.3f} ms without; median {median(more):+.3f} %, mean {statistics.mean(more):+.3f} "
              f"+- {error:.3f}, from {min(more):+.3f} to {max(more):+.3f} % in {len(more)} pairs")


def ablate():
    """Blocks of one job: each state beside its base, block by block in the order in which they came."""
    data = json.loads([line for line in sys.stdin if line.startswith("{")][0])
    bases = {"mask 0 again": "mask 0", "calls": "mask 0", "calls and kernels": "mask 0", "attached, off": "detached"}
    if "attached, off again" in data["took"]:  # all that is recorded beside nothing recorded
        bases.update({name: "attached, off again" for name in data["records"] if name != "attached, off again"})
    for name, blocks_of in data["took"].items():
        calls = data["calls"][name]
        steps = sum(len(b) for b in blocks_of)
        line = (f"{name:20} {1e3 * median([median(b) for b in blocks_of]):8.3f} ms, callbacks {sum(c for c, _ in calls) / steps:.1f} a step, "
                f"{sum(ns for _, ns in calls) / steps / 1e3:.2f} us a step")
        if name in bases:
            for title, of in (("median", median), ("mean", statistics.mean)):
                more = [100 * (of(x) / of(y) - 1) for x, y in zip(blocks_of, data["took"][bases[name]])]
                error = statistics.stdev(more) / len(more) ** 0.5
                line += f"; {title} {statistics.mean(more):+.3f} +- {error:.3f} %"
            line += f" against {bases[name]} in {len(more)} pairs"
        print(line)
    recorded(data)
    for name, ns in data["spent_ns"].items():
        print(f"{name:24} first {ns[0] / 1e6:.3f} ms, then median {median(ns[1:]) / 1e6:.3f}, most {max(ns[1:]) / 1e6:.3f} ms")
    for name, kept in data.get("records", {}).items():
        print(f"{name:24} {kept}")
    for name, us in data["launch_us"].items():
        print(f"a launch, {name:20}", " ".join(f"{v:.3f}" for v in us), "us")


def recorded(data):
    """Batch by batch: the step with nothing recorded, what recording adds to it (all states that record, together), and for each kernel."""
    off = [median(b) for b in data["took"].get("attached, off again", [])]
    states = [name for name in data.get("records", {}) if name != "attached, off again"]
    if not off or not states:
        return
    more = [statistics.mean(median(data["took"][s][i]) for s in states) - base for i, base in enumerate(off)]
    kernels = max(k["records"]["10"] / k["steps"] for k in data["records"].values())
    error = statistics.stdev(more) / len(more) ** 0.5
    print("nothing recorded, batch by batch:", " ".join(f"{1e3 * v:.2f}" for v in off), "ms; recording adds", " ".join(f"{1e3 * v:+.2f}" for v in more))
    print(f"recording adds {1e3 * statistics.mean(more):+.3f} +- {1e3 * error:.3f} ms to a step of {kernels:.0f} kernels a rank")


def windows(live):
    """Sampled steps of a job: is the window that the GPU's work fills as long as the step that NCCL's calls tell of?"""
    rows = [s for d in glob.glob(live + "/*/") for s in lines(d + "steps.jsonl") if s.get("sampled") and "window_s" in s]
    near = sum(abs(s["window_s"] / s["step_s"] - 1) <= 0.02 for s in rows)
    usual = median([s["compute_s"] for s in rows])
    alike = sum(abs(s["compute_s"] / usual - 1) <= 0.015 for s in rows)
    print(f"{len(rows)} samples: {near} with a window within 2 % of the step, {alike} with compute within 1.5 % of their median, {1e3 * usual:.3f} ms")


def blocks(title):
    """Blocks of steps with and without, in one job; each block's median and mean."""
    data = json.loads([line for line in sys.stdin if line.startswith("{")][0])
    for name, of in (("median", median), ("mean", statistics.mean)):
        on, off = [of(b) for b in data["on"]], [of(b) for b in data["off"]]
        pairs = [100 * (a / b - 1) for a, b in zip(on, off)]
        print(f"{title} {name:6} of a block: {median(off) * 1e3:.3f} ms paused, {median(on) * 1e3:.3f} ms with; median {median(pairs):+.3f} %, "
              f"from {min(pairs):+.3f} to {max(pairs):+.3f} % in {len(pairs)} pairs")


def trace(knee, files):
    done = subprocess.run([knee, "trace", *files, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def lines(path):
    out = []
    for name in (path + ".1", path):
        if os.path.exists(name):
            with open(name) as f:
                out += [json.loads(line) for line in f if line.endswith("}\n")]
    return out


def sampled_by_all(live):
    """Steps of which every rank has a trace."""
    folders = sorted(glob.glob(live + "/*/"))
    names = [set(os.path.basename(f) for f in glob.glob(d + "step-*.json")) for d in folders]
    return folders, sorted(set.intersection(*names)) if names else []


def waits(live):
    """By step and rank: the wait of the joined collectives, in seconds. Two methods: this one needs no kernels."""
    calls = {}
    for folder in sorted(glob.glob(live + "/*/")):
        with open(folder + "about.json") as f:
            rank = json.load(f)["rank"]
        for c in lines(folder + "calls.jsonl"):
            if c["dur_ns"] >= 0 and c["n"] > 1 and "peer" not in c:
                calls.setdefault((c["comm"], c["seq"]), {})[rank] = c
    out = {}
    for members in calls.values():
        if len(members) < next(iter(members.values()))["n"]:
            continue
        least = min(c["dur_ns"] for c in members.values())
        for rank, c in members.items():
            out.setdefault(c["step"], {}).setdefault(rank, 0.0)
            out[c["step"]][rank] += (c["dur_ns"] - least) / 1e9
    return out


def against(knee, live, traces, title):
    folders, names = sampled_by_all(live)
    kineto = trace(knee, sorted(glob.glob(traces + "/rank*.json")))
    ours = [t for t in (trace(knee, [d + n for d in folders]) for n in names) if t]
    print(f"{title}: {len(ours)} steps sampled by all ranks")
    if not kineto or not ours:
        print("  nothing to compare", kineto is not None, len(ours))
        return
    def values(account, key):
        return [s[key] for s in account["steps"] if s.get("complete") and s.get(key) is not None]

    for key in ("window_s", "compute_s", "exposed_comm_s", "wait_s", "exposed_copy_s", "host_bound_s", "idle_s", "ratio"):
        theirs = values(kineto, key)
        mine = [v for t in ours for v in values(t, key)]
        if not theirs or not mine:
            continue
        a, b = statistics.mean(mine), statistics.mean(theirs)
        unit = 1 if key == "ratio" else 1e3
        print(f"  {key:15} agent {a * unit:9.3f} (mean of {len(mine)}; {min(mine) * unit:.3f} to {max(mine) * unit:.3f}), "
              f"Kineto {b * unit:9.3f} (of {len(theirs)}; {min(theirs) * unit:.3f} to {max(theirs) * unit:.3f}), "
              f"{100 * (a / b - 1) if b else float('nan'):+.2f} %")
    joined = waits(live)
    per_step = [sum(w.values()) / len(w) for s, w in joined.items() if s >= 20]
    print(f"  wait joined from calls.jsonl: {1e3 * statistics.mean(per_step):.3f} ms a step and rank over {len(per_step)} steps (hidden part included)")
    with open(os.environ.get("OUT", "/tmp") + "/against-" + title.replace(" ", "-") + ".json", "w") as f:
        json.dump({"kineto": kineto, "ours": ours}, f)


def straggler(knee, live, suspect):
    by_step = waits(live)
    folders, names = sampled_by_all(live)
    steps = [s for s in sorted(by_step) if s >= 0]
    total = {}
    for s in steps:
        for rank, w in by_step[s].items():
            total[rank] = total.get(rank, 0) + w
    print(f"{suspect:9} wait per step by rank, joined calls of {len(steps)} steps:",
          {r: round(1e3 * w / max(1, len(steps)), 2) for r, w in sorted(total.items())}, "ms")
    for n in names[:2]:
        t = trace(knee, [d + n for d in folders])
        if t:
            print("   ", n, "stragglers by knee trace:", json.dumps(t.get("stragglers"))[:400])


if __name__ == "__main__":
    {"overhead": overhead, "ablate": ablate, "blocks": blocks, "windows": windows, "against": against, "straggler": straggler}[sys.argv[1]](*sys.argv[2:])
