"""Draws the pictures of README and the pages as SVG, light and dark: `make plots`.

The plots are of the figures in bench/results/, which `python -m bench` wrote.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "results"
IMAGES = ROOT / "docs" / "images"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Colours:
    """What a picture is drawn with."""

    text: str
    dim: str
    line: str
    faster: str
    slower: str
    box: str
    strong: str


THEMES = {
    "light": Colours("#1f2933", "#5f6c7b", "#cbd2d9", "#0b7285", "#c05621", "#eef4f6", "#d3e9ee"),
    "dark": Colours("#e4e7eb", "#9aa5b1", "#4b5563", "#3bc9db", "#ed8936", "#26323a", "#1d4a54"),
}

SETTING = "One machine of two cores, Spark 4.1, local disk; the Java runtime is Iceberg 1.12."

QUERIES = {
    "TPC-DS, 99 queries": "TPC-DS, all 99 queries",
    "TPC-DS, 99 queries, after changes": "TPC-DS after changes of rows",
    "full scan": "Full scan, 10 million rows",
    "grouped sum": "Grouped sum",
    "selective filter": "Selective filter",
    "struct, list and map columns": "Struct, list and map columns",
    "warm read of 10 small files": "Read of 10 small files",
    "append 10M rows": "Append, 10 million rows",
    "append 10M rows, 50 partitions": "Append into 50 partitions",
    "warm append of 1 000 rows": "Append, 1 000 rows",
}
CHANGES = {
    "merge 1 %, MoR v2": "Merge 1 %, merge-on-read",
    "merge 1 %, CoW v2": "Merge 1 %, copy-on-write",
    "update 5 %, MoR v2": "Update 5 %, merge-on-read",
    "update 5 %, CoW v2": "Update 5 %, copy-on-write",
    "delete 1 %, positions v2": "Delete 1 %, position deletes",
    "delete 1 %, vectors v3": "Delete 1 %, deletion vectors",
    "1,000,000 changes in 20 batches": "Change stream, 1 million changes",
    "100 upsert commits by a long, after one more": "Read after 100 upserts",
    "stream of 200 commits, one batch": "Stream of 200 commits",
    "stream of 200 commits, 20 files a batch": "Stream, 20 files a batch",
    "compaction, 10,000,000 rows in 500 files, binpack": "Compaction of 500 files",
    "compaction, 10,000,000 rows in 500 files, sort": "The same, sorted",
    "expiry of 1,000 snapshots": "Expiry of 1 000 snapshots",
    "fast appends a second, 8 writers, sql catalog": "Commits by 8 writers, SQL",
    "fast appends a second, 8 writers, hadoop catalog": "Commits by 8 writers, folder",
}
"""Figures by the names that the bench gives them, without Spark's version; and their labels."""


@dataclass(frozen=True)
class Pair:
    """A measurement of both sides.

    Attributes:
        ratio: our time beside the Java runtime's; below 1 is faster.
    """

    label: str
    ours: str
    theirs: str
    ratio: float


def pairs(chosen: Mapping[str, str]) -> Iterator[Pair]:
    """The measurements that there are, of the chosen ones."""
    found = {
        figure["name"].split(" [")[0]: figure
        for path in sorted(RESULTS.glob("*.json"))
        for figure in json.loads(path.read_text())
        if "Java" in figure["against"] and figure["theirs"]
    }
    for name, label in chosen.items():
        if name not in found:
            print(f"no figure {name!r} in {RESULTS}", file=sys.stderr)
            continue
        ours, theirs, unit = (found[name][key] for key in ("ours", "theirs", "unit"))
        ratio = theirs / ours if unit == "/s" else ours / theirs
        yield Pair(label, amount(ours, unit), amount(theirs, unit), ratio)


