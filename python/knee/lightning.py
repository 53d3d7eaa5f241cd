# SPDX-License-Identifier: MIT
"""Profiles a few steps of a Lightning Trainer and logs what limits them.

    Trainer(..., callbacks=[knee.lightning.Callback("runs", at_step=50)])

On rank 0 at most 20 numbers go to every logger of the trainer.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import Trace
from .torch import Steps, _say

if TYPE_CHECKING:
    _Base = object
else:
    try:
        from lightning.pytorch.callbacks import Callback as _Base
    except ImportError:
        try:
            from pytorch_lightning.callbacks import Callback as _Base
        except ImportError:  # the class can be made and tested without Lightning
            _Base = object


class Callback(_Base):
    """`steps` batches are recorded from batch `at_step` on, on every rank, into `folder`."""

    def __init__(self, folder: str, at_step: int = 50, steps: int = 3, warmup: int = 2, limit_s: float = 120.0):
        self._steps = Steps(folder, at_step, steps, warmup, limit_s)
        self._batch = 0
        self.answer: Optional[Trace] = None

    def _done(self, trainer: Any, answer: Trace) -> None:
        self.answer = answer
        _say("\n".join(answer.lines))
        for logger in getattr(trainer, "loggers", None) or []:
            try:
                logger.log_metrics(answer.metrics(), step=int(getattr(trainer, "global_step", 0)))
            except Exception as error:  # a logger that fails does not end training
                _say(f"knee: not logged: {error}")

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, *_: Any) -> None:
        self._steps.begin(self._batch, lambda answer: self._done(trainer, answer))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int, *_: Any) -> None:
        self._steps.end(self._batch)
        self._batch += 1

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._steps.stop()
        if self._steps.handler:
            self._steps.handler.wait()
