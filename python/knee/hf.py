# SPDX-License-Identifier: MIT
"""Profiles a few steps of a Hugging Face Trainer and logs what limits them.

    Trainer(..., callbacks=[knee.hf.Callback("runs", at_step=50)])

On rank 0 at most 20 numbers (knee/step_s, knee/efficiency, knee/exposed ...) go where the trainer's do: to the active
run of W&B or MLflow and to TensorBoard, as TrainingArguments.report_to says, and to state.log_history. Where something
else should get them, give log=trainer.log or any function of a dict.
"""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

from . import Trace
from .torch import Steps, _say

if TYPE_CHECKING:
    _Base = object
else:
    try:
        from transformers import TrainerCallback as _Base
    except ImportError:  # the class can be made and tested without transformers
        _Base = object


def _to_wandb(numbers: Dict[str, float], _args: Any, step: int) -> None:
    import wandb

    if wandb.run is not None:
        wandb.log({**numbers, "train/global_step": step})  # the axis of the trainer's own numbers


def _to_mlflow(numbers: Dict[str, float], _args: Any, step: int) -> None:
    import mlflow

    if mlflow.active_run() is not None:
        mlflow.log_metrics({name.replace("/", "_"): value for name, value in numbers.items()}, step=step)


def _to_tensorboard(numbers: Dict[str, float], args: Any, step: int) -> None:
    from torch.utils.tensorboard import SummaryWriter

    # transformers 5 takes the folder from the environment; 4 has it among its arguments.
    folder = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(args, "logging_dir", None) or os.path.join(args.output_dir, "runs")
    writer = SummaryWriter(log_dir=folder)
    for name, value in numbers.items():
        writer.add_scalar(name, value, step)
    writer.close()


_LOGGERS: Dict[str, Callable[[Dict[str, float], Any, int], None]] = {
    "wandb": _to_wandb, "mlflow": _to_mlflow, "tensorboard": _to_tensorboard,
}


class Callback(_Base):
    """`steps` steps are recorded from `at_step` on, on every rank, into `folder`."""

    def __init__(self, folder: str, at_step: int = 50, steps: int = 3, warmup: int = 2, limit_s: float = 120.0,
                 log: Optional[Callable[[Dict[str, float]], None]] = None):
        self._steps = Steps(folder, at_step, steps, warmup, limit_s)
        self._log = log
        self.answer: Optional[Trace] = None

    def _done(self, args: Any, state: Any, answer: Trace) -> None:
        self.answer = answer
        _say("\n".join(answer.lines))
        numbers, step = answer.metrics(), int(getattr(state, "global_step", 0))
        if self._log:
            return self._log(numbers)
        if hasattr(state, "log_history"):
            state.log_history.append(dict(numbers, step=float(step)))
        for name in getattr(args, "report_to", None) or []:
            if name in _LOGGERS:
                try:
                    _LOGGERS[name](numbers, args, step)
                except Exception as error:  # a logger that fails does not end training
                    _say(f"knee: not logged to {name}: {error}")

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.begin(int(state.global_step), lambda answer: self._done(args, state, answer))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.end(int(state.global_step) - 1)  # the trainer has counted it already

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._steps.stop()
        if self._steps.handler:
            self._steps.handler.wait()
