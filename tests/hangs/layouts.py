# SPDX-License-Identifier: MIT
"""The ways in which terminals, launchers, containers and loggers keep the output of a job.

LAYOUTS: name -> function of {rank: lines} that returns {file name: lines}. The answer must not depend on the layout."""
import json, random, textwrap


def per_rank(change):
    return lambda ranks: {f"rank{r}.err": change(r, lines) for r, lines in ranks.items()}


def one_file(before=lambda r: "", after=lambda lines: lines):
    """All ranks in one file, some lines of each in turn; before(rank) is what stands before a line."""
    def mixed(ranks):
        rest, out, pick = {r: list(lines) for r, lines in ranks.items() if lines}, [], random.Random(1)
        while rest:
            r = pick.choice(sorted(rest))
            for _ in range(pick.choice([1, 1, 2, 5])):
                if rest[r]:
                    out.append(before(r) + rest[r].pop(0))
            if not rest[r]:
                del rest[r]
        return {"job.log": after(out)}
    return mixed


def broken(width):
    return lambda lines: [line[i:i + width] for line in lines for i in range(0, max(len(line), 1), width)]


def words(width):
    return lambda lines: [piece for line in lines for piece in (textwrap.wrap(line, width) or [""])]


def each(change):
    return per_rank(lambda r, lines: [change(r, line) for line in lines])


LAYOUTS = {
    "broken at 80 columns": per_rank(lambda r, lines: broken(80)(lines)),
    "broken at 120 columns": per_rank(lambda r, lines: broken(120)(lines)),
    "broken at 132 columns": per_rank(lambda r, lines: broken(132)(lines)),
    "broken between words, 80": per_rank(lambda r, lines: words(80)(lines)),
    "broken between words, 120": per_rank(lambda r, lines: words(120)(lines)),
    "colours": each(lambda r, line: "\x1b[31m" + line + "\x1b[0m"),
    "CRLF": each(lambda r, line: line + "\r"),
    "kubectl logs --timestamps": each(lambda r, line: "2026-11-16T15:00:00.123456789Z " + line),
    "Kubernetes' log files": each(lambda r, line: "2026-11-16T15:00:00.123456789Z stderr F " + line),
    "a logger": each(lambda r, line: "2026-11-16 15:00:00,123 - ERROR - " + line),
    "the journal": each(lambda r, line: f"Nov 16 15:00:00 node{r} python[12]: " + line),
    "Docker's JSON": each(lambda r, line: json.dumps({"log": line + "\n", "stream": "stderr"})),
    "one file": one_file(),
    "one file, srun --label": one_file(lambda r: f"{r}: "),
    "one file, srun, 120 columns": one_file(lambda r: f"{r}: ", broken(120)),
    "one file, mpirun --tag-output": one_file(lambda r: f"[1,{r}]<stderr>:"),
    "one file, torchrun": one_file(lambda r: f"[default{r}]:"),
    "one file, hosts": one_file(lambda r: f"node{r // 2}: "),
    "one file, addresses": one_file(lambda r: f"10.0.0.{r // 2}: "),
    "one file, Ray": one_file(lambda r: f"\x1b[36m(Worker pid={4000 + r}, ip=10.0.0.1)\x1b[0m "),
    "one file, kubectl logs --prefix": one_file(lambda r: f"[pod/train-{r}/main] "),
    "one file, docker compose": one_file(lambda r: f"train-{r}  | "),
    "one file, unknown prefix": one_file(lambda r: f"<<node{r // 2} {r}>> "),
}
