"""What self-optimizing did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from frazil.format.html_text import ShownInNotebooks
from frazil.spark.maintenance.compaction.results import (
    CompactionResult,
    ConversionResult,
    PositionDeletesResult,
)
from frazil.table.maintenance.optimizing.choices import OptimizingChoice, OptimizingPlan, Work


@dataclass(frozen=True, slots=True)
class OptimizeProgress:
    """What a run is at.

    Attributes:
        stage: ``planned`` a round, ``running`` a part of it, ``finished`` or ``failed`` with it.
        round_number: from 1.
        text: for people.
        share: how much of the part is done, from 0 to 1; None where that is unknown.
    """

    stage: Literal["planned", "running", "finished", "failed"]
    round_number: int
    text: str
    share: float | None = None

    def __str__(self) -> str:
        return f"round {self.round_number}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizeStep:
    """Choices that one procedure did.

    Attributes:
        work: what was done.
        choices: for which reasons.
        result: of the procedure; None where it failed.
        failure: why it failed; what it had finished is committed.
    """

    work: Work
    choices: tuple[OptimizingChoice, ...]
    result: CompactionResult | ConversionResult | PositionDeletesResult | None = None
    failure: str | None = None

    @property
    def has_changed(self) -> bool:
        """Whether something was committed."""
        if isinstance(self.result, CompactionResult):
            return bool(self.result.snapshot_ids)
        return self.result is not None and self.result.snapshot_id is not None

    @property
    def failures(self) -> tuple[str, ...]:
        """What was given up, and why."""
        given_up = self.result.failures if isinstance(self.result, CompactionResult) else ()
        own = () if self.failure is None else (f"{self.work}: {self.failure}",)
        return (*own, *map(str, given_up))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimizeResult(ShownInNotebooks):
    """What `optimize` did.

    Attributes:
        before: the table as it was found, and what was to do.
        after: as it was left, and what is still to do.
        steps: what was done, in order.
        seconds: how long it took.
    """

    before: OptimizingPlan
    after: OptimizingPlan
    steps: tuple[OptimizeStep, ...] = ()
    seconds: float = 0.0

    @property
    def failures(self) -> tuple[str, ...]:
        """What was given up, and why."""
        return tuple(failure for step in self.steps for failure in step.failures)

    @property
    def has_changed(self) -> bool:
        """Whether something was committed."""
        return any(step.has_changed for step in self.steps)

    def __repr__(self) -> str:
        before, after = self.before, self.after
        lines = [
            f"Optimize, {self.seconds:.1f} s",
            f"  health  {before.health} before, {after.health} after",
            f"  files   {before.health.files:,} before, {after.health.files:,} after",
            f"  read    {before.read_seconds:.3g} s of one core before, "
            f"{after.read_seconds:.3g} s after, as predicted",
        ]
        for step in self.steps:
            kinds = ", ".join(sorted({choice.kind for choice in step.choices}))
            lines.append(f"  {kinds}: {step.work}: {_summary(step)}")
        if not self.steps:
            lines.append("  nothing to do")
        lines += [f"  given up: {failure}" for failure in self.failures]
        return "\n".join(lines)


def _summary(step: OptimizeStep) -> str:
    match step.result:
        case CompactionResult() as done:
            return (
                f"{done.rewritten_data_files_count:,} files became {done.added_data_files_count:,}"
            )
        case ConversionResult() as done:
            return (
                f"{done.converted_equality_delete_files_count:,} became "
                f"{done.added_position_delete_files_count:,} by position, "
                f"{done.deleted_rows_count:,} rows"
            )
        case PositionDeletesResult() as done:
            return f"{done.rewritten_delete_files_count:,} became {done.added_delete_files_count:,}"
        case _:
            return "failed"
