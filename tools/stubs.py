#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes knee/__init__.pyi from the table of options of the library that is at hand: tools/stubs.py OUT.pyi
Editors and type checkers then know every argument of every command. It is made with the wheel and the package, so it
never disagrees with the library inside."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
import knee
from knee._commands import ANNOTATIONS, parameter_name

FIRST = {
    "predict": "job: Optional[PathLike] = ..., *", "plan": "*", "collective": "name: str = ..., *", "fit": "logs: Files, *",
    "validate": "runs: Files, *", "trace": "files: Files, *", "replay": "files: Files, *", "diff": "before: Files, after: Files, *",
    "scale": "logs: Files, *",
}
RESULT = {"plan": "Plan", "trace": "Trace", "replay": "Replay"}


def stub(name, command):
    taken = {"job"} if name == "predict" else set()
    options = [o for o in command["options"] if parameter_name(o) not in taken]
    if not any(o["name"] == "strict" for o in options):
        options.append({"name": "strict", "kind": "switch"})
    keys = "".join(f",\n    {parameter_name(o)}: Optional[{ANNOTATIONS[o['kind']]}] = ..." for o in options)
    return f"def {name}(\n    {FIRST.get(name, '*words: PathLike')}{keys},\n) -> {RESULT.get(name, 'Answer')}: ...\n"


out = [
    "# Made by tools/stubs.py from the table of options.",
    "import os",
    "from pathlib import Path",
    "from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union",
    "",
    "from ._errors import DoesNotFit as DoesNotFit, InputError as InputError, KneeError as KneeError, LimitError as LimitError",
    "from ._errors import MissingFile as MissingFile, SystemFailure as SystemFailure, UsageError as UsageError",
    "from ._result import Answer as Answer, Plan as Plan, Record as Record, Replay as Replay, Trace as Trace",
    "",
    "PathLike = Union[str, os.PathLike[str]]",
    "Files = Union[PathLike, Iterable[PathLike]]",
    "Text = Union[str, float, os.PathLike[str]]",
    "Number = Union[str, float]",
    "Counts = Union[str, float, Iterable[float]]",
    "__version__: str",
    "",
    "def ask(command: str, words: Sequence[PathLike] = ..., traces: Iterable[Tuple[str, PathLike]] = ..., strict: bool = ..., **keys: Any) -> Answer: ...",
    "def commands() -> List[str]: ...",
    "def version() -> str: ...",
    "def options() -> Mapping[str, Mapping[str, Any]]: ...",
    "def watch(folder: PathLike, every: float = ..., **keys: Any) -> Iterator[Answer]: ...",
    "def report(*files: PathLike, output: PathLike = ...) -> Path: ...",
    *(stub(name, command) for name, command in knee.options().items() if name != "options"),
]
Path(sys.argv[1]).write_text("\n".join(out))
