"""The charts of a report, as the JSON that Plotly draws."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import polars as pl

from frazil.format.html_text import html_size, html_text
from frazil.format.snapshots import Snapshot

Chart = dict[str, Any]

_MOST_SNAPSHOTS: Final = 1000
_MOST_PARTITIONS: Final = 30
_COLORS: Final = ("#2a6f97", "#e07a5f", "#81b29a", "#f2cc8f")
_LAYOUT: Final[Chart] = {
    "margin": {"l": 60, "r": 60, "t": 20, "b": 60},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "legend": {"orientation": "h", "y": 1.12, "traceorder": "normal"},
    "height": 320,
}


def snapshots_chart(snapshots: Sequence[Snapshot]) -> Chart:
    """Return rows, data files and delete files of the newest snapshots over time."""
    newest = sorted(snapshots, key=lambda each: each.timestamp_ms)[-_MOST_SNAPSHOTS:]
    times = [
        datetime.fromtimestamp(each.timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        for each in newest
    ]
    lines = {
        "rows, deleted ones included": ("total-records", "y"),
        "data files": ("total-data-files", "y2"),
        "delete files": ("total-delete-files", "y2"),
    }
    operations = [html_text(each.operation or "?") for each in newest]
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "line": {"shape": "hv", "color": color},
            "name": name,
            "x": times,
            "y": [_count(each, key) for each in newest],
            "yaxis": axis,
            "text": operations,
            "hovertemplate": "%{y:,} " + name + "<br>%{text}<br>%{x}<extra></extra>",
        }
        for (name, (key, axis)), color in zip(lines.items(), _COLORS, strict=False)
    ]
    return _chart(
        traces,
        xaxis={"title": {"text": "committed at (UTC)"}},
        yaxis={"title": {"text": "rows"}, "rangemode": "tozero", "tickformat": ",d"},
        yaxis2={
            "title": {"text": "files"},
            "overlaying": "y",
            "tickmode": "auto",
            "tickformat": ",d",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
        },
    )


def sizes_chart(sizes: pl.Series, *, target: int) -> Chart:
    """Return how many data files have which size, in powers of two.

    Args:
        sizes: in bytes.
        target: the size that files should have.
    """
    powers = np.floor(np.log2(np.maximum(sizes.to_numpy(), 1))).astype(int)
    goal = int(np.log2(target))
    first, last = (
        (min(powers.min(), goal), max(powers.max(), goal)) if len(powers) else (goal, goal)
    )
    counts = np.bincount(powers - first, minlength=last - first + 1)
    names = [html_size(2.0**power).replace(".0 ", " ") for power in range(first, last + 1)]
    is_small = np.arange(first, last + 1) < goal - 1
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": names,
            "y": np.where(chosen, counts, 0).tolist(),
            "marker": {"color": color},
            "hovertemplate": "%{y:,} files of %{x} to twice as much<extra></extra>",
        }
        for name, chosen, color in (
            ("too small", is_small, _COLORS[1]),
            ("half the target or more", ~is_small, _COLORS[0]),
        )
    ]
    title = f"size of a file, to twice as much; the target is {html_size(target)}"
    return _chart(
        traces,
        barmode="stack",
        showlegend=True,
        xaxis={
            "title": {"text": title.replace(".0 ", " "), "standoff": 12},
            "type": "category",
            "automargin": True,
            "categoryarray": names,
            "categoryorder": "array",
        },
        yaxis={"title": {"text": "data files"}, "rangemode": "tozero", "tickformat": ",d"},
    )


def deletes_chart(partitions: pl.DataFrame) -> Chart:
    """Return the shares of deleted rows of the partitions that have most of them.

    Args:
        partitions: of an `OptimizingPlan`.
    """
    rows = pl.col("rows").clip(lower_bound=1)
    loads = (
        partitions.with_columns(
            (100 * pl.col("position_rows") / rows).clip(0, 100).alias("by_position"),
            (100 * pl.col("equality_rows") / rows).clip(0, 100).alias("by_equality"),
        )
        .sort(pl.col("by_position") + pl.col("by_equality"), "partition", descending=[True, False])
        .head(_MOST_PARTITIONS)
    )
    names = [html_text(name or "the table") for name in loads["partition"]]
    traces = [
        {
            "type": "bar",
            "name": name,
            "x": names,
            "y": [round(share, 3) for share in loads[column]],
            "marker": {"color": color},
            "hovertemplate": "%{y:.3g} % of %{x}<extra></extra>",
        }
        for (column, name), color in zip(
            {"by_position": "by position", "by_equality": "by equality, at most"}.items(),
            _COLORS,
            strict=False,
        )
    ]
    return _chart(
        traces,
        barmode="stack",
        xaxis={"type": "category", "automargin": True},
        yaxis={"title": {"text": "rows deleted, %"}, "rangemode": "tozero"},
    )


def _chart(traces: list[Chart], **layout: Any) -> Chart:
    return {"data": traces, "layout": {**_LAYOUT, **layout}}


def _count(snapshot: Snapshot, key: str) -> int | None:
    text = str((snapshot.summary or {}).get(key, ""))
    return int(text) if text.isdecimal() else None
