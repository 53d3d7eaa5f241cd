# SPDX-License-Identifier: MIT
"""Records every rank of a torch job as docs/record.md says, then says what it found.

    with knee.torch.profile("runs") as prof:
        for batch in loader:
            train_step(batch)
            prof.step()
    prof.answer().verdict.sentence      # on rank 0, once all ranks are done
"""
from __future__ import annotations

import os
from typing import Any, Optional

from . import Answer, trace


class profile:
    """torch.profiler with the settings that knee reads best: the same few steps on every rank, CPU and CUDA, shapes,
    one .json.gz a rank. Steps before and after cost nothing. `step()` goes after each training step."""

    def __init__(self, folder: str, steps: int = 5, wait: int = 2, warmup: int = 2, rank: Optional[int] = None):
        from torch.profiler import ProfilerActivity, profile as torch_profile, schedule  # torch only when it is used
        import torch

        self.folder, self.rank = folder, _rank() if rank is None else rank
        self.file = os.path.join(folder, f"rank{self.rank}.json.gz")
        os.makedirs(folder, exist_ok=True)
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])
        self._profile = torch_profile(
            activities=activities,
            schedule=schedule(wait=wait, warmup=warmup, active=steps, repeat=1),
            record_shapes=True,
            on_trace_ready=self._write,
        )

    def _write(self, recorded: Any) -> None:
        part = f"{self.file[:-len('.json.gz')]}.part.json.gz"  # torch packs by the name's ending
        recorded.export_chrome_trace(part)
        os.replace(part, self.file)  # a folder never holds half a trace

    def __enter__(self) -> "profile":
        self._profile.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._profile.__exit__(*error)

    def step(self) -> None:
        self._profile.step()

    def answer(self, **keys: Any) -> Answer:
        """What knee trace says of the folder. Waits for the other ranks where there are some."""
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized():
            dist.barrier()
        return trace(self.folder, **keys)


def _rank() -> int:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return int(dist.get_rank())
    return int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")))
