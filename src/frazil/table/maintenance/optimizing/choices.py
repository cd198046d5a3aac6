"""What self-optimizing would do: choices with their reasons, and a plan of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import polars as pl

from frazil.format.html_text import ShownInNotebooks, html_table, notebook_card, size_text
from frazil.table.maintenance.optimizing.health import Health


class OptimizingKind(StrEnum):
    """How much of a partition a choice touches."""

    MINOR = "minor"
    MAJOR = "major"
    FULL = "full"


class Work(StrEnum):
    """The procedure that a choice asks for."""

    REWRITE_FILES = "rewrite data files"
    CONVERT = "convert equality deletes"
    REWRITE_DELETES = "rewrite position deletes"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizingChoice:
    """One thing to do.

    Attributes:
        kind: minor, major or full.
        work: what is done.
        partition: of the files, as in paths; empty for a table without partitions, or for all.
        files: how many files are rewritten, or converted.
        size_in_bytes: of them.
        reason: why.
        gain_seconds: what a read of all these files takes less afterwards, by `ReadCosts`.
        cost_seconds: what doing it takes, likewise.
        ordinals: of the data files that are rewritten together, in the plan: a Polars series, by
            which choices are not compared.
    """

    kind: OptimizingKind
    work: Work
    partition: str
    files: int
    size_in_bytes: int
    reason: str
    gain_seconds: float
    cost_seconds: float
    ordinals: pl.Series = field(
        default_factory=lambda: pl.Series(dtype=pl.Int64), repr=False, compare=False
    )

    def __str__(self) -> str:
        place = f" of {self.partition}" if self.partition else ""
        return (
            f"{self.kind}: {self.work}{place}: {self.files:,} files, "
            f"{size_text(self.size_in_bytes)}, since {self.reason}; "
            f"a read takes {self.gain_seconds:.3g} s less"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizingPlan(ShownInNotebooks):
    """What self-optimizing would do to a snapshot.

    Attributes:
        snapshot_id: that was looked at; None for an empty table.
        health: of the table.
        partitions: the health of each partition, the worst first: `partition`, `score`, `files`,
            `size`, `rows`, `position_rows`, `equality_rows` and the penalties.
        choices: what is worth doing, that with the largest gain first.
        postponed: choices beyond `self-optimizing.max-file-count`, for a later round.
        read_seconds: what a read of everything takes on one core, by `ReadCosts`.
    """

    snapshot_id: int | None
    health: Health
    partitions: pl.DataFrame
    choices: tuple[OptimizingChoice, ...] = ()
    postponed: tuple[OptimizingChoice, ...] = ()
    read_seconds: float = 0.0

    @property
    def gain_seconds(self) -> float:
        """What a read of everything takes less after all choices, by `ReadCosts`."""
        return sum(choice.gain_seconds for choice in self.choices)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is worth doing."""
        return not self.choices

    def __repr__(self) -> str:
        lines = [
            "OptimizingPlan",
            f"  health  {self.health}",
            f"  read    {self.read_seconds:.3g} s of one core, "
            f"{max(self.read_seconds - self.gain_seconds, 0.0):.3g} s afterwards",
        ]
        lines += [f"  {choice}" for choice in self.choices[:_MOST_SHOWN]]
        if len(self.choices) > _MOST_SHOWN:
            lines.append(f"  … and {len(self.choices) - _MOST_SHOWN:,} more")
        if self.postponed:
            lines.append(f"  {len(self.postponed):,} are left to the next run")
        if self.is_empty:
            lines.append("  nothing to do")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        after = max(self.read_seconds - self.gain_seconds, 0.0)
        facts = {
            "health": self.health,
            "read": f"{self.read_seconds:.3g} s of one core, {after:.3g} s afterwards",
            "to do": f"{len(self.choices):,}" if self.choices else "nothing",
        }
        shown = self.choices[:_MOST_SHOWN]
        below = html_table(
            ("kind", "work", "partition", "files", "reason", "gain, s"),
            [
                (str(each.kind), str(each.work), each.partition, each.files, each.reason,
                 each.gain_seconds)
                for each in shown
            ],
        )  # fmt: skip
        return notebook_card("OptimizingPlan", facts, below=below if shown else "")


_MOST_SHOWN = 20
