# SPDX-License-Identifier: MIT
"""The program: inside the wheel, beside the sources, or on the path."""
from __future__ import annotations

import os
import shutil
import subprocess
from importlib import metadata
from pathlib import Path
from typing import List, NoReturn, Optional, Sequence, Tuple

from ._errors import KneeError, SystemFailure, error_of


def _installed() -> Optional[str]:
    """Where pip has put the wheel's program."""
    try:
        files = metadata.distribution("knee").files or []
    except metadata.PackageNotFoundError:
        return None
    return next((str(f.locate()) for f in files if f.name == "knee" and f.parent.name == "bin"), None)


def program() -> str:
    """Where `knee` is; KNEE_PROGRAM names another."""
    here = Path(__file__).resolve().parent
    for place in (os.environ.get("KNEE_PROGRAM"), here.parent / "bin" / "knee", here.parent.parent / "build" / "knee", _installed()):
        if place and os.access(place, os.X_OK):
            return os.fspath(place)
    found = shutil.which("knee")
    if not found:
        raise SystemFailure(4, "knee", "the program is not installed", "pip install the wheel, or set KNEE_PROGRAM")
    return found


def main() -> NoReturn:
    """`knee` and `python -m knee`: becomes the program, so that signals and the exit status are its own."""
    import sys

    name = program()
    os.execv(name, [name, *sys.argv[1:]])


def run_to_the_end(arguments: Sequence[str]) -> Tuple[str, Optional[KneeError]]:
    """Runs it. -> what it prints, and the error of a limit that was not kept (exit status 1)"""
    words: List[str] = [program(), *arguments]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise error_of(done.returncode, "", done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}", "")
    limit = error_of(1, "", done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "", "") if done.returncode else None
    return done.stdout, limit


def run(arguments: Sequence[str]) -> str:
    """Runs it and gives what it prints; 1 is a limit that was not kept, and an answer."""
    return run_to_the_end(arguments)[0]
