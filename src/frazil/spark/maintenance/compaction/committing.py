"""Rewritten groups become part of the table; those that lost their files are given up.

Where others only deleted rows of a group's files meanwhile, the group goes on with these deletes.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from time import monotonic
from typing import Final

import polars as pl
from pyroaring import BitMap64
from pyspark.errors import PySparkException

from frazil.errors import ConflictError, FrazilError
from frazil.format.manifests import Content
from frazil.format.properties.table import RETRIES, RETRY_TIMEOUT, ROW_LEVEL_CONFLICTS
from frazil.format.snapshots import Snapshot
from frazil.format.snapshots.summaries import MOVED_ROWS
from frazil.planning.deletes.index import POSITION_DELETES
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.write import write_deletes_of_new_files
from frazil.spark.deletes.bitmap import Words
from frazil.spark.files.projection import FILE_ORDINAL_FIELD, Projection
from frazil.spark.maintenance.compaction.results import FailedGroup
from frazil.spark.maintenance.compaction.rewriting import Rewriter, RewrittenGroup
from frazil.spark.port import SparkPort
from frazil.spark.read.reader import TableReader
from frazil.spark.row_level.rivals.deleted_since import DeletedSince, words_of_bitmap
from frazil.spark.row_level.rivals.moved_rows import places_of
from frazil.spark.row_level.rivals.rows_by_id import RowIds, rows_in_new_files
from frazil.spark.row_level.rivals.rows_by_order import copied_places
from frazil.spark.row_level.rivals.rows_by_value import equal_rows
from frazil.spark.row_level.target import Target
from frazil.table.commit.definition import Definition
from frazil.table.commit.turns import turn_of
from frazil.table.snapshots.producer import SnapshotOptions, branch_head
from frazil.table.snapshots.rewrite import RewriteFiles

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Destiny:
    """What became of groups that were to be committed together.

    Attributes:
        committed: groups that are part of the table.
        failures: groups that others' commits took the files of.
        removed_deletes: delete files that went with them.
        snapshot_id: of the commit, if there was one.
    """

    committed: tuple[RewrittenGroup, ...] = ()
    failures: tuple[FailedGroup, ...] = ()
    removed_deletes: int = 0
    snapshot_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Committer:
    """Commits groups of one compaction, one commit after the other.

    Attributes:
        writes: the table.
        rewriter: what the groups were made by.
        start: the snapshot that was read.
        options: where the snapshots go, and what their summaries say.
    """

    port: SparkPort
    rewriter: Rewriter
    start: Snapshot
    options: SnapshotOptions

    def commit(self, groups: Sequence[RewrittenGroup]) -> list[Destiny]:
        """Commit groups; whoever conflicts is given up, and the others are tried again.

        From here on the groups' files are removed where it is certain that they are not part of
        the table, and nowhere else.

        Raises:
            CommitFailedError: others kept being first.
            CommitStateUnknownError: the outcome is unknown; nothing was removed.
        """
        left = list(groups)
        try:
            return list(self._settle_groups(left))
        except BaseException:
            for each in left:
                self.rewriter.discard(each)
            raise

    def _settle_groups(self, left: list[RewrittenGroup]) -> Iterator[Destiny]:
        """What becomes of groups; `left` has those that are surely not committed.

        Where others delete rows again and again, the other threads of this process wait from the
        second time on while a group gets these deletes and is committed.
        """
        validated_from = self.start.snapshot_id
        metadata = self.rewriter.metadata
        tries_left = RETRIES.of(metadata.properties)
        ends = monotonic() + RETRY_TIMEOUT.of(metadata.properties) / 1000
        turn, is_again = turn_of(metadata.table_uuid), False
        with ExitStack() as alone:
            while left:
                try:
                    yield self._commit(left, validated_from)
                    return
                except ConflictError as error:
                    if not left:
                        raise
                    _LOG.info("a commit of %d rewritten groups conflicts: %s", len(left), error)
                    conflict = error
                alone.close()
                if is_again:
                    alone.enter_context(turn.hold(lambda: None))
                is_again = True
                looked_at, lost, follows = self._sort_out(left)
                # Who could go on every time is not given up, however often others delete rows.
                goes_on = follows and looked_at != validated_from
                validated_from = looked_at
                tries_left -= bool(lost) or not goes_on
                if tries_left < 0 or monotonic() > ends:
                    lost = list(left)
                yield Destiny(failures=tuple(self._give_up(left, each, conflict) for each in lost))

    def _commit(self, left: list[RewrittenGroup], validated_from: int) -> Destiny:
        metadata = self.rewriter.metadata
        keeps = self.rewriter.options.keeps_sequence_number and metadata.format_version > 1
        groups = tuple(left)
        moved = sum(each.moved_rows for each in groups)
        # The summary counts the rows that others deleted meanwhile.
        options = self.options.with_summary({MOVED_ROWS: str(moved)}) if moved else self.options
        operation = _Rewrite(
            self.port.io,
            removed=[file for each in groups for file in each.removed],
            added=[file for each in groups for file in each.added],
            added_deletes=[file for each in groups for file in each.deletes],
            data_sequence_number=self.start.sequence_number if keeps else None,
            from_snapshot=validated_from,
            options=replace(options, definition=Definition.of(metadata)),
        )
        try:
            self.port.run(operation)
        finally:
            if not operation.was_abandoned:
                left.clear()
        return Destiny(
            committed=groups,
            removed_deletes=len(operation.removed_deletes.removed),
            snapshot_id=operation.snapshot_id,
        )

    def _sort_out(self, left: list[RewrittenGroup]) -> tuple[int, list[RewrittenGroup], bool]:
        """Compare the groups' files and deletes with those that the branch has now.

        Groups of whose files others deleted rows get the same deletes of their new files.

        Returns:
            The snapshot that was looked at, as if the other groups had been read there; groups that
            others changed; and whether a group got deletes that others committed.
        """
        metadata = self.port.newest()
        head = branch_head(metadata, self.options.branch)
        if head is None:
            return self.start.snapshot_id, list(left), False
        then, now = self.rewriter.target.plan, plan(metadata, head, self.port.io)
        paths = {file.file_path for each in left for file in each.removed}
        here = now.files.filter(pl.col("file_path").is_in(list(paths)))
        gone = paths.difference(here["file_path"])
        changed = self._changed_paths(then, now, paths)
        follower = FollowedDeletes(self.rewriter.target, now)
        lost: list[RewrittenGroup] = []
        follows = False
        for place, each in enumerate(left):
            own = {file.file_path for file in each.removed}
            if own.isdisjoint(gone | changed.keys()):
                continue
            by_position = own.isdisjoint(gone) and not any(changed.get(path) for path in own)
            followed = follower.follow(each) if by_position else None
            if followed is None:
                lost.append(each)
                continue
            self.rewriter.discard_deletes(each)
            left[place], follows = followed, True
        return head.snapshot_id, lost, follows

    def _changed_paths(
        self, then: ScanPlan, now: ScanPlan, paths: Collection[str]
    ) -> dict[str, bool]:
        """Those of some files to which other deletes apply; true where new ones are by equality."""
        wanted = pl.DataFrame({"file_path": list(paths)}, schema={"file_path": pl.String()})
        before, after = self._deletes_of(then, wanted), self._deletes_of(now, wanted)
        keys = before.columns
        others = (pl.col("content") != int(Content.POSITION_DELETES)).alias("others")
        removed = before.join(after, on=keys, how="anti", nulls_equal=True)
        added = after.join(before, on=keys, how="anti", nulls_equal=True)
        differs = pl.concat(
            [
                removed.select("file_path", pl.lit(False).alias("others")),
                added.select("file_path", others),
            ]
        )
        return dict(differs.group_by("file_path").agg(pl.col("others").any()).iter_rows())

    def _deletes_of(self, of: ScanPlan, wanted: pl.DataFrame) -> pl.DataFrame:
        """The deletes that apply to each of some files, as far as the new files are without them.

        Later equality deletes reach files that keep the sequence number.
        """
        deletes = of.deletes
        if self.rewriter.options.keeps_sequence_number:
            is_later = (pl.col("content") == int(Content.EQUALITY_DELETES)) & (
                pl.col("sequence_number") > self.start.sequence_number
            )
            deletes = deletes.filter(~is_later)
        named = deletes.select(
            "delete", pl.col("file_path").alias("delete_path"), "content_offset", "content"
        )
        files = of.files.select("ordinal", "file_path").join(wanted, on="file_path", how="semi")
        return (
            files.join(of.delete_index.for_files(files["ordinal"]).expanded_pairs(), on="ordinal")
            .join(named, on="delete")
            .select("file_path", "delete_path", "content_offset", "content")
        )

    def _give_up(
        self, left: list[RewrittenGroup], group: RewrittenGroup, error: ConflictError
    ) -> FailedGroup:
        left.remove(group)
        self.rewriter.discard(group)
        return group.failed_group(error, is_conflict=True)


class _Rewrite(RewriteFiles):
    """Knows whether it is certain that it did not become part of the table."""

    was_abandoned = False

    def on_abandoned(self) -> None:
        """Remove the manifests."""
        self.was_abandoned = True
        super().on_abandoned()


@dataclass(frozen=True, slots=True)
class FollowedDeletes:
    """Gives rewritten groups the deletes that were committed since their files were read.

    In version 3 a row keeps its id wherever it is written: the ids of the rows that others deleted
    of the old files tell their positions in the new ones. Of files that were copied their order
    tells it, and of others in version 2 the values: equal rows stand for each other.

    Attributes:
        target: the files as they were read.
        now: the plan of the branch as it is, with every delete.
    """

    target: Target
    now: ScanPlan

    def follow(self, done: RewrittenGroup) -> RewrittenGroup | None:
        """Return a group with deletes of its new files; None where rows cannot be told.

        The group's files must all be there still.
        """
        metadata = self.target.metadata
        if metadata.format_version < 2 or not ROW_LEVEL_CONFLICTS.of(metadata.properties):
            return None
        try:
            return self._follow(done)
        except (FrazilError, PySparkException) as error:
            _LOG.warning("a group does not follow the deletes of others: %s", error)
            return None

    def _follow(self, done: RewrittenGroup) -> RewrittenGroup | None:
        target = self.target
        then = target.restricted_to(done.group.ordinals)
        now = replace(target, plan=self.now).with_paths(then.plan.files["file_path"])
        deleted = DeletedSince(then, now).by_position()
        if deleted is None or not _are_all_gone(then, now, deleted):
            return None
        found = self._by_id(then, done, deleted)
        if found is None:
            found = self._by_order(done, deleted)
        if found is None:
            found = self._by_value(then, done, deleted)
        if found is None:
            return None
        written = write_deletes_of_new_files(
            target.spark, done.added, found, metadata=target.metadata, io=target.io
        )
        return replace(done, deletes=written.added, moved_rows=written.deleted_rows)

    def _by_id(
        self, then: Target, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where rows are in a group's new files, if all of them have ids."""
        rows = RowIds.at_places(then, places_of(then, deleted))
        if rows is None:
            return None
        found = rows_in_new_files(self.target.spark, self.target.io, done.added, rows)
        if len(found.ids) != len(rows):
            return None
        return found.words(len(done.added))

    def _by_order(
        self, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where rows are in a group's new files, if all of these are copies."""
        if any(file.file_format.lower() != "parquet" for file in done.added):
            return None
        paths = [file.file_path for file in done.added]
        places = copied_places(self.target.io, deleted, paths)
        if places is None:
            return None
        by_file = places.by_file()
        return [words_of_bitmap(by_file.get(path, BitMap64())) for path in paths]

    def _by_value(
        self, then: Target, done: RewrittenGroup, deleted: Mapping[str, BitMap64]
    ) -> list[Words] | None:
        """Where equal rows are in a group's new files, if rows have no ids."""
        new = then.of_new_files(done.added)
        found = equal_rows(then, places_of(then, deleted), new)
        return None if found is None else found.words(len(done.added))


def _are_all_gone(then: Target, now: Target, deleted: Mapping[str, BitMap64]) -> bool:
    """Return whether no row is gone but by these positions, and none has come back.

    An equality delete may have become positions meanwhile: of rows that were deleted already. Later
    ones are left out here: they reach the new files as well.
    """
    known = _equality_deletes(then)
    if known <= _equality_deletes(now):
        return True
    places = places_of(then, deleted)
    gone = int(then.restricted_to(places).rows_at(places).count()) if places else 0
    is_known = pl.col("file_path").is_in(list(known)) | (pl.col("content") == POSITION_DELETES)
    deletes = now.plan.deletes.filter(is_known)
    index = now.plan.delete_index.for_deletes(deletes["delete"])
    plan = replace(now.plan, deletes=deletes, delete_index=index)
    reader = TableReader(now.spark, now.metadata, now.io)
    left = reader.rows_under_some_deletes(plan, Projection((FILE_ORDINAL_FIELD,))).count()
    return then.live_row_count - gone == int(left)


def _equality_deletes(target: Target) -> frozenset[str]:
    """The equality deletes that apply to files, by their paths."""
    deletes = target.plan.deletes.filter(pl.col("content") != POSITION_DELETES)
    index = target.plan.delete_index.for_deletes(deletes["delete"]).for_files(
        target.plan.files["ordinal"]
    )
    used = deletes.filter(pl.col("delete").is_in(index.deletes().implode()))
    return frozenset(used["file_path"])
