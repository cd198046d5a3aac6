"""A plan is done by the existing procedures, round by round until nothing is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import Column

from frazil.errors import FrazilError
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.maintenance.compaction.compact import Compact, files_condition
from frazil.spark.maintenance.compaction.conversion import ConvertEqualityDeletes
from frazil.spark.maintenance.compaction.groups import FileGroup, chosen_groups
from frazil.spark.maintenance.compaction.options import CompactionOptions, CompactionSettings
from frazil.spark.maintenance.compaction.position_deletes import RewritePositionDeletes
from frazil.spark.maintenance.compaction.results import CompactionResult, RewriteProgress
from frazil.spark.maintenance.optimizing.results import (
    OptimizeProgress,
    OptimizeResult,
    OptimizeStep,
)
from frazil.spark.port import SparkPort
from frazil.table.maintenance.optimizing.choices import OptimizingChoice, OptimizingPlan, Work
from frazil.table.maintenance.optimizing.look import look, with_filter
from frazil.table.maintenance.optimizing.planner import deletes_to_rewrite, plan_optimizing
from frazil.table.maintenance.optimizing.settings import OptimizingSettings
from frazil.table.maintenance.progress import tell_nobody
from frazil.table.snapshots.producer import DEFAULT_OPTIONS, SnapshotOptions, now_ms

_LOG: Final = logging.getLogger(__name__)

OnOptimize = Callable[[OptimizeProgress], None]

MOST_ROUNDS: Final = 3
"""A round may show what the next one does: what is deleted is known once keys are positions."""

_ORDER: Final = (Work.REWRITE_FILES, Work.CONVERT, Work.REWRITE_DELETES)
_PRODUCER: Final = {"snapshot.producer": "OPTIMIZE"}
_TYPE: Final = "self-optimizing.type"


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimize:
    """Do the maintenance that is worth it.

    Attributes:
        where: only files that may hold matching rows; all unless given.
        on_progress: called with each step.
        commit: where the snapshots go, and what their summaries say.
    """

    where: str | Column | Expression | None = None
    on_progress: OnOptimize | None = None
    commit: SnapshotOptions = DEFAULT_OPTIONS

    def plan(self, port: SparkPort) -> OptimizingPlan:
        """Return what it would do first; see `Table.optimize`."""
        base = port.newest()
        where = files_condition(port, base, self.where)
        return look(base, port.io, where=where, branch=self.commit.branch)

    def run(self, port: SparkPort) -> OptimizeResult:
        """Run it; see `Table.optimize`."""
        began = time.monotonic()
        before = after = self.plan(port)
        base = port.metadata
        properties = {**_PRODUCER, **self.commit.snapshot_properties}
        run = _Run(
            port=port,
            where=with_filter(base, files_condition(port, base, self.where)),
            commit=replace(self.commit, snapshot_properties=properties),
            tell=self.on_progress or tell_nobody,
        )
        steps: list[OptimizeStep] = []
        for number in range(1, MOST_ROUNDS + 1):
            if after.is_empty:
                break
            run.tell(OptimizeProgress("planned", number, f"{len(after.choices)} things to do"))
            done = run.round(after, number)
            steps += done
            after = self.plan(port)
            if not any(step.has_changed for step in done):
                break
        return OptimizeResult(
            before=before, after=after, steps=tuple(steps), seconds=time.monotonic() - began
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The rounds of one call."""

    port: SparkPort
    where: Expression
    commit: SnapshotOptions
    tell: OnOptimize

    def round(self, plan: OptimizingPlan, number: int) -> list[OptimizeStep]:
        """Do a plan's choices, procedure by procedure; one that fails takes no other with it."""
        steps: list[OptimizeStep] = []
        for work in _ORDER:
            choices = tuple(each for each in plan.choices if each.work is work)
            if not choices:
                continue
            self.tell(OptimizeProgress("running", number, str(work)))
            try:
                done = OptimizeStep(
                    work=work, choices=choices, result=self._run_work(work, choices, number)
                )
            except (FrazilError, PySparkException) as error:
                _LOG.warning("%s failed: %s", work, error)
                text = str(error).strip() or type(error).__name__
                done = OptimizeStep(work=work, choices=choices, failure=text.splitlines()[0])
            steps.append(done)
            self.tell(
                OptimizeProgress("failed" if done.failures else "finished", number, str(work))
            )
        return steps

    def _run_work(self, work: Work, choices: tuple[OptimizingChoice, ...], number: int) -> Any:
        kinds = ",".join(sorted({choice.kind for choice in choices}))
        commit = self.commit.with_summary({_TYPE: kinds})
        match work:
            case Work.REWRITE_FILES:
                return self._compact(choices, commit, number)
            case Work.CONVERT:
                return ConvertEqualityDeletes(
                    where=self.where,
                    on_progress=lambda at: self.tell(
                        OptimizeProgress("running", number, f"{work}: {at}")
                    ),
                    commit=commit,
                ).run(self.port)
            case Work.REWRITE_DELETES:
                return RewritePositionDeletes(where=self.where, commit=commit, choose=_deletes).run(
                    self.port
                )

    def _compact(
        self, choices: tuple[OptimizingChoice, ...], commit: SnapshotOptions, number: int
    ) -> CompactionResult:
        settings = OptimizingSettings.of(self.port.metadata.properties)
        partitions = {(choice.kind, choice.partition) for choice in choices}

        def groups(
            metadata: TableMetadata, plan: ScanPlan, options: CompactionOptions
        ) -> list[FileGroup]:
            # The table may have moved on: what is still worth it is told from what is read.
            now = plan_optimizing(metadata, plan, settings, now_ms=now_ms())
            wanted = [each for each in now.choices if (each.kind, each.partition) in partitions]
            return chosen_groups(metadata, plan, options, [each.ordinals for each in wanted])

        def tell_of_groups(progress: RewriteProgress) -> None:
            self.tell(OptimizeProgress("running", number, str(progress), progress.share))

        sizes: CompactionSettings = {
            "target_file_size_bytes": settings.target_size,
            "min_file_size_bytes": settings.smallest_size,
            "partial_progress_enabled": True,
            "remove_dangling_deletes": True,
        }
        if settings.max_task_size is not None:
            sizes["max_file_group_size_bytes"] = settings.max_task_size
        return Compact(
            where=self.where,
            settings=sizes,
            on_progress=tell_of_groups,
            commit=commit,
            choose=groups,
        ).run(self.port)


def _deletes(metadata: TableMetadata, plan: ScanPlan) -> pl.DataFrame:
    settings = OptimizingSettings.of(metadata.properties)
    return deletes_to_rewrite(metadata, plan, settings, now_ms=now_ms())
