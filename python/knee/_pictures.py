# SPDX-License-Identifier: MIT
"""What a notebook shows: the verdict, the picture, the table. Plain SVG in the colours of the page."""
from __future__ import annotations

import html as _html
import math
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from ._result import Answer

# The colours of the page (web/style.css).
_COMPUTE, _TRANSFER, _WAIT, _COPY, _INPUT, _HOST, _IDLE = (
    "#2f6fab", "#d1495b", "#edae49", "#8d6a9f", "#66a182", "#7d8597", "#c9cdd2",
)
_LABELS = [
    ("compute_s", "compute", _COMPUTE),
    ("transfer_s", "transfer", _TRANSFER),
    ("wait_s", "wait", _WAIT),
    ("exposed_copy_s", "copies", _COPY),
    ("starved_input_s", "input", _INPUT),
    ("host_bound_s", "host", _HOST),
    ("idle_s", "idle", _IDLE),
]
_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 560, 220, 52, 28


def _esc(value: object) -> str:
    return _html.escape(str(value), quote=True)


def _number(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, float)):
        return f"{value:.3g}" if isinstance(value, float) and abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def _svg(body: str, title: str, height: float = _HEIGHT) -> str:
    return (
        f'<svg role="img" aria-label="{_esc(title)}" viewBox="0 0 {_WIDTH} {height:g}" width="{_WIDTH}" '
        f'style="max-width:100%;font:12px sans-serif">{body}</svg>'
    )


def _text(x: float, y: float, words: object, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="currentColor">{_esc(words)}</text>'


def _curve(
    points: Sequence[Tuple[float, float]],
    title: str,
    y_name: str,
    band: Sequence[Tuple[float, float, float]] = (),
    mark: Optional[float] = None,
) -> str:
    """y over the number of GPUs, which goes by powers; of several runs with one count the fastest."""
    pick = max if y_name == "efficiency" else min
    points = sorted({x: pick(y for at, y in points if at == x) for x, _ in points}.items())
    points = [p for p in points if p[0] > 0 and math.isfinite(p[1])]
    if len(points) < 2:
        return ""
    band = [(*points[-1], points[-1][1]), *band] if band and band[0][0] > points[-1][0] else band
    xs = [math.log(x) for x, _ in points] + [math.log(x) for x, _, _ in band]
    top = max([y for _, y in points] + [high for _, _, high in band]) * 1.05 or 1.0
    low, span = min(xs), (max(xs) - min(xs)) or 1.0

    def place(x: float, y: float) -> Tuple[float, float]:
        return (
            _LEFT + (math.log(x) - low) / span * (_WIDTH - _LEFT - 16),
            8 + (1 - y / top) * (_HEIGHT - _BOTTOM - 8),
        )

    def path(line: Sequence[Tuple[float, float]]) -> str:
        return " ".join("%.1f,%.1f" % place(x, y) for x, y in line)

    body = f'<line x1="{_LEFT}" y1="{_HEIGHT - _BOTTOM}" x2="{_WIDTH - 16}" y2="{_HEIGHT - _BOTTOM}" stroke="#8888"/>'
    if band:
        outline = [(x, h) for x, _, h in band] + [(x, l) for x, l, _ in reversed(band)]
        body += f'<polygon points="{path(outline)}" fill="{_COMPUTE}" opacity="0.2"/>'
    body += f'<polyline points="{path(points)}" fill="none" stroke="{_COMPUTE}" stroke-width="2"/>'
    for x, y in points:
        px, py = place(x, y)
        body += f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{_COMPUTE}"><title>{_number(x)}: {_number(y)}</title></circle>'
        body += _text(px, _HEIGHT - _BOTTOM + 16, _number(x), "middle")
    if mark and min(x for x, _ in points) <= mark <= max(x for x, _ in points):
        px, _ = place(mark, 0)
        body += f'<line x1="{px:.1f}" y1="8" x2="{px:.1f}" y2="{_HEIGHT - _BOTTOM}" stroke="{_TRANSFER}" stroke-dasharray="4 3"/>'
        body += _text(px + 4, 18, f"knee {_number(mark)}") if px < _WIDTH - 90 else _text(px - 4, 18, f"knee {_number(mark)}", "end")
    highest = f"{100 * top:.0f}%" if y_name == "efficiency" else f"{_number(top)} s"
    body += _text(_LEFT - 6, 16, highest, "end") + _text(_LEFT - 6, _HEIGHT - _BOTTOM, "0", "end")
    body += _text(_LEFT, _HEIGHT + 8, title)
    return _svg(body, title, _HEIGHT + 14)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms"


def _bars(rows: Sequence[Tuple[str, List[Tuple[float, str, str]]]], title: str) -> str:
    """One bar a row, stacked of (length, name, colour)."""
    most = max((sum(part[0] for part in parts) for _, parts in rows), default=0.0)
    if not most > 0:
        return ""
    body, left = "", 220.0 if any(len(name) > 18 for name, _ in rows) else 150.0
    for i, (name, parts) in enumerate(rows):
        x, y = left, 4 + 20.0 * i
        body += _text(left - 6, y + 12, name if len(name) < 33 else name[:31] + "…", "end")
        for length, what, colour in parts:
            wide = length / most * (_WIDTH - left - 70)
            body += (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(wide, 0):.1f}" height="15" fill="{colour}">'
                f"<title>{_esc(what)}</title></rect>"
            )
            x += wide
        body += _text(x + 4, y + 12, _seconds(sum(p[0] for p in parts)))
    return _svg(body, title, 8 + 20.0 * len(rows))


