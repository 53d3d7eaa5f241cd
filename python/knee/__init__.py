# SPDX-License-Identifier: MIT
"""knee: how many GPUs a training job is worth, what limits it, and what to change.

    import knee
    p = knee.plan(model="llama3-8b", gpu="h100", gpus=64)
    p.step_s, p.mfu, p.memory_gb, p.best.tp      # numbers
    p.to_frame()                                 # one row per plan
    p.save("plan.html"); p.emit("megatron")      # a page to send; launch flags
    t = knee.trace("runs/")
    t.cause, t.late_ranks, t.what_if(wire="bf16").step_s

Arguments are the options of the command line with _ for -: global_batch="4M" is --global-batch 4M, True is a switch.
Numbers, ranges, lists, numpy arrays and paths are taken as they are. Answers are mappings of what the program prints
with --json. Whatever fails raises a KneeError, which is also a ValueError, a FileNotFoundError or an OSError.
"""
from __future__ import annotations

import importlib
from typing import Any, List

from ._commands import Files, ask, make_functions, options
from ._errors import DoesNotFit, InputError, KneeError, LimitError, MissingFile, SystemFailure, UsageError
from ._library import commands, version
from ._result import Answer, Plan, Record, Replay, Trace

__version__ = version()


def __getattr__(name: str) -> Any:
    """knee.torch, knee.hf and knee.lightning are imported when they are first used."""
    if name in ("torch", "hf", "lightning"):
        return importlib.import_module(f"knee.{name}")
    raise AttributeError(f"module 'knee' has no attribute {name!r}")


globals().update(make_functions())
__all__: List[str] = [
    "Answer", "DoesNotFit", "InputError", "KneeError", "LimitError", "MissingFile", "Plan", "Record", "Replay",
    "SystemFailure", "Trace", "UsageError", "ask", "commands", "options", "version",
    "report", "watch", *(name for name in commands() if name != "options"),
]
