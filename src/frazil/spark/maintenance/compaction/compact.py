"""A compaction from its plan to its last commit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil
from typing import Final
from uuid import uuid4

from pyspark.sql import Column

from frazil.errors import CommitFailedError, PredicateError
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import AlwaysTrue, Expression
from frazil.format.sorting import SortField
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.conditions import condition_of
from frazil.spark.deletes.resolve import EQUALITY_SETTING, EqualityReading
from frazil.spark.maintenance.compaction.arranging.arrangement import Strategy, arrangement_of
from frazil.spark.maintenance.compaction.committing import Committer, Destiny
from frazil.spark.maintenance.compaction.delete_replacement import remove_dangling_deletes
from frazil.spark.maintenance.compaction.groups import FileGroup, plan_groups
from frazil.spark.maintenance.compaction.options import CompactionOptions, CompactionSettings
from frazil.spark.maintenance.compaction.results import (
    CompactionResult,
    FailedGroup,
    RewriteProgress,
)
from frazil.spark.maintenance.compaction.rewriting import Rewriter, RewrittenGroup
from frazil.spark.port import SparkPort
from frazil.spark.row_level.target import Target
from frazil.spark.session.facts import (
    is_case_sensitive,
    temporary_settings,
    time_zone_of,
)
from frazil.table.maintenance.progress import tell_nobody
from frazil.table.snapshots.producer import (
    DEFAULT_OPTIONS,
    BranchSettings,
    SnapshotOptions,
    branch_head,
)

_LOG: Final = logging.getLogger(__name__)

OnRewrite = Callable[[RewriteProgress], None]
ChooseGroups = Callable[[TableMetadata, ScanPlan, CompactionOptions], list[FileGroup]]


class CompactionArguments(CompactionSettings, BranchSettings, total=False):
    """Keywords of `TableMaintenance.compact`, which says what each means."""

    strategy: Strategy
    sort_order: str | Sequence[str | SortField] | None
    columns: str | Sequence[str] | None
    options: Mapping[str, str] | None
    on_progress: OnRewrite | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Rewrite data files as fewer, larger or better sorted ones.

    Attributes:
        where: which files: those that may hold matching rows; all unless given.
        strategy, sort_order, columns: how rows are arranged.
        options: options by the names of Java's ``rewrite_data_files``.
        settings: options as keywords; they win.
        on_progress: called as groups are rewritten and committed.
        commit: where the snapshots go, and what their summaries say.
        choose: tells which files of the snapshot's plan are rewritten together.
    """

    where: str | Column | Expression | None = None
    strategy: str = "binpack"
    sort_order: str | Sequence[str | SortField] | None = None
    columns: str | Sequence[str] | None = None
    options: Mapping[str, str] | None = None
    settings: CompactionSettings = field(default_factory=CompactionSettings)
    on_progress: OnRewrite | None = None
    commit: SnapshotOptions = DEFAULT_OPTIONS
    choose: ChooseGroups = plan_groups

    def run(self, port: SparkPort) -> CompactionResult:
        """Run it; see `TableMaintenance.compact`."""
        commit = port.naming_engine(self.commit)
        base = port.newest()
        head = branch_head(base, commit.branch)
        chosen = CompactionOptions.of(base, self.options, self.settings)
        case_sensitive = is_case_sensitive(port.spark)
        arrangement = arrangement_of(
            base,
            self.strategy,
            self.sort_order,
            self.columns,
            chosen,
            case_sensitive=case_sensitive,
        )
        implied = files_condition(port, base, self.where)
        if head is None:
            return CompactionResult()
        target = Target.of(port.spark, base, port.io, head, where=implied)
        groups = self.choose(base, target.plan, chosen)
        # The files that stay as they are need no memory while the others are rewritten.
        target = target.restricted_to([each for group in groups for each in group.ordinals])
        rewriter = Rewriter(target=target, arrangement=arrangement, options=chosen)
        rewriter = rewriter.knowing_deletes(groups)
        run = _Run(
            rewriter=rewriter,
            committer=Committer(port=port, rewriter=rewriter, start=head, options=commit),
            groups=groups,
            tell=self.on_progress or tell_nobody,
        )
        # Every row is read once: resolving equality deletes first would be another pass.
        with temporary_settings(port.spark, {EQUALITY_SETTING: EqualityReading.KNOWN}):
            run.run()
        if chosen.removes_dangling:
            run.removed_deletes += remove_dangling_deletes(port, commit)
        return run.result()