def amount(value: float, unit: str) -> str:
    """A number with its unit."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f}{'' if unit == '/s' else ' '}{unit}"


def plot(title: str, measured: list[Pair], colours: Colours) -> str:
    """Bars from the Java runtime's time, to the left where Frazil is faster."""
    width, left, right, step, top = 860, 264, 160, 34, 84
    lowest = min(0.5, *(pair.ratio for pair in measured))
    highest = max(1.6, *(pair.ratio for pair in measured))
    inner = width - left - right
    low, high = math.log2(lowest) - 0.15, math.log2(highest) + 0.15

    def x(ratio: float) -> float:
        return left + (math.log2(ratio) - low) / (high - low) * inner

    bottom = top + step * len(measured)
    parts = [
        text(24, 30, title, colours.text, size=17, weight=600),
        text(24, 52, "Time beside Iceberg's Java runtime. Left of the line Frazil is faster.",
             colours.dim),
    ]  # fmt: skip
    for power in range(math.ceil(low), math.floor(high) + 1):
        at, stroke = x(2.0**power), colours.dim if power == 0 else colours.line
        parts.append(
            f'<line x1="{at:.1f}" y1="{top - 6}" x2="{at:.1f}" y2="{bottom}" stroke="{stroke}" '
            f'stroke-width="{1.5 if power == 0 else 1}"/>'
        )
        if inner / (high - low) > 30 or power % 2 == 0:
            label = "same" if power == 0 else f"{2**power}×" if power > 0 else f"1/{2**-power}"
            parts.append(text(at, top - 12, label, colours.dim, anchor="middle", size=12))
    for number, pair in enumerate(measured):
        y = top + step * number + step / 2
        ends = sorted((x(pair.ratio), x(1.0)))
        colour = colours.faster if pair.ratio <= 1 else colours.slower
        parts += [
            text(left - 14, y + 5, pair.label, colours.text, anchor="end", size=14),
            f'<rect x="{ends[0]:.1f}" y="{y - 9}" width="{max(ends[1] - ends[0], 2):.1f}" '
            f'height="18" rx="3" fill="{colour}"/>',
            text(width - 24, y + 5, f"{pair.ours} | {pair.theirs}", colours.dim,
                 anchor="end", size=13),
        ]  # fmt: skip
    parts += [
        text(width - 24, top - 12, "Frazil | Java", colours.dim, anchor="end", size=12),
        text(24, bottom + 26, SETTING, colours.dim, size=12),
    ]
    return svg(width, bottom + 42, title, parts)


def narrow_plot(title: str, measured: list[Pair], colours: Colours) -> str:
    """The same bars for a phone: each has its label and its times above it."""
    width, margin, step, top = 400, 16, 46, 104
    lowest = min(0.5, *(pair.ratio for pair in measured))
    highest = max(1.6, *(pair.ratio for pair in measured))
    low, high = math.log2(lowest) - 0.15, math.log2(highest) + 0.15

    def x(ratio: float) -> float:
        return margin + (math.log2(ratio) - low) / (high - low) * (width - 2 * margin)

    bottom = top + step * len(measured)
    parts = [
        text(margin, 28, title, colours.text, size=17, weight=600),
        text(margin, 50, "Time beside Iceberg's Java runtime, Frazil | Java.", colours.dim),
        text(margin, 69, "Left of the line Frazil is faster.", colours.dim),
        text(x(1.0), top - 12, "same", colours.dim, anchor="middle", size=13),
    ]
    for number, pair in enumerate(measured):
        y = top + step * number
        ends = sorted((x(pair.ratio), x(1.0)))
        colour = colours.faster if pair.ratio <= 1 else colours.slower
        parts += [
            text(margin, y + 14, pair.label, colours.text, size=14),
            text(width - margin, y + 14, f"{pair.ours} | {pair.theirs}", colours.dim,
                 anchor="end", size=13),
            f'<rect x="{ends[0]:.1f}" y="{y + 20}" width="{max(ends[1] - ends[0], 2):.1f}" '
            f'height="14" rx="3" fill="{colour}"/>',
            f'<line x1="{x(1.0):.1f}" y1="{y + 17}" x2="{x(1.0):.1f}" y2="{y + 37}" '
            f'stroke="{colours.dim}" stroke-width="1.5"/>',
        ]  # fmt: skip
    first, second = SETTING.split("; ")
    parts += [
        text(margin, bottom + 18, f"{first};", colours.dim, size=13),
        text(margin, bottom + 36, second, colours.dim, size=13),
    ]
    return svg(width, bottom + 48, title, parts)


def drawing(colours: Colours) -> str:
    """How a statement becomes rows and a commit."""
    program = ("spark.sql, lake.sql,", "methods, frazil sql")
    metadata = ("metadata, which files,", "commits")
    pointer = ("SQL, REST or a folder:", "a pointer for each table")
    rows = ("its own scan, joins", "and writer; no jar")
    files = ("metadata, manifests,", "Parquet files")
    parts = [
        *box(24, 24, 230, 92, "Your program", program, colours),
        *box(315, 24, 230, 92, "Frazil, in Python", metadata, colours, strong=True),
        *box(606, 24, 230, 92, "Catalog", pointer, colours),
        *box(315, 206, 230, 92, "Spark", rows, colours),
        *box(606, 206, 230, 92, "Storage", files, colours),
        *arrow((254, 70), (315, 70), "", colours),
        *arrow((545, 70), (606, 70), "", colours),
        *arrow((400, 116), (400, 206), "the files to read", colours, dx=-110, dy=4),
        *arrow((510, 116), (660, 206), "metadata, both ways", colours, dx=18, dy=2),
        *arrow((545, 252), (606, 252), "", colours),
        *arrow((315, 252), (139, 116), "a DataFrame", colours, dx=-96, dy=16),
        text(575, 278, "rows", colours.dim, anchor="middle", size=13),
    ]  # fmt: skip
    return svg(860, 322, "How Frazil works", parts)


