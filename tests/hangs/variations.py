# SPDX-License-Identifier: MIT
"""Jobs made from the recorded ones: other ranks, other numbers, more ranks, and files or lines that are lost.

VARIATIONS: name -> function of a Job that returns a changed Job, or None where the change does not apply. What is left of
a job may be too little to name anyone; no rank may be named that is not the cause."""
import copy, os, pickle, random, re


class Job:
    """The files of a folder by name; dumps are objects, everything else lines."""

    def __init__(self, folder, culprits):
        self.files, self.culprits = {}, culprits
        for name in sorted(os.listdir(folder)):
            with open(f"{folder}/{name}", "rb") as file:
                data = file.read()
            self.files[name] = pickle.loads(data) if name.startswith("fr_") else data.decode(errors="replace").splitlines()
        self.world = max(self.ranks()) + 1

    def write(self, folder):
        for name, what in self.files.items():
            with open(f"{folder}/{name}", "wb") as file:
                file.write(pickle.dumps(what, 2) if isinstance(what, dict) else what if isinstance(what, bytes) else
                           "".join(line + "\n" for line in what).encode())

    def ranks(self):
        return sorted({rank_of(name) for name in self.files})

    def innocent(self):
        """A rank that waits and says so."""
        said = [r for r in self.ranks() if r not in self.culprits and {f"rank{r}.err", f"fr_{r}"} & set(self.files)]
        return said[-1] if said else None


def rank_of(name):
    return int(re.search(r"\d+", name)[0])


def called(name, rank):
    return re.sub(r"\d+", str(rank), name, count=1)


def renumber_line(line, to):
    line = re.sub(r"\[rank(\d+)\]", lambda m: f"[rank{to(int(m[1]))}]", line)
    line = re.sub(r"(\(default_pg\) |\] \[)Rank (\d+)\]", lambda m: f"{m[1]}Rank {to(int(m[2]))}]", line)
    return re.sub(r"from( +)rank (\d+)", lambda m: f"from{m[1]}rank {to(int(m[2]))}", line)


def renumber_dump(dump, to):
    for entry in dump["entries"]:
        entry["profiling_name"] = re.sub(r"\d+(?=<-|->|$)", lambda m: str(to(int(m[0]))), entry["profiling_name"])
    return dump


def renumber(job, to):
    """Other ranks did the same. Groups of some ranks keep theirs, so such jobs are left out."""
    if any(len(what["pg_config"]) > 1 for what in job.files.values() if isinstance(what, dict)) or len(job.culprits) > 1:
        return None
    files = {called(name, to(rank_of(name))): renumber_dump(what, to) if isinstance(what, dict) else
             [renumber_line(line, to) for line in what] for name, what in job.files.items()}
    job.files, job.culprits = files, [to(r) for r in job.culprits]
    return job


def later(job, by):
    """The same at a later step."""
    pattern = re.compile(r"(SeqNum=|work: |work sequence id: |[Ss]tep )(\d+)")
    for what in job.files.values():
        if isinstance(what, dict):
            for status in what["pg_status"].values():
                for key in status:
                    status[key] += by if status[key] >= 0 else 0
            for entry in what["entries"]:
                for key in ("collective_seq_id", "op_id", "record_id"):
                    entry[key] += by
        elif isinstance(what, list):
            what[:] = [pattern.sub(lambda m: m[1] + str(int(m[2]) + by), line) for line in what]
    return job


def more(job, count):
    """Further ranks that wait as an innocent one does."""
    one, world = job.innocent(), max(job.ranks()) + 1
    if one is None:
        return None
    for what in job.files.values():
        if isinstance(what, dict):
            what["pg_config"]["0"]["ranks"] = str(list(range(world + count)))
    for name, what in list(job.files.items()):
        for r in range(world, world + count) if rank_of(name) == one else ():
            job.files[called(name, r)] = copy.deepcopy(what) if isinstance(what, dict) else \
                [re.sub(rf"\[rank{one}\]", f"[rank{r}]", re.sub(rf"Rank {one}\]", f"Rank {r}]", line)) for line in what]
    return job


def without(job, drop):
    job.files = {name: what for name, what in job.files.items() if not drop(name)}
    return job if job.files else None


def lose_lines(job, share, seed):
    pick = random.Random(seed)
    for name, what in job.files.items():
        if isinstance(what, list) and not name.endswith(".exit"):
            what[:] = [line for line in what if pick.random() >= share]
    return job


def cut(job, name, share):
    if name not in job.files:
        return None
    data = pickle.dumps(job.files[name], 2)
    job.files[name] = data[:int(len(data) * share)]
    return job


def is_dump(name):
    return name.startswith("fr_")


def of(rank):
    return lambda name: rank_of(name) == rank


def but(rank):
    return lambda name: rank_of(name) != rank


def no_dumps(job):
    return without(job, is_dump)


def dumps_only(job):
    return without(job, lambda name: not is_dump(name))


def errors_only(job):
    return without(job, lambda name: not name.endswith(".err"))


VARIATIONS = {
    "the ranks in reverse order": lambda j: renumber(j, lambda r: j.world - 1 - r),
    "the ranks from 40 on": lambda j: renumber(j, lambda r: r + 40),
    "the ranks in turn, standard error": lambda j: errors_only(j) and renumber(j, lambda r: (r + 1) % j.world),
    "the ranks in turn, dumps": lambda j: dumps_only(j) and renumber(j, lambda r: (r + 1) % j.world),
    "7000 steps later": lambda j: later(j, 7000),
    "7000 steps later, standard error": lambda j: errors_only(j) and later(j, 7000),
    "12 more ranks": lambda j: more(j, 12),
    "12 more ranks, standard error": lambda j: errors_only(j) and more(j, 12),
    "12 more ranks, dumps": lambda j: dumps_only(j) and more(j, 12),
    "without the culprit's files": lambda j: without(j, lambda n: rank_of(n) in j.culprits),
    "without the culprit's dump": lambda j: dumps_only(without(j, lambda n: rank_of(n) in j.culprits)),
    "without an innocent rank's files": lambda j: without(j, of(j.innocent())),
    "only the culprit's files": lambda j: without(j, lambda n: rank_of(n) not in j.culprits),
    "only one innocent rank's files": lambda j: without(j, but(j.innocent())),
    "three ranks' standard error": lambda j: errors_only(without(j, lambda n: rank_of(n) > 2)),
    "a line in ten lost": lambda j: lose_lines(no_dumps(j), 0.1, 1),
    "three lines in ten lost": lambda j: lose_lines(no_dumps(j), 0.3, 2),
    "half of the lines lost": lambda j: lose_lines(no_dumps(j), 0.5, 3),
    "the first dump cut": lambda j: dumps_only(j) and cut(j, "fr_0", 0.6),
    "the second dump cut": lambda j: dumps_only(j) and cut(j, "fr_1", 0.3),
    "standard output and exit statuses": lambda j: without(j, lambda n: is_dump(n) or n.endswith(".err")),
}
