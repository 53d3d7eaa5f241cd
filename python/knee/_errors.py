# SPDX-License-Identifier: MIT
"""What can go wrong. Each is a KneeError and also what Python people would catch: ValueError, FileNotFoundError, OSError."""
from __future__ import annotations

from typing import Any, Tuple


class KneeError(Exception):
    """What went wrong, where, and what to do: the line that the program prints."""

    def __init__(self, status: int, where: str, what: str, hint: str = ""):
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line}; {hint}" if hint else line)
        self.status, self.where, self.what, self.hint = status, where, what, hint

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.status, self.where, self.what, self.hint)


class UsageError(KneeError, ValueError):
    """An argument is unknown or has a value that cannot be."""


class InputError(KneeError, ValueError):
    """A file cannot be used."""


class MissingFile(InputError, FileNotFoundError):
    """There is no such file."""


class SystemFailure(KneeError, OSError):
    """Out of memory, or the system refused."""


class LimitError(KneeError, ValueError):
    """A limit in the question (a budget, a deadline, max_ratio) is not kept. Only with strict=True."""


class DoesNotFit(LimitError):
    """No plan fits into the memory. Only with strict=True."""


def error_of(status: int, where: str, what: str, hint: str) -> KneeError:
    kinds = {1: LimitError, 2: UsageError, 3: InputError, 4: SystemFailure}
    return kinds.get(status, KneeError)(status, where, what or "a limit is not kept", hint)


for _kind in (KneeError, UsageError, InputError, MissingFile, SystemFailure, LimitError, DoesNotFit):
    _kind.__module__ = "knee"  # where people import them from
