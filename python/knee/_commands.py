# SPDX-License-Identifier: MIT
"""Questions: files are found and attached, keys become lines. Every command of the library has a function here, with
the signature and the help of the options that it takes."""
from __future__ import annotations

import functools
import inspect
import json
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

from ._errors import DoesNotFit, MissingFile, InputError, UsageError
from ._program import run_to_the_end
from ._library import PathLike, Question, commands, lines_of, text_of
from ._result import CLASSES, Answer, Asked, Plan, Replay, Trace

Files = Union[PathLike, Iterable[PathLike]]
# Keys that name what is made beside the answer: it is written to that file.
_MADE_KEYS = ("output", "perfetto", "calibrate", "runs")
_TRACES = (".json", ".json.gz")


def _listed(files: Files, endings: Tuple[str, ...] = ()) -> List[str]:
    """Files as they are, folders as the files in them."""
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    found: List[str] = []
    for name in map(Path, files):
        if name.is_dir():
            found += sorted(str(p) for p in name.rglob("*") if p.is_file() and (p.name.endswith(endings) if endings else p.suffix != ".md"))
        elif name.exists():
            found.append(str(name))
        else:
            raise MissingFile(3, str(name), "there is no such file", "check its name")
    if not found:
        raise InputError(3, str(files), "no trace in it" if endings else "no file in it", f"give files that end in {' or '.join(endings)}" if endings else "")
    return found


def _counted(word: str) -> Tuple[str, str]:
    """scale's "64=run.log": the count, and the file."""
    count, _, name = re.match(r"^([0-9.]+=)?()(.*)$", word, re.S).groups()  # type: ignore[union-attr]
    return count or "", name


def _attached(asked: Asked) -> Dict[str, bytes]:
    """The files that words and keys name."""
    command, words, _, keys = asked
    names = [_counted(word)[1] if command == "scale" else word for word in words]
    names += [text_of(v) for k, v in keys.items() if k not in _MADE_KEYS and isinstance(v, (str, os.PathLike))]
    return {name: Path(name).read_bytes() for name in names if os.path.isfile(name)}


def _question(asked: Asked, format: str) -> Tuple[str, Any, Dict[str, str]]:
    command, words, traces, keys = asked
    with Question() as q:
        for name, data in _attached(asked).items():
            q.attach(name, data)
        for name, path in traces:
            q.push(path, name)
        text, limit = q.ask(command, lines_of(words, keys), format)
        made = {text_of(keys[k]): q.pull(text_of(keys[k])) or "" for k in _MADE_KEYS if isinstance(keys.get(k), (str, os.PathLike))}
        return text, limit, made


def answer_text(asked: Asked, format: str) -> str:
    return _question(asked, format)[0]


def program_words(asked: Asked) -> List[str]:
    """The question as arguments of the program."""
    command, words, traces, keys = asked
    files = [path for _, path in traces] if command != "diff" else list(dict.fromkeys(words))
    flags: List[str] = []
    for key, value in keys.items():
        name = "--" + key.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        flags += [name] if value is True else [name, text_of(value)]
    return [command, *(files if traces else words), *flags]


def _write(name: str, content: str, inputs: Iterable[str]) -> None:
    """Whole or not at all, in a new file that takes the old one's place, and never over an input."""
    there = os.path.isfile(name)
    if there and any(os.path.isfile(i) and os.path.samefile(name, i) for i in inputs):
        raise UsageError(2, name, "is read by this question and would be overwritten by it", "name another file")
    name = os.path.realpath(name)  # a link stays a link
    handle, part = tempfile.mkstemp(prefix=".knee-", dir=os.path.dirname(name))
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(part, os.stat(name).st_mode & 0o777 if there else 0o666 & ~mask)
        os.replace(part, name)
    except BaseException:
        os.unlink(part)
        raise