def _legend(labels: Sequence[Tuple[str, str, str]]) -> str:
    return " ".join(
        f'<span style="white-space:nowrap"><span style="display:inline-block;width:.8em;height:.8em;background:{c}">'
        f"</span> {_esc(name)}</span>"
        for _, name, c in labels
    )


def _predict(data: Dict[str, Any]) -> str:
    points = [(r["workers"], r["efficiency"]) for r in data.get("rows", []) if r.get("efficiency") is not None]
    return _curve(points, "efficiency over GPUs", "efficiency", mark=(data.get("knee") or {}).get("tolerance_workers"))


def _plan(data: Dict[str, Any]) -> str:
    points = [(r["gpus"], r["efficiency"]) for r in data.get("rows", []) if r.get("efficiency") is not None]
    if len(points) > 1:
        return _curve(points, "efficiency over GPUs", "efficiency", mark=(data.get("verdict") or {}).get("knee_gpus"))
    best = [found for r in data.get("rows", []) for found in r.get("best") or []][:5]
    names = [p.get("plan", "") for p in data.get("plans", [])]
    kinds = [k for k in (best[0].get("parts_s") or {} if best else {}) if any((b["parts_s"].get(k) or 0) > 0 for b in best)]
    labels = [(k, k, [c for _, _, c in _LABELS][i % len(_LABELS)]) for i, k in enumerate(kinds)]
    rows = [(name, [(float(b["parts_s"].get(k) or 0), f"{k} {_seconds(b['parts_s'].get(k) or 0)}", c) for k, _, c in labels]) for name, b in zip(names, best)]
    return _bars(rows, "where the step goes") + f"<div>{_legend(labels)}</div>" if rows else ""


def _trace(data: Dict[str, Any]) -> str:
    rows = []
    for row in data.get("ranks", [])[:32]:
        parts = [(float(row.get(key) or 0), f"{name} {_number(row.get(key))} s", c) for key, name, c in _LABELS]
        rows.append((f"rank {row.get('rank')}", parts))
    return _bars(rows, "what each rank did") + f"<div>{_legend(_LABELS)}</div>"


def _replay(data: Dict[str, Any]) -> str:
    rows = [("as measured", [(float(data["measured_step_s"]), "measured", _IDLE)])]
    for row in data.get("changes", []):
        band = f"{row['name']}: {_number(row.get('low_s'))} to {_number(row.get('high_s'))} s"
        rows.append((row.get("words") or row["name"], [(float(row["step_s"]), band, _COMPUTE)]))
    return _bars(rows, "the step with each change")


def _scale(data: Dict[str, Any]) -> str:
    points = [(p["workers"], p["step_s"]) for p in data.get("points", []) if p.get("step_s")]
    band = [
        (f["workers"], f["low_s"], f["high_s"])
        for f in data.get("forecast", [])
        if f.get("low_s") is not None and f.get("high_s") is not None
    ]
    mark = (data.get("knee") or {}).get("measured_workers")
    return _curve(points, "step over GPUs", "step", band, mark)


_PICTURES: Dict[str, Callable[[Dict[str, Any]], str]] = {
    "predict": _predict, "plan": _plan, "trace": _trace, "replay": _replay, "scale": _scale,
}


# What people look at first, of each command; of others the first columns.
_COLUMNS = {
    "predict": ["workers", "step_s", "throughput_per_s", "efficiency", "exposed_comm_s", "ratio"],
    "plan": ["gpus", "rank", "tp", "pp", "dp", "micro_batch", "shard", "recompute", "step_s", "mfu", "memory_gb"],
    "trace": ["rank", "window_s", "compute_s", "transfer_s", "wait_s", "host_bound_s", "idle_s"],
    "replay": ["name", "step_s", "low_s", "high_s", "gain"],
    "scale": ["workers", "step_s", "tokens_per_s", "speed_up", "efficiency"],
}


def _table(command: str, rows: List[Dict[str, Any]], most: int = 12) -> str:
    there = [k for k in (rows[0] if rows else {}) if not isinstance(rows[0][k], (dict, list))]
    columns = [k for k in _COLUMNS.get(command, []) if k in there] or there[:8]
    if not columns:
        return ""
    head = "".join(f"<th>{_esc(c)}</th>" for c in columns)
    lines = "".join("<tr>" + "".join(f"<td>{_esc(_number(r.get(c)))}</td>" for c in columns) + "</tr>" for r in rows[:most])
    more = f"<div>{most} of {len(rows)} rows; all of them: .to_frame()</div>" if len(rows) > most else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>{more}"


def html(answer: "Answer") -> str:
    data = answer.to_dict()
    picture = _PICTURES.get(answer.command, lambda _: "")(data)
    limit = f"<p><b>{_esc(answer.limit)}</b></p>" if answer.limit and answer.limit.where else ""  # one that the question named
    first, *others = answer.lines or [""]
    said = f"<b>{_esc(first)}</b>" + "".join(f"<br>{_esc(line)}" for line in others)
    return f"<div><p>{said}</p>{limit}{picture}{_table(answer.command, answer.to_rows())}</div>"
