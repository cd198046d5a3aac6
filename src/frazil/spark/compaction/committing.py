"""Rewritten groups become part of the table; those that lost their files are given up."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from frazil.errors import ConflictError
from frazil.format.manifests import Content
from frazil.format.properties.table import RETRIES
from frazil.format.snapshots import MAIN_BRANCH, Snapshot
from frazil.planning.plan import plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.compaction.results import FailedGroup
from frazil.spark.compaction.rewriting import Rewriter, RewrittenGroup
from frazil.spark.port import SparkPort
from frazil.table.commit.definition import Definition
from frazil.table.snapshots.producer import branch_head, snapshot_options
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
        branch: the branch that the snapshots become the head of.
        snapshot_properties: entries for their summaries.
    """

    port: SparkPort
    rewriter: Rewriter
    start: Snapshot
    branch: str | None
    snapshot_properties: dict[str, str] = field(default_factory=dict)

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
            return list(self._destinies(left))
        except BaseException:
            for each in left:
                self.rewriter.discard(each)
            raise

    def _destinies(self, left: list[RewrittenGroup]) -> Iterator[Destiny]:
        """What becomes of groups; `left` has those that are surely not committed."""
        validated_from = self.start.snapshot_id
        for tries_left in range(RETRIES.of(self.rewriter.metadata.properties), -1, -1):
            if not left:
                return
            try:
                yield self._committed(left, validated_from)
                return
            except ConflictError as error:
                if not left:
                    raise
                _LOG.info("a commit of %d rewritten groups conflicts: %s", len(left), error)
                validated_from, lost = self._sorted_out(left)
                conflict = error
            lost = lost if tries_left else tuple(left)
            yield Destiny(failures=tuple(self._given_up(left, each, conflict) for each in lost))

    def _committed(self, left: list[RewrittenGroup], validated_from: int) -> Destiny:
        metadata = self.rewriter.metadata
        keeps = self.rewriter.options.keeps_sequence_number and metadata.format_version > 1
        groups = tuple(left)
        operation = _Rewrite(
            self.port.io,
            removed=[file for each in groups for file in each.removed],
            added=[file for each in groups for file in each.added],
            data_sequence_number=self.start.sequence_number if keeps else None,
            from_snapshot=validated_from,
            options=snapshot_options(
                branch=self.branch,
                snapshot_properties=self.snapshot_properties,
                definition=Definition.of(metadata),
            ),
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

    def _sorted_out(
        self, groups: Sequence[RewrittenGroup]
    ) -> tuple[int, tuple[RewrittenGroup, ...]]:
        """Compare the groups' files and deletes with those that the branch has now.

        Returns:
            the snapshot that was looked at, as if the unchanged groups had been read there, and the
            groups that others changed.
        """
        metadata = self.port.newest()
        head = branch_head(metadata, self.branch or MAIN_BRANCH)
        if head is None:
            return self.start.snapshot_id, tuple(groups)
        now = plan(metadata, head, self.port.io)
        paths = {file.file_path for each in groups for file in each.removed}
        changed = self._changed_paths(self.rewriter.target.plan, now, paths)
        lost = [each for each in groups if any(f.file_path in changed for f in each.removed)]
        return head.snapshot_id, tuple(lost)

    def _changed_paths(
        self, then: ScanPlan, now: ScanPlan, paths: Collection[str]
    ) -> frozenset[str]:
        """Those of some files that are gone, or to which other deletes apply."""
        wanted = pl.DataFrame({"file_path": list(paths)}, schema={"file_path": pl.String()})
        gone = wanted.join(now.files.select("file_path"), on="file_path", how="anti")
        before, after = self._deletes_of(then, wanted), self._deletes_of(now, wanted)
        keys = before.columns
        differs = pl.concat(
            [
                before.join(after, on=keys, how="anti", nulls_equal=True),
                after.join(before, on=keys, how="anti", nulls_equal=True),
            ]
        )
        return frozenset(pl.concat([gone["file_path"], differs["file_path"]]))

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
        named = deletes.select("delete", pl.col("file_path").alias("delete_path"), "content_offset")
        files = of.files.select("ordinal", "file_path").join(wanted, on="file_path", how="semi")
        return (
            files.join(of.delete_index.on(files["ordinal"]).expanded(), on="ordinal")
            .join(named, on="delete")
            .select("file_path", "delete_path", "content_offset")
        )

    def _given_up(
        self, left: list[RewrittenGroup], group: RewrittenGroup, error: ConflictError
    ) -> FailedGroup:
        left.remove(group)
        self.rewriter.discard(group)
        return group.failed(error, is_conflict=True)


class _Rewrite(RewriteFiles):
    """Knows whether it is certain that it did not become part of the table."""

    was_abandoned = False

    def on_abandoned(self) -> None:
        """Remove the manifests."""
        self.was_abandoned = True
        super().on_abandoned()