def ask(
    command: str,
    words: Sequence[PathLike] = (),
    traces: Iterable[Tuple[str, PathLike]] = (),
    strict: bool = False,
    **keys: Any,
) -> Answer:
    """Any command: words stand where the command line has no option, traces are (name, file)."""
    given = {k: v for k, v in keys.items() if v is not None and v is not False}
    if strict and any(o["name"] == "strict" for o in options().get(command, {}).get("options", [])):
        given["strict"] = True
    asked: Asked = (command, tuple(os.fspath(w) for w in words), tuple((n, os.fspath(f)) for n, f in traces), given)
    text, limit, made = _question(asked, "json")
    for name, content in made.items():
        others = [str(v) for k, v in given.items() if k not in _MADE_KEYS]
        _write(name, content, [*(re.sub(r"^[0-9.]+=", "", w) for w in asked[1]), *(path for _, path in asked[2]), *others])
    try:
        data = json.loads(text)
    except ValueError:  # YAML of `cluster` and `example`
        data = {"text": text}
    answer = CLASSES.get(command, Answer)(command, data, limit, made, asked)
    if strict and isinstance(answer, Plan) and not answer.fits:
        raise DoesNotFit(1, "", answer.headline, "")
    if strict and limit is not None:
        raise limit
    return answer


# ---- The commands ----


def predict(job: Union[PathLike, None] = None, **keys: Any) -> Answer:
    """A data-parallel job by closed forms: how many GPUs are worth it, what limits it, what to change."""
    return ask("predict", [] if job is None else [job], **keys)


def plan(**keys: Any) -> Plan:
    """The best way to spread a model over GPUs."""
    return ask("plan", **keys)  # type: ignore[return-value]


def collective(name: str = "all_reduce", **keys: Any) -> Answer:
    """How long a collective takes, and by which algorithm."""
    return ask("collective", [name], **keys)


def fit(logs: Files, **keys: Any) -> Answer:
    """A cluster from logs of nccl-tests and others; output="my.yaml" writes it for cluster="my.yaml"."""
    return ask("fit", _listed(logs), **keys)


def validate(runs: Files, **keys: Any) -> Answer:
    """How well measured runs (CSV) are predicted."""
    return ask("validate", _listed(runs), **keys)


def trace(files: Files, **keys: Any) -> Trace:
    """What recorded steps say: the cause, the late rank, the change. Files or folders, all ranks together."""
    return ask("trace", traces=[(p, p) for p in _listed(files, _TRACES)], **keys)  # type: ignore[return-value]


def replay(files: Files, **keys: Any) -> Replay:
    """What a recorded job would do with each change: wire="bf16", even=True, network="2x"."""
    return ask("replay", traces=[(p, p) for p in _listed(files, _TRACES)], **keys)  # type: ignore[return-value]


def diff(before: Files, after: Files, **keys: Any) -> Answer:
    """Why the second recording's step is longer."""
    sides = [(f"{side}/{i}-{Path(p).name}", p) for side, files in (("before", before), ("after", after))
             for i, p in enumerate(_listed(files, _TRACES))]
    return ask("diff", ["before", "after"], sides, **keys)


def scale(logs: Files, **keys: Any) -> Answer:
    """Your own curve from training logs, or a folder of them: "64=run.log" says the count where the log does not."""
    words = [logs] if isinstance(logs, (str, os.PathLike)) else list(logs)
    named = [_counted(os.fspath(word)) for word in words]
    return ask("scale", [count + name for count, word in named for name in _listed(word)], **keys)


def _by_program(command: str, words: Sequence[PathLike], strict: bool, keys: Mapping[str, Any]) -> Answer:
    """What needs an operating system: this host, a folder that is being written. The program must be installed."""
    for word in words:
        if not os.path.exists(word):
            raise MissingFile(3, os.fspath(word), "there is no such file", "check its name")
    given = {k: v for k, v in keys.items() if v is not None and v is not False}
    asked: Asked = (command, tuple(os.fspath(word) for word in words), (), given)
    text, limit = run_to_the_end([*program_words(asked), "--json"])
    if strict and limit is not None:
        raise limit
    return Answer(command, json.loads(text), limit, {}, asked)


