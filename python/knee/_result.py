# SPDX-License-Identifier: MIT
"""An answer: attributes, a dict, rows for pandas, pictures in a notebook."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional

from . import _pictures

# The table of each answer that people want as rows.
_ROWS = {
    "predict": "rows",
    "tax": "axes",
    "plan": "rows",
    "collective": "rows",
    "fit": "parameters",
    "trace": "ranks",
    "diff": "labels",
    "replay": "changes",
    "scale": "points",
    "validate": "rows",
}


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value


class Record:
    """A JSON object whose keys are attributes: answer.verdict.sentence."""

    def __init__(self, data: Dict[str, Any]):
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _wrap(self._data[name])
        except KeyError:
            raise AttributeError(f"no {name!r} in this answer; there are: {', '.join(self._data)}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrap(self._data[name])

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._data]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._data == other._data

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data!r})"

    def to_dict(self) -> Dict[str, Any]:
        """What the program prints with --json."""
        return self._data


class Answer(Record):
    """What a command said. `limit` is the error of a limit that the question set and the answer does not keep."""

    def __init__(
        self,
        command: str,
        data: Dict[str, Any],
        limit: Optional[Exception] = None,
        text: Optional[Callable[[], str]] = None,
        made: Optional[Dict[str, str]] = None,
    ):
        super().__init__(data)
        self.command, self.limit, self.made = command, limit, made or {}
        self._text = text

    def rows(self) -> List[Dict[str, Any]]:
        """The answer's main table: pandas.DataFrame(answer.rows())."""
        table = self._data.get(_ROWS.get(self.command, "rows"), [])
        return [row for row in table if isinstance(row, dict)]

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        verdict = self._data.get("verdict", {})
        for place in (verdict if isinstance(verdict, dict) else {}, self._data):
            if place.get("sentence"):
                return str(place["sentence"])
        return ""

    def __str__(self) -> str:
        return self._text() if self._text else self.sentence

    def __repr__(self) -> str:
        return f"<knee {self.command}: {self.sentence}>"

    def _repr_html_(self) -> str:
        return _pictures.html(self)
