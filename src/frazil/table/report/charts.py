"""The charts of a report, as the JSON that Plotly draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from frazil.format.html_text import html_text, size_text
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import count_in
from frazil.table.report.layout import utc_text

Chart = dict[str, Any]

_MOST_SNAPSHOTS: Final = 1000
_MOST_PARTITIONS: Final = 30
_FEW: Final = 5
_BAR: Final = 20
"""The height of a partition's bar, in pixels."""
_COLORS: Final = ("#2a6f97", "#e07a5f", "#81b29a", "#f2cc8f")
_LAYOUT: Final[Chart] = {
    "margin": {"l": 60, "r": 60, "t": 40, "b": 60},
    "paper_bgcolor": "rgba(0,0,0,0)",
    "plot_bgcolor": "rgba(0,0,0,0)",
    "font": {"family": "system-ui, sans-serif", "size": 12},
    "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "traceorder": "normal"},
    "height": 320,
}


def snapshots_chart(snapshots: Sequence[Snapshot]) -> Chart:
    """Return rows, data files and delete files of the newest snapshots over time."""
    newest = sorted(snapshots, key=lambda each: each.timestamp_ms)[-_MOST_SNAPSHOTS:]
    times = [utc_text(each.timestamp_ms, "%Y-%m-%d %H:%M:%S.%f") for each in newest]
    lines = {
        "rows, deleted ones included": ("total-records", "y"),
        "data files": ("total-data-files", "y2"),
        "delete files": ("total-delete-files", "y2"),
    }
    operations = [html_text(each.operation or "?") for each in newest]
    traces: list[Chart] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "line": {"shape": "hv", "color": color},
            "name": name,
            "x": times,
            "y": [count_in(each.summary, key) for each in newest],
            "yaxis": axis,
            "text": operations,
            "hovertemplate": "%{y:,} " + name + "<br>%{text}<br>%{x}<extra></extra>",
        }
        for (name, (key, axis)), color in zip(lines.items(), _COLORS, strict=False)
    ]
    return _chart(
        traces,
        xaxis={"title": {"text": "committed at (UTC)", "standoff": 8}, "automargin": True},
        yaxis={
            "title": {"text": "rows"},
            **_whole_numbers(traces[0]["y"]),
        },
        yaxis2={
            "title": {"text": "files"},
            "overlaying": "y",
            "tickmode": "auto",
            **_whole_numbers(traces[1]["y"] + traces[2]["y"]),
            "side": "right",
            "showgrid": False,
        },
    )


def sizes_chart(sizes: pl.Series, *, target: int) -> Chart:
    """Return how many data files have which size, in powers of two."""
    powers = np.floor(np.log2(np.maximum(sizes.to_numpy(), 1))).astype(int)
    goal = int(np.log2(target))
    first, last = (
        (min(powers.min(), goal), max(powers.max(), goal)) if len(powers) else (goal, goal)
    )
    counts = np.bincount(powers - first, minlength=last - first + 1)
    names = [size_text(2.0**power).replace(".0 ", " ") for power in range(first, last + 1)]
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
    title = f"size of a file, to twice as much<br>the target is {size_text(target)}"
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
        yaxis={"title": {"text": "data files"}, **_whole_numbers(counts.tolist())},
    )


def deletes_chart(partitions: pl.DataFrame) -> Chart:
    """Return the shares of deleted rows in the partitions that have most, a bar for each."""
    rows = pl.col("rows").clip(lower_bound=1)
    loads = (
        partitions.with_columns(
            (100 * pl.col("position_rows") / rows).clip(0, 100).alias("by_position"),
            (100 * pl.col("equality_rows") / rows).clip(0, 100).alias("by_equality"),
        )
        .filter(pl.col("by_position") + pl.col("by_equality") > 0)
        .sort(pl.col("by_position") + pl.col("by_equality"), "partition", descending=[True, False])
        .head(_MOST_PARTITIONS)
    )
    names = [html_text(name or "the table") for name in loads["partition"]]
    traces = [
        {
            "type": "bar",
            "orientation": "h",
            "name": name,
            "x": [round(share, 3) for share in loads[column]],
            "y": names,
            "marker": {"color": color},
            "hovertemplate": "%{x:.3g} % of %{y}<extra></extra>",
        }
        for (column, name), color in zip(
            {"by_position": "by position", "by_equality": "by equality, at most"}.items(),
            _COLORS,
            strict=False,
        )
    ]
    nothing = {"text": "no row is deleted", "showarrow": False, "xref": "paper", "yref": "paper"}
    return _chart(
        traces,
        barmode="stack",
        height=max(_LAYOUT["height"], 120 + _BAR * len(names)),
        annotations=[] if names else [{**nothing, "x": 0.5, "y": 0.5}],
        xaxis={"title": {"text": "rows deleted, %"}, "rangemode": "tozero", "visible": bool(names)},
        yaxis={
            "type": "category",
            "automargin": True,
            "autorange": "reversed",
            "visible": bool(names),
        },
    )


def _whole_numbers(values: Sequence[int | None]) -> Chart:
    """An axis from 0 whose marks are whole numbers, however small the values are."""
    axis: Chart = {"rangemode": "tozero", "tickformat": ",d", "automargin": True}
    if max((value or 0 for value in values), default=0) <= _FEW:
        axis |= {"tickmode": "linear", "tick0": 0, "dtick": 1}
    return axis


def _chart(traces: list[Chart], **layout: Any) -> Chart:
    return {"data": traces, "layout": {**_LAYOUT, **layout}}
