# SPDX-License-Identifier: MIT
"""What the agent wrote against what tests/live/play played: check.py WHAT DIR ARGUMENT..."""
import glob
import json
import os
import subprocess
import sys


def fail(words):
    print(words)
    sys.exit(1)


def slack():
    """What is promised of a quiet machine is held there; one with twice the work it has cores for gets three times as much room."""
    return 1 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 3


def folders(directory):
    found = sorted(glob.glob(directory + "/*/"))
    if not found:
        fail("no folder in " + directory)
    return found


def lines(folder, name):
    """All lines of a ring; only the last of a killed process may be cut."""
    out = []
    for path in (folder + name + ".1", folder + name):
        if os.path.exists(path):
            with open(path) as f:
                rows = f.read().split("\n")
            out += [json.loads(row) for row in rows[:-1]]
            if rows[-1]:
                fail(f"{path} ends inside a line")
    return out


def about(folder):
    with open(folder + "about.json") as f:
        data = json.load(f)
    if data["schema"] != "knee.live/1":
        fail("another schema")
    return data


def events(directory, api, how):
    """60 steps: 4 calls of known sizes, or 30 gathers and 30 reduce-scatters."""
    (folder,), alike, api = folders(directory), "alike" in how, int(api)
    calls = lines(folder, "calls.jsonl")
    per_step = 60 if alike else 4
    lost = 7 if "lost=7" in how else 0
    want = 60 * per_step - (60 * per_step // lost if lost else 0)
    if len(calls) != want or len({c["seq"] for c in calls}) != want:
        fail(f"api {api}: {len(calls)} calls, not {want}")
    a = about(folder)
    if a["profiler_api"] != api or a["kernel_times"] != (api >= 4):
        fail(str(a))
    for c in calls:
        op = "AllReduce" if not alike else "AllGather" if c["seq"] % 60 < 30 else "ReduceScatter"
        size = 4 << 20 if alike else (4 << 20) + 16384 * (c["seq"] % 4)
        if c["op"] != op or c["bytes"] != size or c["algo"] != "RING" or c["proto"] != "LL" or c["channels"] != 2:
            fail(f"api {api}: {c}")
        if api >= 4 and (c["dur_ns"] != 400000 or c["ch_ns"] != [399800, 400000] or c["n"] != 2):
            fail(f"api {api}: {c}")
        if c["dur_ns"] < 0:
            fail(f"api {api}: no time in {c}")
    steps = [s for s in lines(folder, "steps.jsonl") if s["step"] >= 0]
    numbers = [s["step"] for s in steps]
    if not steps or numbers != sorted(set(numbers)):
        fail(f"api {api}: steps {numbers}")
    if sum(s["steps"] for s in steps) < 60 - 12 - 1 or (not alike and numbers[-1] != 58):
        fail(f"api {api} {how}: only steps {numbers}")


def threads(directory, count, steps, calls):
    (folder,) = folders(directory)
    rows, count, want = lines(folder, "calls.jsonl"), int(count), int(count) * int(steps) * int(calls)
    left_out = lines(folder, "steps.jsonl")[-1]["left_out"]
    if len({(c["comm"], c["seq"]) for c in rows}) != len(rows):
        fail("a call stands there twice")
    if len(rows) > want or len(rows) + left_out < want * 0.99:
        fail(f"{len(rows)} calls and {left_out} left out of {want}")


def trace_json(knee, files):
    return json.loads(subprocess.run([knee, "trace", *files, "--json"], check=True, capture_output=True, text=True).stdout)


def sampled(directory, knee):
    names = None
    for folder in folders(directory):
        rows = [s for s in lines(folder, "steps.jsonl") if s["sampled"]]
        if len(rows) < 2:
            fail(f"{len(rows)} steps sampled in {folder}")
        for s in rows:
            if not os.path.exists(folder + s["trace"]):
                continue
            parts = sum(s[k] for k in ("compute_s", "transfer_s", "wait_s", "copy_s", "starved_s", "host_s", "idle_s"))
            if abs(parts - s["window_s"]) > 1e-8:
                fail(f"labels sum to {parts}, not {s['window_s']}")
            if abs(s["window_s"] / s["step_s"] - 1) > 0.3 or not 1.4e-3 < s["compute_s"] < 2.1e-3:
                fail(f"a step of 6 ms with 2 ms of kernels: {s}")
            with open(folder + s["trace"]) as f:
                calls = [e for e in json.load(f)["traceEvents"] if "nccl" in e["name"]]
            if not calls or not all("Seq" in e["args"] for e in calls):
                fail("a collective's kernel does not say which it is")
            seqs = [e["args"]["Seq"] for e in sorted(calls, key=lambda e: e["ts"])]
            if seqs != list(range(seqs[0], seqs[0] + len(seqs))):
                fail(f"collectives of {s['trace']} are {seqs}")
            text = subprocess.run([knee, "trace", folder + s["trace"], "--csv"], capture_output=True, text=True)
            if text.returncode:
                fail(text.stderr)
        mine = {s["trace"] for s in rows}
        names = mine if names is None else names & mine
    if not names:
        fail("the ranks sampled no step in common")


def starved(directory, which, wait_us):
    """Of the waits of wait_us in every step: all for input, or none."""
    (folder,) = folders(directory)
    rows = [s for s in lines(folder, "steps.jsonl") if s["sampled"]]
    if not rows:
        fail("no step was sampled")
    for s in rows:
        waited, other = (s["starved_s"], s["host_s"]) if which == "loader" else (s["host_s"], s["starved_s"])
        if waited < 0.8e-6 * int(wait_us) or (which == "host" and other > 0.5 * waited):
            fail(f"{which} of {wait_us} us: starved {s['starved_s']}, host {s['host_s']}")


def stand_in(log):
    """What the stand-in for CUPTI counted."""
    with open(log) as f:
        words = f.read().split()
    return dict(zip(words[::2], map(int, words[1::2])))


def leaves(log, steps, came):
    """CUPTI is there in samples alone: it came as often as it left, and stayed for some steps of 3 ms (samples begin 30 ms early)."""
    said = stand_in(log)
    if said["wrong"] or said["came"] < int(came) or not 0 <= said["came"] - said["left"] <= 1:
        fail(f"CUPTI: {said}")
    if said["attached"] > 40 * said["came"] * said["launches"] / int(steps):
        fail(f"CUPTI was attached in {said['attached']} of {said['launches']} launches, {steps} steps")


def spent(directory, said):
    """What the agent says that its callbacks took is what they took, by another clock."""
    (folder,) = folders(directory)
    last = lines(folder, "steps.jsonl")[-1]
    mine = last["overhead"] * (last["t_ns"] - about(folder)["start_ns"])
    theirs = float(said.split("callbacks took ")[1].split()[0])
    if not 0.6 < mine / theirs < 1.7:
        fail(f"callbacks took {theirs:.0f} ns, the agent says {mine:.0f} ns")


def stuck(directory):
    """The GPU's times of the first collective come again and again: they are said once."""
    (folder,) = folders(directory)
    known = [c for c in lines(folder, "calls.jsonl") if c["dur_ns"] >= 0]
    if len(known) != 1 or known[0]["seq"] != 0:
        fail(f"{len(known)} calls have a time: {known[:3]}")


def soon(directory, changed_at, budget):
    """A job that changes is sampled within 20 steps (of a quiet machine), though its samples are far apart: the second waits until it can be paid too."""
    (folder,) = folders(directory)
    rows = lines(folder, "steps.jsonl")
    at, numbers = int(changed_at), [s["step"] for s in rows if s["sampled"]]
    if not any(at < n <= at + 20 * slack() for n in numbers) or rows[-1]["every"] < 64:
        fail(f"steps became longer at {at}; sampled: {numbers}, one in {rows[-1]['every']}")
    second = next(s for s in rows if s["step"] == numbers[1])
    before = max((s for s in rows if s["t_ns"] < second["t_ns"]), key=lambda s: s["t_ns"])
    cost, elapsed = (s["overhead"] * (s["t_ns"] - about(folder)["start_ns"]) for s in (before, {**second, "overhead": 1}))
    if numbers[1] % 128 == 0 and 2 * cost / elapsed > 1.1 * float(budget):  # one that a change asked for comes sooner
        fail(f"the first sample took {cost / 1e6:.1f} ms, the second came after {elapsed / 1e6:.0f} ms: {budget} was the budget")


def traces(folder):
    for path in sorted(glob.glob(folder + "step-*.json")):
        with open(path) as f:
            yield json.load(f)["traceEvents"]


def traced(directory, *names):
    """Kernels and copies of these names are in the sampled steps."""
    (folder,) = folders(directory)
    found = {e["name"] for events in traces(folder) for e in events}
    if not set(names) <= found:
        fail(f"{set(names) - found} not among {sorted(found)}")


def untraced(directory):
    (folder,) = folders(directory)
    if any(s["sampled"] for s in lines(folder, "steps.jsonl")) or not lines(folder, "calls.jsonl"):
        fail("sampled without CUPTI, or no collectives")


def flooded(directory):
    """More kernels than buffers: those that were lost are counted, and names beyond the table are said to be unknown."""
    (folder,) = folders(directory)
    rows = [s for s in lines(folder, "steps.jsonl") if s["sampled"]]
    if not rows or not any(s["lost"] > 0 for s in rows) or max(s["kernels"] for s in rows) < 10000:
        fail(f"lost {[s['lost'] for s in rows]}, kernels {[s['kernels'] for s in rows]}")
    traced(directory, "unknown", "kernel_1")


def always(directory):
    """Steps are sampled all the time, though every look brings kernels of the next; their labels are whole."""
    (folder,) = folders(directory)
    rows = [s for s in lines(folder, "steps.jsonl") if s["step"] >= 0]
    done = [s for s in rows if s["sampled"]]
    if about(folder)["cupti"] != "always" or len(done) < 5:
        fail(f"{len(done)} of {len(rows)} lines are sampled steps")
    if rows[-1]["every"] != 1:
        fail(f"one step in {rows[-1]['every']} is recorded")
    if not all(0.8e-3 < s["compute_s"] < 3e-3 for s in done[1:]):
        fail(f"a step of 3 ms with 1.6 ms of kernels: {[s['compute_s'] for s in done]}")


def gpu(directory, which, silent):
    (folder,) = folders(directory)
    a, keys = about(folder), {"energy_j", "power_w", "sm_mhz", "throttle", "temp_c"}
    known = not silent or silent[0] in "ECRTPN"
    uuid, name = "GPU-30313233-3435-3637-3839-3a3b3c3d3e3f", 'Stand-in "3"'
    if a.get("gpu_uuid") != (None if silent[:4] in ("Uuid", "Devi") else uuid):
        fail(str(a))
    if a.get("gpu") != (name if which == "gpu" and silent[:4] not in ("Uuid", "Devi", "Name") else None):
        fail(str(a))
    told = [s for s in lines(folder, "steps.jsonl") if "gpu_s" in s]
    lacks = {"Energy=1": {"energy_j"}, "Clock=1": {"sm_mhz", "throttle"}, "Temperature=1": {"temp_c"}, "Power=1": {"power_w"}}
    for s in told:
        here = keys - lacks.get(silent, set())
        if set(s) & keys != here or s.get("power_w", 500) != 500 or s.get("sm_mhz", 1980) != 1980 or s.get("temp_c", 61) != 61:
            fail(f"{which} {silent}: {s}")
        if s.get("throttle", 4) != (0 if silent == "Reasons=1" else 4) and "throttle" in s:
            fail(f"{which} {silent}: {s}")
    if bool(told) != known:
        fail(f"{which} '{silent}': {len(told)} lines tell of the GPU")


def pairs(directory, steps, each):
    (folder,) = folders(directory)
    rows = [c for c in lines(folder, "calls.jsonl") if "peer" in c]
    for op in ("Send", "Recv"):
        mine = [c for c in rows if c["op"] == op]
        if len(mine) != int(steps) * int(each) or any(c["peer"] != 1 or c["bytes"] != 4096 for c in mine):
            fail(f"{len(mine)} of {op}: {mine[:2]}")
        if sorted(c["seq"] for c in mine) != list(range(len(mine))):
            fail(f"{op} are numbered {sorted(c['seq'] for c in mine)[:9]}")


def left_out(directory, least):
    (folder,) = folders(directory)
    if lines(folder, "steps.jsonl")[-1]["left_out"] < int(least):
        fail(f"left out: {lines(folder, 'steps.jsonl')[-1]['left_out']}")


def release(directory, version, times):
    (folder,) = folders(directory)
    a = about(folder)
    if a["nccl"] != version or a["kernel_times"] != (times == "yes") or ("why" in a) != (times == "no"):
        fail(str(a))


def paused(directory, log):
    """Nothing of the pause is written, and CUPTI does not record then, though it does all the time else."""
    (folder,) = folders(directory)
    said = stand_in(log)
    if said["wrong"] or not 0.3 < said["recorded"] / said["launches"] < 0.8:
        fail(f"CUPTI: {said}")
    starts = sorted(c["start_ns"] for c in lines(folder, "calls.jsonl"))
    gaps = [b - a for a, b in zip(starts, starts[1:]) if b - a > 400e6]
    if len(gaps) != 1 or not 0.4e9 < gaps[0] < 2.5e9 or starts[-1] - starts[0] < 2e9:
        fail(f"gaps of {gaps} ns in {starts[-1] - starts[0]} ns")


def every(directory):
    """Each kind of call of MPI is recorded, on both ranks, with its bytes."""
    wanted = {"AllReduce": 32768, "Reduce": 800, "Broadcast": 800, "AllGather": 800, "ReduceScatter": 800, "AlltoAll": 800, "Gather": 800,
              "Scatter": 800, "Barrier": 0, "Wait": 0}
    for folder in folders(directory):
        rows = lines(folder, "calls.jsonl")
        for op, size in wanted.items():
            if not any(c["op"] == op and c["bytes"] == size for c in rows):
                fail(f"{op} of {size} bytes is missing: {[c for c in rows if c['op'] == op]}")
        rank = about(folder)["rank"]
        if not any(c["op"] == ("Send" if rank == 0 else "Recv") and c["peer"] == 1 - rank for c in rows):
            fail(f"no message of rank {rank}")


def killed(directory, steps):
    (folder,) = folders(directory)
    about(folder)
    for name in ("steps.jsonl", "calls.jsonl"):
        lines(folder, name)
    for path in glob.glob(folder + "step-*.json"):
        with open(path) as f:
            json.load(f)
    if int(steps) > 100 and not lines(folder, "calls.jsonl"):
        fail("nothing was written before the end")


def bounded(directory, limit, said):
    (folder,) = folders(directory)
    files = os.listdir(folder)
    size = sum(os.path.getsize(folder + f) for f in files)
    if size > int(limit) or len(files) > 21:
        fail(f"{size} bytes in {len(files)} files")
    rows = lines(folder, "steps.jsonl")
    if not rows[-1]["step"] > 30000 and rows[-1]["left_out"] == 0:
        fail(f"steps end at {rows[-1]['step']}")
    memory = [int(w) for w in said.split() if w.isdigit()]
    if len(memory) >= 2 and memory[-1] > memory[-2] + 2000:
        fail(f"memory grew from {memory[-2]} to {memory[-1]} kB")


def mpi(directory, late, truth_file, knee):
    late = int(late)
    with open(truth_file) as f:
        truth = {int(row.split()[0]): float(row.split()[1]) for row in f if row.strip()}
    calls = {}
    found = folders(directory)
    if len(found) != 4:
        fail(f"{len(found)} folders of 4")
    for folder in found:
        rank = about(folder)["rank"]
        for c in lines(folder, "calls.jsonl"):
            calls.setdefault((c["comm"], c["seq"]), {})[rank] = c
    waits, last = {r: [] for r in range(4)}, {r: 0 for r in range(4)}
    whole = [m for m in calls.values() if len(m) == 4 and m[0]["bytes"] == 32768]
    if len(whole) < 38:
        fail(f"{len(whole)} collectives of 40 on all ranks")
    for m in whole:
        least = min(c["dur_ns"] for c in m.values())
        for r, c in m.items():
            waits[r].append((c["dur_ns"] - least) / 1e9)
            last[r] += c["dur_ns"] == least
    waits = {r: sorted(w)[len(w) // 2] for r, w in waits.items()}
    if late >= 0:
        if max(last, key=last.get) != late:
            fail(f"rank {late} is late, the join says {last}")
        for r in range(4):
            if r != late and abs(waits[r] / truth[r] - 1) > 0.05 * slack():
                fail(f"rank {r} waits {waits[r]:.6f} s a step, in truth {truth[r]:.6f}")
        trace = sorted(glob.glob(found[0] + "step-*.json"))
        together = [p for p in trace if all(os.path.exists(f + os.path.basename(p)) for f in found)]
        if not together:
            fail("no step was sampled on all ranks")
        out = subprocess.run([knee, "trace", *[f + os.path.basename(together[-1]) for f in found]], capture_output=True, text=True).stdout
        if f"rank {late}" not in out and f"{late}  " not in out.split("Who comes last")[-1].split("\n")[2]:
            fail("knee trace on the sampled step does not name the late rank:\n" + out)
    elif max(waits.values()) > 0.05:
        fail(f"nobody is late, but ranks wait {waits}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
