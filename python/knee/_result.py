# SPDX-License-Identifier: MIT
"""Answers: mappings whose keys are attributes too, with rows for pandas and pictures for notebooks."""
from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple, Type, Union

from . import _pictures
from ._errors import KneeError, UsageError

# A question, enough to ask it again: command, words, traces as (name, file), keys.
Asked = Tuple[str, Tuple[str, ...], Tuple[Tuple[str, str], ...], Dict[str, Any]]

# The table of each answer that people want as rows; of others it is the first list of objects.
_ROWS = {
    "predict": "rows", "tax": "axes", "collective": "rows", "fit": "parameters", "trace": "ranks", "diff": "labels",
    "replay": "changes", "scale": "points", "validate": "rows",
}


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value


def flat(row: Mapping[str, Any], before: str = "") -> Dict[str, Any]:
    """Nested objects as memory_total_bytes; lists of plain values stay, lists of objects are left out."""
    out: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            out.update(flat(value, f"{before}{key}_"))
        elif not (isinstance(value, list) and any(isinstance(item, Mapping) for item in value)):
            out[f"{before}{key}"] = value
    return out


class Record(Mapping):  # type: ignore[type-arg]
    """A JSON object: record["step_s"] and record.step_s."""

    __slots__ = ("_data",)
    _data: Dict[str, Any]

    def __init__(self, data: Dict[str, Any]):
        object.__setattr__(self, "_data", data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _wrap(self._data[name])
        except KeyError:
            raise AttributeError(f"no {name!r} in this answer; there are: {', '.join(self._data)}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrap(self._data[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._data})

    def __eq__(self, other: object) -> bool:
        return bool(self._data == (other._data if isinstance(other, Record) else other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self._data,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data!r})"

    def to_dict(self) -> Dict[str, Any]:
        """What the program prints with --json."""
        return self._data

    def to_json(self, indent: Optional[int] = 2) -> str:
        return json.dumps(self._data, indent=indent)


class Rows(List[Dict[str, Any]]):
    """The main table. Calling it gives it too: rows() is how it was written before."""

    def __call__(self) -> List[Dict[str, Any]]:
        return list(self)


class Answer(Record):
    """What a command found. `limit` is the error of a limit that the question set and the answer does not keep."""

    __slots__ = ("command", "limit", "made", "_asked")

    def __init__(
        self,
        command: str,
        data: Dict[str, Any],
        limit: Optional[KneeError] = None,
        made: Optional[Dict[str, str]] = None,
        asked: Optional[Asked] = None,
    ):
        super().__init__(data)
        for name, value in (("command", command), ("limit", limit), ("made", made or {}), ("_asked", asked)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.command, self._data, self.limit, self.made, self._asked)

    def __getitem__(self, name: str) -> Any:
        if name not in self._data and isinstance(getattr(type(self), name, None), property):
            return getattr(self, name)  # answer["step_s"] is answer.step_s, also where it is found, not printed
        return super().__getitem__(name)

    # ---- What it says ----

    def _place(self, *names: str) -> str:
        said, verdict = self._data.get("answer"), self._data.get("verdict")
        for place in (said if isinstance(said, dict) else {}, self._data, verdict if isinstance(verdict, dict) else {}):
            for name in names:
                if isinstance(place.get(name), str) and place[name]:
                    return str(place[name])
        return ""

    @property
    def headline(self) -> str:
        """What to do, in one line."""
        return self._place("headline", "do") or self.sentence

    @property
    def title(self) -> str:
        """What the question was."""
        return self._place("title")

    @property
    def lines(self) -> List[str]:
        """What voids the answer, if anything does; then headline, reason and effect."""
        found = [self._place("void"), self.headline, self._place("reason", "why"), self._place("effect", "buys")]
        return [line for line in found if line]

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        return self._place("sentence", "headline", "do")

    def __str__(self) -> str:
        return self._text("text") if self._asked else "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"<knee {self.command}: {self.headline or self.title or f'{len(self._table())} rows'}>"

    def _repr_html_(self) -> str:
        return _pictures.html(self)

    # ---- As a table, as a file ----

    def _table(self) -> List[Dict[str, Any]]:
        table = self._data.get(_ROWS.get(self.command, "rows"))
        if not isinstance(table, list):
            lists = [v for v in self._data.values() if isinstance(v, list) and v and isinstance(v[0], dict)]
            table = lists[0] if lists else []
        return [row for row in table if isinstance(row, dict)]

    @property
    def rows(self) -> Rows:
        """The main table as the program's JSON has it, one dict a row."""
        return Rows(self._table())

    def to_rows(self) -> List[Dict[str, Any]]:
        """The main table, flat: plain values under names such as memory_total_bytes."""
        return [flat(row) for row in self._table()]

    def to_frame(self) -> Any:
        """The main table as a pandas DataFrame, one plain value a cell."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_frame() needs pandas (pip install pandas); to_rows() gives the same as a list of dicts") from error
        return pandas.DataFrame(self.to_rows())

    def _text(self, format: str) -> str:
        from ._commands import answer_text

        if not self._asked:
            raise UsageError(2, self.command, "this answer does not know its question", "ask again")
        return answer_text(self._asked, format)

    def save(self, file: Union[str, Path]) -> Path:
        """Writes it: .html is the page of `knee report`, .json, .csv, .md and .txt are what the command prints."""
        path = Path(file)
        formats = {".csv": "csv", ".md": "markdown", ".txt": "text"}
        if path.suffix == ".html":
            self._save_page(path)
        elif path.suffix == ".json":
            path.write_text(self.to_json() + "\n", encoding="utf-8")
        elif path.suffix in formats:
            path.write_text(self._text(formats[path.suffix]), encoding="utf-8")
        else:
            raise UsageError(2, str(path), "no format ends like this", "use .html, .json, .csv, .md or .txt")
        return path

    def _save_page(self, path: Path) -> None:
        from ._commands import program_words
        from ._program import run

        if not self._asked:
            raise UsageError(2, self.command, "this answer does not know its question", "ask again")
        run([*program_words(self._asked), "--html", str(path)])


class Plan(Answer):
    """plan: the best plan at the GPU count that is worth it, and all others that were found."""

    __slots__ = ()

    def _row(self) -> Dict[str, Any]:
        rows = [row for row in self._data.get("rows", []) if isinstance(row, dict)]
        wanted = (self._data.get("verdict") or {}).get("gpus")
        fitting = [row for row in rows if row.get("fits") and row.get("best")]
        return next((row for row in fitting if row.get("gpus") == wanted), fitting[-1] if fitting else {})

    def _table(self) -> List[Dict[str, Any]]:
        return [
            {"gpus": row.get("gpus"), "rank": i + 1, **flat_plan(found), "efficiency": row.get("efficiency"),
             "cost_per_billion_tokens": row.get("cost_per_billion_tokens")}
            for row in self._data.get("rows", [])
            for i, found in enumerate(row.get("best") or [])
        ]

    @property
    def rows(self) -> Rows:
        return Rows(row for row in self._data.get("rows", []) if isinstance(row, dict))

    @property
    def fits(self) -> bool:
        return bool(self._row())

    @property
    def best(self) -> Record:
        """The best plan, flat: best.tp, best.dp, best.step_s, best.memory_gb."""
        best = self._row().get("best")
        if not best:
            raise AttributeError(f"no plan fits: {self.headline}")
        return Record(flat_plan(best[0]))

    def _best(self, key: str) -> Optional[float]:
        value = self.best.get(key) if self.fits else None
        return None if value is None else float(value)

    @property
    def step_s(self) -> Optional[float]:
        return self._best("step_s")

    @property
    def mfu(self) -> Optional[float]:
        """Model FLOPs utilisation, attention counted causally."""
        return self._best("mfu")

    @property
    def memory_gb(self) -> Optional[float]:
        return self._best("memory_gb")

    @property
    def oom_risk(self) -> Optional[float]:
        """Probability that it runs out of memory, 0 to 1."""
        fits = self._best("fit_probability")
        return None if fits is None else 1 - fits

    @property
    def tokens_per_s(self) -> Optional[float]:
        return self._best("tokens_per_s")

    @property
    def gpus(self) -> Optional[int]:
        """The GPU count that the plan is for."""
        return int(self._row()["gpus"]) if self._row() else None

    def emit(self, framework: str) -> str:
        """The best plan as launch flags: megatron, deepspeed, torchtitan, nemo."""
        from ._commands import ask

        plan = (self._row().get("best") or [{}])[0].get("plan")
        if not plan or not self._asked:
            raise UsageError(2, "emit", "there is no plan that fits", "use more GPUs")
        names = {"seq_par": "sequence_parallel"}
        left = ("dp", "etp") + (() if plan.get("pp", 1) > 1 else ("schedule",))
        keys: Dict[str, Any] = {**self._asked[3], **{names.get(k, k): v for k, v in plan.items() if k not in left}, "emit": framework}
        return str(ask("plan", **keys)["launch"])


def flat_plan(found: Dict[str, Any]) -> Dict[str, Any]:
    """Degrees first, then step, rate and memory, then where the step goes."""
    memory = found.get("memory") or {}

    def gb(key: str) -> Optional[float]:
        return None if memory.get(key) is None else memory[key] / 1e9

    return {
        **{k: v for k, v in (found.get("plan") or {}).items() if k != "gpus"},
        "step_s": found.get("step_s"), "low_s": found.get("low_s"), "high_s": found.get("high_s"),
        "tokens_per_s": found.get("tokens_per_s"), "mfu": found.get("mfu_causal_attention"), "fits": found.get("fits"),
        "memory_gb": gb("total_bytes"), "capacity_gb": gb("capacity_bytes"), "fit_probability": memory.get("fit_probability"),
        "limited_by": found.get("binding"),
        **{f"{k.replace(' ', '_').replace('-', '_')}_s": v for k, v in (found.get("parts_s") or {}).items()},
    }


class Trace(Answer):
    """trace: what recorded steps say."""

    __slots__ = ()

    def _verdict(self, key: str) -> Any:
        return (self._data.get("verdict") or {}).get(key)

    @property
    def cause(self) -> Optional[str]:
        """What limits the step: exposed communication, straggler, starved input, ..."""
        return self._verdict("suspect")  # type: ignore[no-any-return]

    @property
    def step_s(self) -> Optional[float]:
        return self._verdict("step_s")  # type: ignore[no-any-return]

    @property
    def efficiency(self) -> Optional[float]:
        return self._verdict("efficiency")  # type: ignore[no-any-return]

    @property
    def late_ranks(self) -> List[int]:
        return [int(rank) for rank in self._verdict("late_ranks") or []]

    def what_if(self, **changes: Any) -> Answer:
        """The same recording with something changed: what_if(wire="bf16").step_s"""
        from ._commands import ask

        if not self._asked:
            raise UsageError(2, "what_if", "this answer does not know its traces", "ask again")
        return ask("replay", traces=self._asked[2], **changes)

    def metrics(self) -> Dict[str, float]:
        """At most 20 numbers per step, for W&B, MLflow or TensorBoard."""
        out: Dict[str, float] = {}
        ranks, steps = self._data.get("ranks") or [], self._data.get("steps") or []
        count = max(1, len({s.get("step") for s in steps if s.get("complete", True)}))
        for key in ("step_s", "efficiency", "ratio", "overlap", "stall_cost_per_day", "lever_gain"):
            if isinstance(self._verdict(key), (int, float)):
                out[f"knee/{key}"] = float(self._verdict(key))
        for key in ("compute_s", "transfer_s", "wait_s", "exposed_copy_s", "starved_input_s", "host_bound_s", "idle_s"):
            if ranks:
                out[f"knee/{key}"] = sum(float(r.get(key) or 0) for r in ranks) / len(ranks) / count
        out["knee/late_ranks"] = float(len(self.late_ranks))
        if self.late_ranks:
            out["knee/latest_rank"] = float(self.late_ranks[0])
        return out


class Replay(Answer):
    """replay: the recorded step with changes; step_s is with all of them."""

    __slots__ = ()

    @property
    def step_s(self) -> float:
        return float(self._data["step_s"])


CLASSES: Dict[str, Type[Answer]] = {"plan": Plan, "trace": Trace, "replay": Replay}
