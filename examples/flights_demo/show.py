"""What the demo prints: steps with their times, what each touched, answers side by side."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table as RichTable

import frazil
from frazil.format.snapshots import Snapshot

console = Console(highlight=False)

Row = tuple[object, ...]


def heading(title: str) -> None:
    """Begin a part of the demo."""
    console.print(f"\n[bold]{title}[/]")


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show a step while it runs, and how long it took."""
    started = time.perf_counter()
    with console.status(f"{title} …"):
        yield
    console.print(f"[green]✓[/] {title} [dim]({time.perf_counter() - started:.1f} s)[/]")


@contextmanager
def step_on(table: frazil.Table, title: str) -> Iterator[None]:
    """Show a step that changes a table, how long it took, and what it touched."""
    before = table.current_snapshot
    with step(title):
        yield
    after = table.refresh().current_snapshot
    if after is None or after == before:
        console.print("  [dim]metadata alone: no data file was read or written[/]")
        return
    began = 0 if before is None else before.sequence_number
    sums = added_by(each for each in table.metadata.snapshots if each.sequence_number > began)
    kept = int(after.summary["total-data-files"]) - sums["added-data-files"]
    console.print(
        f"  [dim]files: {sums['added-data-files']:,} written with {sums['added-records']:,} rows, "
        f"{sums['deleted-data-files']:,} replaced, {kept:,} earlier ones not touched[/]"
    )


def added_by(snapshots: Iterable[Snapshot]) -> Counter[str]:
    """The numbers in the summaries of snapshots, summed."""
    sums: Counter[str] = Counter()
    for snapshot in snapshots:
        sums.update({k: int(v) for k, v in snapshot.summary.items() if v.isdigit()})
    return sums


def show_plan(title: str, scan: frazil.Scan) -> None:
    """Print what a scan reads, and what it never touches."""
    heading(title)
    print(scan.plan())


def same_answers(title: str, answers: Mapping[str, Sequence[Row]]) -> bool:
    """Print the answers of engines to one question side by side; whether they are all equal."""
    first, *others = answers.values()
    equal = all(list(rows) == list(first) for rows in others)
    shown = RichTable(title=title)
    for name in answers:
        shown.add_column(name)
    for index in range(max(map(len, answers.values()))):
        shown.add_row(
            *(_readable(rows[index]) if index < len(rows) else "" for rows in answers.values())
        )
    console.print(shown)
    console.print("[green]equal[/]" if equal else "[red]DIFFERENT[/]")
    return equal


def _readable(row: Row) -> str:
    return "  ".join(f"{value:,}" if isinstance(value, int) else str(value) for value in row)