def files_condition(
    port: SparkPort, metadata: TableMetadata, where: str | Column | Expression | None
) -> Expression:
    """Return the predicate by which a condition chooses files.

    Raises:
        PredicateError: the condition does not fit the schema, or says nothing of single columns,
            so that no file could be left out by it.
    """
    condition = condition_of(
        where,
        metadata.schema,
        spark=port.spark,
        case_sensitive=is_case_sensitive(port.spark),
        time_zone=time_zone_of(port.spark),
    )
    if isinstance(condition.implied, AlwaysTrue) and not condition.is_exact:
        raise PredicateError(
            f"{condition.text} says nothing that partitions or bounds of columns could tell, so it "
            "chooses no files; compare columns with values, as in \"day >= '2024-01-01'\""
        )
    return condition.implied


@dataclass(slots=True, kw_only=True)
class _Run:
    """The groups of one compaction on their way."""

    rewriter: Rewriter
    committer: Committer
    groups: Sequence[FileGroup]
    tell: OnRewrite
    done: int = 0
    files: int = 0
    size: int = 0
    committed: list[RewrittenGroup] = field(default_factory=list)
    failures: list[FailedGroup] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)
    failed_commits: int = 0
    removed_deletes: int = 0
    snapshot_ids: list[int] = field(default_factory=list)

    @property
    def options(self) -> CompactionOptions:
        return self.rewriter.options

    @property
    def commits_early(self) -> bool:
        return self.options.partial_commits is not None

    def run(self) -> None:
        """Rewrite the groups beside each other; commit them at the end or as they are finished."""
        if not self.groups:
            return
        at_once = ceil(len(self.groups) / (self.options.partial_commits or 1))
        waiting: list[RewrittenGroup] = []
        self._tell("rewriting")
        with _interruptible(self.rewriter, self.groups, self.options.concurrent_groups) as work:
            for group, future in work:
                error = future.exception()
                if isinstance(error, Exception):
                    self._note_failure(group, error, work)
                elif error is not None:
                    raise error
                else:
                    waiting.append(future.result())
                    self._finish(group)
                if self.commits_early and len(waiting) >= at_once:
                    self._commit(waiting, work)
                    waiting = []
            if waiting:
                self._commit(waiting, work)
        self._tell("done")
        self._raise_where_asked()

    def result(self) -> CompactionResult:
        """Return what was done."""
        removed = [file for each in self.committed for file in each.removed]
        added = [file for each in self.committed for file in each.added]
        return CompactionResult(
            rewritten_data_files_count=len(removed),
            added_data_files_count=len(added),
            rewritten_bytes_count=sum(file.file_size_in_bytes for file in removed),
            failed_data_files_count=sum(each.files_count for each in self.failures),
            removed_delete_files_count=self.removed_deletes,
            added_bytes_count=sum(file.file_size_in_bytes for file in added),
            moved_rows_count=sum(each.moved_rows for each in self.committed),
            snapshot_ids=tuple(self.snapshot_ids),
            failures=tuple(self.failures),
        )

    def _finish(self, group: FileGroup) -> None:
        self.done += 1
        self.files += group.files_count
        self.size += group.size_in_bytes
        self._tell("rewriting")

    def _note_failure(self, group: FileGroup, error: Exception, work: _Work) -> None:
        """Note a group that could not be rewritten; without early commits nothing new is begun."""
        _LOG.warning("a group of %d files was not rewritten: %s", group.files_count, error)
        self.errors.append(error)
        nothing = RewrittenGroup(group=group, removed=(), added=())
        self.failures.append(nothing.failed_group(error, is_conflict=False))
        self._tell("failed")
        if not self.commits_early:
            work.begin_no_more()

    def _commit(self, groups: Sequence[RewrittenGroup], work: _Work) -> None:
        # The committer knows from here on which files go.
        work.forget(groups)
        try:
            self._note(self.committer.commit(groups))
        except CommitFailedError as error:
            self.failed_commits += 1
            if not self.commits_early or self.failed_commits > self.options.max_failed_commits:
                raise
            self.errors.append(error)
            self.failures += [each.failed_group(error, is_conflict=False) for each in groups]
            self._tell("failed")

    def _note(self, destinies: Iterable[Destiny]) -> None:
        for each in destinies:
            self.committed += each.committed
            self.failures += each.failures
            self.removed_deletes += each.removed_deletes
            if each.snapshot_id is not None:
                self.snapshot_ids.append(each.snapshot_id)
                self._tell("committed")
            elif each.failures:
                self._tell("failed")

    def _raise_where_asked(self) -> None:
        """Raise the first error, unless early commits were asked for and some took place."""
        if not self.errors or (self.commits_early and self.committed):
            return
        error, done = self.errors[0], len(self.committed)
        error.add_note(
            f"{len(self.groups) - done} of {len(self.groups)} groups of files stay as they are; "
            f"the {done} groups that were finished are committed"
        )
        raise error

    def _tell(self, stage: str) -> None:
        self.tell(
            RewriteProgress(
                stage,  # type: ignore[arg-type]
                groups=len(self.groups),
                groups_done=self.done,
                groups_failed=len(self.failures),
                groups_committed=len(self.committed),
                files=self.files,
                size_in_bytes=self.size,
            )
        )


