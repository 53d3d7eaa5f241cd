# SPDX-License-Identifier: MIT
"""Records every rank of a torch job and says what limits it, without ever stopping the job.

    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=5, warmup=2, active=3, repeat=1),
                                on_trace_ready=knee.torch.trace_handler("runs")) as prof:
        for batch in loader:
            train_step(batch)
            prof.step()

Each rank writes runs/rankN.json.gz when its steps are recorded. Rank 0 then waits in the background, for at most
`limit_s`, until the files of all ranks are there, and prints three lines. Nothing here meets the other ranks (there is
no barrier), and nothing that fails is raised into training: it is printed.
"""
from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from typing import Any, Callable, List, Optional

from . import KneeError, Trace
from ._commands import trace

Done = Callable[[Trace], None]


class trace_handler:
    """For torch.profiler.profile(on_trace_ready=...). `done` is called on rank 0 with the answer; without it the three
    lines are printed. `rank` and `world_size` are asked of torch.distributed, or of RANK and WORLD_SIZE."""

    def __init__(
        self,
        folder: str,
        limit_s: float = 120.0,
        done: Optional[Done] = None,
        rank: Optional[int] = None,
        world_size: Optional[int] = None,
    ):
        self.folder, self.limit_s, self.done = folder, limit_s, done
        self._rank, self._world = rank, world_size
        self._began = time.time()
        self._thread: Optional[threading.Thread] = None

    def __call__(self, recorded: Any) -> None:
        try:
            rank, world = self.rank, self.world_size
            self._write(recorded, rank)
            if rank == 0:
                self._thread = threading.Thread(target=self._look, args=(world,), daemon=True, name="knee-trace")
                self._thread.start()
                atexit.register(self.wait, self.limit_s)  # a job that ends at once still gets its lines
        except Exception as error:  # training goes on whatever happens here
            _say(f"knee: {self.folder}: not recorded: {error}")

    @property
    def rank(self) -> int:
        return rank_of() if self._rank is None else self._rank

    @property
    def world_size(self) -> int:
        return world_size_of() if self._world is None else self._world

    def file_of(self, rank: int) -> str:
        return os.path.join(self.folder, f"rank{rank}.json.gz")

    def _write(self, recorded: Any, rank: int) -> None:
        os.makedirs(self.folder, exist_ok=True)
        part = os.path.join(self.folder, f".rank{rank}.{os.getpid()}.part.json.gz")  # torch packs by the name's ending
        recorded.export_chrome_trace(part)
        os.replace(part, self.file_of(rank))  # the folder never holds half a trace

    def _missing(self, world: int) -> List[int]:
        """Ranks whose file of this recording is not there yet; an older one does not count."""

        def there(rank: int) -> bool:
            try:
                return os.stat(self.file_of(rank)).st_mtime >= self._began - 1
            except OSError:
                return False

        return [rank for rank in range(world) if not there(rank)]

    def _look(self, world: int) -> None:
        try:
            answer = self.answer(self.limit_s, world)
            if self.done:
                self.done(answer)
            else:
                _say("\n".join(answer.lines))
        except Exception as error:
            _say(f"knee: {error}")

    def answer(self, limit_s: Optional[float] = None, world: Optional[int] = None, **keys: Any) -> Trace:
        """What `knee trace` says. Waits for the files of all ranks, for at most limit_s, then takes those there are."""
        world = self.world_size if world is None else world
        until = time.monotonic() + (self.limit_s if limit_s is None else limit_s)
        missing = self._missing(world)
        while missing and time.monotonic() < until:
            time.sleep(0.1)
            missing = self._missing(world)
        there = [self.file_of(rank) for rank in range(world) if rank not in missing]
        if missing:
            _say(f"knee: {self.folder}: {len(missing)} of {world} ranks have written nothing (first: rank {missing[0]})")
        if not there:
            raise KneeError(3, self.folder, "no rank has written a trace",
                            "the profiler's schedule needs wait + warmup + active steps before it writes")
        return trace(there, **keys)

    def wait(self, limit_s: Optional[float] = None) -> None:
        """Until the three lines are printed, or the time is over."""
        if self._thread and self._thread is not threading.current_thread():
            self._thread.join(self.limit_s if limit_s is None else limit_s)


