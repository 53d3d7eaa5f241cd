# SPDX-License-Identifier: MIT
"""knee: where the next worker of a training job stops paying, why, and what to change.

    import knee
    knee.predict(params="7B", gpu="h100", global_batch="4M").knee.tolerance_workers
    knee.trace("runs/").verdict.sentence
    pandas.DataFrame(knee.plan(model="llama3-8b", gpu="h100", gpus=64).rows())

Keys are the options of the command line with _ for -: global_batch="4M" is --global-batch 4M, True is a switch.
Answers are what the program prints with --json. Whatever fails raises KneeError with knee's sentence.
"""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterable, List, Sequence, Tuple, Union

from ._library import KneeError, PathLike, Question, commands, lines_of, version
from ._result import Answer, Record

__all__ = [
    "Answer", "KneeError", "Record", "ask", "collective", "commands", "diff", "fit", "plan", "predict", "replay",
    "scale", "tax", "trace", "validate", "version",
]
__version__ = version()

Files = Union[PathLike, Iterable[PathLike]]
# Keys whose value is a file where there is one of that name (include/knee.h, "Attach").
_FILE_KEYS = ("job", "cluster", "against", "index", "hf", "deepspeed", "megatron", "rates")
# Keys that name what is made beside the answer: it is written to that file.
_MADE_KEYS = ("output", "perfetto", "calibrate", "runs")
_TRACES = (".json", ".json.gz")


def _listed(files: Files) -> List[Path]:
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    found: List[Path] = []
    for name in map(Path, files):
        if name.is_dir():
            found += sorted(p for p in name.rglob("*") if p.name.endswith(_TRACES))
        elif name.exists():
            found.append(name)
        else:
            raise KneeError(3, str(name), "there is no such file", "check its name")
    if not found:
        raise KneeError(3, str(files), "no trace in it", "give files that end in .json or .json.gz")
    return found


def ask(
    command: str,
    words: Sequence[PathLike] = (),
    traces: Sequence[Tuple[str, PathLike]] = (),
    **keys: Any,
) -> Answer:
    """Any command: words stand where the command line has no option, traces are (name, file)."""
    attached: Dict[str, bytes] = {}
    named: List[str] = []
    for word in words:
        name = os.fspath(word)
        named.append(name)
        name = re.sub(r"^[0-9.]+=", "", name) if command == "scale" else name  # the count that is said
        if os.path.isfile(name):
            attached[name] = Path(name).read_bytes()
    for key in _FILE_KEYS:
        value = keys.get(key)
        if isinstance(value, (str, os.PathLike)) and os.path.isfile(value):
            keys[key] = os.fspath(value)
            attached[os.fspath(value)] = Path(value).read_bytes()
    lines = lines_of(named, keys)

    def question(format: str) -> Tuple[str, Any, Dict[str, str]]:
        with Question() as q:
            for name, data in attached.items():
                q.attach(name, data)
            for name, path in traces:
                q.push(path, name)
            text, limit = q.ask(command, lines, format)
            made = {str(keys[k]): q.pull(str(keys[k])) or "" for k in _MADE_KEYS if isinstance(keys.get(k), str)}
            return text, limit, made

    text, limit, made = question("json")
    for name, content in made.items():
        part = Path(name + ".part")
        part.write_text(content, encoding="utf-8")
        part.replace(name)
    return Answer(command, json.loads(text), limit, lambda: question("text")[0], made)


def predict(job: Union[PathLike, None] = None, **keys: Any) -> Answer:
    """A data-parallel job by closed forms: knee, levers, walls, cost."""
    return ask("predict", [] if job is None else [job], **keys)


def tax(**keys: Any) -> Answer:
    """What each parallel axis pays, and which one binds."""
    return ask("tax", **keys)


def plan(**keys: Any) -> Answer:
    """The best way to spread a model over GPUs."""
    return ask("plan", **keys)


def collective(name: str = "all_reduce", **keys: Any) -> Answer:
    """What a collective takes, by which algorithm."""
    return ask("collective", [name], **keys)


def fit(logs: Files, **keys: Any) -> Answer:
    """A cluster from logs of nccl-tests and others; output="my.yaml" writes it for cluster="my.yaml"."""
    return ask("fit", _listed(logs), **keys)


def validate(runs: Files, **keys: Any) -> Answer:
    """How well measured runs (CSV) are predicted."""
    return ask("validate", _listed(runs), **keys)


def trace(files: Files, **keys: Any) -> Answer:
    """What recorded steps say: R, the cause, the late rank, the lever. Files or folders, all ranks together."""
    return ask("trace", traces=[(str(p), p) for p in _listed(files)], **keys)


def replay(files: Files, **keys: Any) -> Answer:
    """What a recorded job would do with each change: wire="bf16", even=True, network="2x"."""
    return ask("replay", traces=[(str(p), p) for p in _listed(files)], **keys)


def diff(before: Files, after: Files, **keys: Any) -> Answer:
    """Why the second recording's step is longer."""
    sides = [(f"{side}/{i}-{p.name}", p) for side, files in (("before", before), ("after", after))
             for i, p in enumerate(_listed(files))]
    return ask("diff", ["before", "after"], sides, **keys)


def scale(logs: Files, **keys: Any) -> Answer:
    """Your own curve from training logs: "64=run.log" says the count where the log does not."""
    if isinstance(logs, (str, os.PathLike)):
        logs = [logs]
    return ask("scale", list(logs), **keys)