_LOOKS = ("from_", "from", "root", "save", "bench", "limit", "window")


def doctor(*files: PathLike, strict: bool = False, **keys: Any) -> Answer:
    """What is wrong, by command outputs and logs; with a folder of saved hosts or of a job, or with nothing (this
    host), the program looks."""
    if files and not any(os.path.isdir(name) for name in files) and not any(keys.get(k) for k in _LOOKS):
        return ask("doctor", _listed(files), strict=strict, **keys)
    return _by_program("doctor", files, strict, keys)


def watch(folder: PathLike, every: float = 2.0, **keys: Any) -> Iterator[Answer]:
    """A running job, look after look: `for look in knee.watch("knee-live"): ...`. Each look reads the folder anew;
    `next(knee.watch(folder))` looks once."""
    while True:
        yield _by_program("watch", [folder], False, {**keys, "once": True})
        time.sleep(every)


def report(*files: PathLike, output: PathLike = "knee-report.html") -> Path:
    """One HTML page that opens offline: of traces, a log, a job file, or an answer's JSON; without files the calculator."""
    if len(files) > 1 and os.fspath(files[-1]).endswith(".html") and not os.path.exists(files[-1]):
        files, output = files[:-1], files[-1]  # report("runs", "page.html")
    names = [name for word in files for name in ([os.fspath(word)] if os.path.isdir(word) else _listed(word))]
    run_to_the_end(["report", *names, "-o", os.fspath(output)])
    return Path(output)


def _generic(command: str) -> Callable[..., Answer]:
    """A command without a separate function: its files and folders, then its options."""

    def function(*words: PathLike, **keys: Any) -> Answer:
        named = [name for word in words for name in (_listed(word) if os.path.isdir(word) else [os.fspath(word)])]
        return ask(command, named, **keys)

    function.__name__ = function.__qualname__ = command
    function.__doc__ = f"knee {command}."
    return function


# ---- Their signatures, from the table that the program's options come from ----


@functools.lru_cache(maxsize=1)
def options() -> Mapping[str, Mapping[str, Any]]:
    """What each command takes: {"plan": {"operands": "", "options": [{"name", "kind", "help", ...}]}}."""
    with Question() as q:
        rows = json.loads(q.ask("options", "")[0])["commands"]
    return {row["name"]: row for row in rows}


def parameter_name(option: Mapping[str, Any]) -> str:
    import keyword

    name = str(option["name"]).replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


ANNOTATIONS = {"number": "Number", "workers": "Counts", "switch": "bool", "choice": "Text", "word": "Text"}


def describe(function: Callable[..., Any], command: Mapping[str, Any]) -> None:
    """Gives a function the parameters and the help of its command."""
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    taken = {p.name for p in own}
    rows = [o for o in command["options"] if parameter_name(o) not in taken]
    more = [inspect.Parameter(parameter_name(o), inspect.Parameter.KEYWORD_ONLY, default=None, annotation=ANNOTATIONS[o["kind"]]) for o in rows]
    if "strict" not in taken and not any(o["name"] == "strict" for o in rows):
        more.append(inspect.Parameter("strict", inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool"))
    function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    lines = [f"    {parameter_name(o)}: {o['help']}" + (f" [{o['otherwise']}]" if o["otherwise"] else "") for o in rows]
    function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", *lines])


def make_functions() -> Dict[str, Callable[..., Any]]:
    own: Dict[str, Callable[..., Any]] = {
        "predict": predict, "plan": plan, "collective": collective, "fit": fit, "validate": validate, "trace": trace,
        "replay": replay, "diff": diff, "scale": scale, "doctor": doctor,
    }
    found: Dict[str, Callable[..., Any]] = {}
    for name in commands():
        if name == "options":
            continue
        found[name] = own[name] if name in own else _generic(name)
        describe(found[name], options()[name])
    found.update(watch=watch, report=report)
    for function in found.values():
        function.__module__ = "knee"
    return found