class profile:
    """torch.profiler with the settings that knee reads best: the same few steps on every rank, CPU and CUDA, shapes,
    one .json.gz a rank. step() goes after each training step. Fewer steps than wait + warmup + 1 record nothing."""

    def __init__(self, folder: str, steps: int = 5, wait: int = 2, warmup: int = 2, rank: Optional[int] = None,
                 limit_s: float = 120.0, done: Optional[Done] = None):
        from torch.profiler import ProfilerActivity, profile as torch_profile, schedule  # torch only when it is used
        import torch

        self.folder, self.handler = folder, trace_handler(folder, limit_s, done, rank)
        self._need = wait + warmup + steps
        self._steps = 0
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
        self._profile: Any = torch_profile(
            activities=activities,
            schedule=schedule(wait=wait, warmup=warmup, active=steps, repeat=1),
            record_shapes=True,
            on_trace_ready=self.handler,
        )

    @property
    def file(self) -> str:
        return self.handler.file_of(self.handler.rank)

    def __enter__(self) -> "profile":
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)
        if self._steps < self._need and self.handler.rank == 0:
            _say(f"knee: {self._steps} steps were run and {self._need} are needed: wait + warmup + steps")

    def step(self) -> None:
        self._steps += 1
        self._profile.step()

    def report(self, limit_s: Optional[float] = None, **keys: Any) -> Optional[Trace]:
        """On rank 0 what knee trace says of all ranks' files, waited for at most limit_s; None on the others. There is
        no barrier: it may be called on rank 0 alone."""
        return self.handler.answer(limit_s, **keys) if self.handler.rank == 0 else None

    def answer(self, **keys: Any) -> Trace:
        """As report(), on any rank."""
        return self.handler.answer(**keys)


def _distributed() -> Any:
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    return dist if dist is not None and dist.is_available() and dist.is_initialized() else None


def rank_of() -> int:
    dist = _distributed()
    return int(dist.get_rank()) if dist else int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))


def world_size_of() -> int:
    dist = _distributed()
    return int(dist.get_world_size()) if dist else int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


class Steps:
    """Profiles steps at_step .. at_step + steps - 1 of a trainer that calls begin() and end() around each. After the last
    one the answer's numbers go to `log`. Whatever fails is printed, and the trainer goes on."""

    def __init__(self, folder: str, at_step: int = 50, steps: int = 3, warmup: int = 2, limit_s: float = 120.0):
        self.folder, self.at_step, self.steps, self.warmup, self.limit_s = folder, at_step, steps, warmup, limit_s
        self.handler: Optional[trace_handler] = None
        self._profile: Any = None

    def begin(self, step: int, done: Done) -> None:
        """Before training step number `step`, from 0 on."""
        if step != max(0, self.at_step - self.warmup) or self.handler:
            return
        try:
            import torch
            from torch.profiler import ProfilerActivity, profile as torch_profile, schedule

            self.handler = trace_handler(self.folder, self.limit_s, done)
            activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
            self._profile = torch_profile(
                activities=activities, record_shapes=True, on_trace_ready=self.handler,
                schedule=schedule(wait=0, warmup=min(self.at_step, self.warmup), active=self.steps, repeat=1),
            )
            self._profile.__enter__()
        except Exception as error:
            self._profile = None
            _say(f"knee: {self.folder}: not recorded: {error}")

    def end(self, step: int) -> None:
        """After training step number `step`."""
        if not self._profile:
            return
        try:
            self._profile.step()
            if step + 1 >= self.at_step + self.steps:
                self.stop()
        except Exception as error:
            _say(f"knee: {self.folder}: not recorded: {error}")

    def stop(self) -> None:
        """At the end of training: what was recorded so far is written."""
        recorder, self._profile = self._profile, None
        try:
            if recorder:
                recorder.__exit__(None, None, None)
        except Exception as error:
            _say(f"knee: {self.folder}: not recorded: {error}")