def narrow_drawing(colours: Colours) -> str:
    """The same for a phone: what is beside Frazil and Spark there is beside them here."""
    program = ("spark.sql, lake.sql,", "methods, frazil sql")
    metadata = ("metadata, commits,", "which files")
    parts = [
        *box(32, 12, 164, 88, "Your program", program, colours),
        *box(32, 146, 164, 88, "Frazil, in Python", metadata, colours, strong=True),
        *box(230, 146, 158, 88, "Catalog", ("a pointer", "for each table"), colours),
        *box(32, 280, 164, 88, "Spark", ("its own scan, joins", "and writer; no jar"), colours),
        *box(230, 280, 158, 88, "Storage", ("metadata, manifests,", "Parquet files"), colours),
        *arrow((114, 100), (114, 146), "", colours),
        *arrow((196, 190), (230, 190), "", colours),
        *arrow((60, 234), (60, 280), "the files to read", colours, dx=8, dy=4),
        *arrow((190, 234), (244, 280), "metadata, both ways", colours, dx=30, dy=4),
        *arrow((196, 324), (230, 324), "", colours),
        text(212, 318, "rows", colours.dim, anchor="middle", size=12),
        f'<path d="M32 324 L16 324 L16 56 L32 56" fill="none" stroke="{colours.dim}" '
        'stroke-width="1.5" marker-end="url(#head)"/>',
        text(26, 127, "a DataFrame", colours.dim, size=13),
    ]
    return svg(400, 380, "How Frazil works", parts)


def box(
    x: float, y: float, width: float, height: float, title: str, lines: tuple[str, ...],
    colours: Colours, *, strong: bool = False,
) -> Iterator[str]:  # fmt: skip
    """A box with a title and lines of text."""
    fill = colours.strong if strong else colours.box
    stroke = colours.faster if strong else colours.line
    yield (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" '
        f'stroke="{stroke}" stroke-width="1.5"/>'
    )
    middle = x + width / 2
    yield text(middle, y + 32, title, colours.text, anchor="middle", size=16, weight=600)
    for number, line in enumerate(lines):
        yield text(middle, y + 56 + 19 * number, line, colours.dim, anchor="middle", size=14)


def arrow(
    start: tuple[float, float], end: tuple[float, float], label: str, colours: Colours,
    *, dx: float = 0, dy: float = 0,
) -> Iterator[str]:  # fmt: skip
    """A line with a head, and what goes along it."""
    yield (
        f'<line x1="{start[0]}" y1="{start[1]}" x2="{end[0]}" y2="{end[1]}" '
        f'stroke="{colours.dim}" stroke-width="1.5" marker-end="url(#head)"/>'
    )
    if label:
        middle = ((start[0] + end[0]) / 2 + dx, (start[1] + end[1]) / 2 + dy)
        yield text(*middle, label, colours.dim, size=13)


def text(
    x: float, y: float, said: str, colour: str,
    *, anchor: str = "start", size: int = 14, weight: int = 400,
) -> str:  # fmt: skip
    """A line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" font-size="{size}" '
        f'font-weight="{weight}" text-anchor="{anchor}">{escape(said)}</text>'
    )


def svg(width: int, height: float, title: str, parts: list[str]) -> str:
    """A picture, with its title for those who do not see it."""
    colour = next(part.split('fill="')[1][:7] for part in parts if part.startswith("<text"))
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" '
        f'markerHeight="8" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{colour}" '
        'fill-opacity="0.7"/></marker></defs>'
    )
    inner = "\n".join([f"<title>{escape(title)}</title>", head, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:g}" '
        f'width="{width}" height="{height:g}" role="img" font-family="{FONT}">\n{inner}\n</svg>\n'
    )


def main() -> None:
    """Write every picture, once for each theme and for a phone's width."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Callable[[Colours], str]] = {
        "how-it-works": drawing,
        "how-it-works-narrow": narrow_drawing,
        "queries-and-writes": lambda colours: plot(
            "Queries and writes", list(pairs(QUERIES)), colours
        ),
        "changes-and-streams": lambda colours: plot(
            "Changes, streams, maintenance and commits", list(pairs(CHANGES)), colours
        ),
        "queries-and-writes-narrow": lambda colours: narrow_plot(
            "Queries and writes", list(pairs(QUERIES)), colours
        ),
        "changes-and-streams-narrow": lambda colours: narrow_plot(
            "Changes, streams and commits", list(pairs(CHANGES)), colours
        ),
    }
    for name, draw in pictures.items():
        for theme, colours in THEMES.items():
            (IMAGES / f"{name}-{theme}.svg").write_text(draw(colours))


if __name__ == "__main__":
    main()