class _Work:
    """Groups that threads rewrite; whatever is finished and not taken over goes in the end."""

    def __init__(self, rewriter: Rewriter, groups: Sequence[FileGroup], threads: int) -> None:
        self._rewriter = rewriter
        self._tag = f"frazil-compaction-{uuid4()}"
        self._pool = ThreadPoolExecutor(min(threads, len(groups)), "frazil-compaction")
        self._owned: dict[int, RewrittenGroup] = {}
        self._futures = {self._pool.submit(self._rewrite, group): group for group in groups}

    def __iter__(self) -> Iterator[tuple[FileGroup, Future[RewrittenGroup]]]:
        for future in as_completed(list(self._futures)):
            if not future.cancelled():
                yield self._futures[future], future

    def begin_no_more(self) -> None:
        """Leave out the groups that have not begun."""
        for future in self._futures:
            future.cancel()

    def forget(self, groups: Iterable[RewrittenGroup]) -> None:
        """Leave groups to somebody else."""
        for each in groups:
            self._owned.pop(id(each), None)

    def stop(self) -> None:
        """End what runs and remove what is left of it."""
        self.begin_no_more()
        self._rewriter.target.spark.interruptTag(self._tag)
        self.close()
        for each in self._owned.values():
            self._rewriter.discard(each)

    def close(self) -> None:
        """Wait for the threads."""
        self._pool.shutdown()

    def _rewrite(self, group: FileGroup) -> RewrittenGroup:
        self._rewriter.target.spark.addTag(self._tag)
        done = self._rewriter.rewrite(group)
        self._owned[id(done)] = done
        return done


@contextmanager
def _interruptible(
    rewriter: Rewriter, groups: Sequence[FileGroup], threads: int
) -> Iterator[_Work]:
    """Rewrite groups in threads; an error within the block ends what still runs."""
    work = _Work(rewriter, groups, threads)
    try:
        yield work
    except BaseException:
        work.stop()
        raise
    work.close()
