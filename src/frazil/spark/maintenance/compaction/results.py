"""What rewrites did: frozen values with the columns of Java's procedures."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

from frazil.format.html_text import ShownInNotebooks, size_text


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedGroup:
    """A group of files that stays as it is.

    Attributes:
        partition: of its files, as in paths; empty where there is none.
        files_count: how many files.
        reason: why it was given up.
        is_conflict: whether another commit took its files, or deleted rows of them.
    """

    partition: str
    files_count: int
    reason: str
    is_conflict: bool

    def __str__(self) -> str:
        place = f" of {self.partition}" if self.partition else ""
        return f"{_files(self.files_count)}{place}: {self.reason}"


@dataclass(frozen=True, slots=True)
class RewriteProgress:
    """What a rewrite is at.

    Attributes:
        stage: ``rewriting`` groups, ``committed`` some of them, ``failed`` with one, or ``done``.
        groups: that there are.
        groups_done: that are rewritten.
        groups_failed: that were given up.
        groups_committed: that are part of the table.
        files: of the groups that are rewritten.
        size_in_bytes: of those files.
    """

    stage: Literal["rewriting", "committed", "failed", "done"]
    groups: int
    groups_done: int = 0
    groups_failed: int = 0
    groups_committed: int = 0
    files: int = 0
    size_in_bytes: int = 0

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1; None where there is nothing to do."""
        return (self.groups_done + self.groups_failed) / self.groups if self.groups else None

    def __str__(self) -> str:
        failed = f", {self.groups_failed} given up" if self.groups_failed else ""
        return (
            f"{self.groups_done} of {self.groups} groups rewritten ({_files(self.files)}, "
            f"{size_text(self.size_in_bytes)}), {self.groups_committed} committed{failed}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult(ShownInNotebooks):
    """What a compaction did; the first five are the columns of Java's `rewrite_data_files`.

    Attributes:
        rewritten_data_files_count: data files that were replaced.
        added_data_files_count: data files that took their place.
        rewritten_bytes_count: bytes of the files that were replaced.
        failed_data_files_count: data files of groups that were given up.
        removed_delete_files_count: delete files and deletion vectors that went.
        added_bytes_count: bytes of the new files.
        moved_rows_count: rows that others deleted meanwhile, deleted in the new files too.
        snapshot_ids: of the commits, in their order.
        failures: the groups that were given up, and why.
    """

    rewritten_data_files_count: int = 0
    added_data_files_count: int = 0
    rewritten_bytes_count: int = 0
    failed_data_files_count: int = 0
    removed_delete_files_count: int = 0
    added_bytes_count: int = 0
    moved_rows_count: int = 0
    snapshot_ids: tuple[int, ...] = ()
    failures: tuple[FailedGroup, ...] = ()

    def __repr__(self) -> str:
        lines = [
            "Compaction",
            f"  rewritten  {_files(self.rewritten_data_files_count)}, "
            f"{size_text(self.rewritten_bytes_count)}",
            f"  added      {_files(self.added_data_files_count)}, "
            f"{size_text(self.added_bytes_count)}",
        ]
        if self.removed_delete_files_count:
            lines.append(f"  removed    {self.removed_delete_files_count:,} with deletes")
        if self.moved_rows_count:
            rows = "1 row" if self.moved_rows_count == 1 else f"{self.moved_rows_count:,} rows"
            lines.append(f"  moved      {rows} that others deleted")
        if not self.rewritten_data_files_count and not self.failures:
            lines[1:] = ["  nothing to do: no group of files is worth a rewrite"]
        lines += [f"  given up   {failure}" for failure in self.failures]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversionResult(ShownInNotebooks):
    """What a conversion of equality deletes did.

    Attributes:
        converted_equality_delete_files_count: equality delete files that went.
        added_position_delete_files_count: delete files or deletion vectors that say the same.
        removed_position_delete_files_count: deletes that the new ones hold too.
        deleted_rows_count: rows that the new deletes delete and no position did before.
        left_equality_delete_files_count: equality delete files that stay, since they apply to data
            files that were not asked for.
        snapshot_id: of the commit; None where there was nothing to convert.
    """

    converted_equality_delete_files_count: int = 0
    added_position_delete_files_count: int = 0
    removed_position_delete_files_count: int = 0
    deleted_rows_count: int = 0
    left_equality_delete_files_count: int = 0
    snapshot_id: int | None = None

    def __repr__(self) -> str:
        return _lines("Conversion of equality deletes", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDeletesResult(ShownInNotebooks):
    """What a rewrite of position deletes did, in the columns of Java's procedure.

    Attributes:
        rewritten_delete_files_count: delete files, or deletion vectors, that were replaced.
        added_delete_files_count: those that took their place.
        rewritten_bytes_count, added_bytes_count: of the files that they are in.
        snapshot_id: of the commit; None where there was nothing to do.
    """

    rewritten_delete_files_count: int = 0
    added_delete_files_count: int = 0
    rewritten_bytes_count: int = 0
    added_bytes_count: int = 0
    snapshot_id: int | None = None

    def __repr__(self) -> str:
        return _lines("Rewrite of position deletes", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestsResult(ShownInNotebooks):
    """What a rewrite of manifests did, in the columns of Java's `rewrite_manifests`.

    Attributes:
        rewritten_manifests_count: manifests that were replaced.
        added_manifests_count: those that took their place.
        snapshot_id: of the commit; None where there was nothing to do.
    """

    rewritten_manifests_count: int = 0
    added_manifests_count: int = 0
    snapshot_id: int | None = None

    def __repr__(self) -> str:
        return _lines("Rewrite of manifests", self)


def _lines(title: str, result: ConversionResult | PositionDeletesResult | ManifestsResult) -> str:
    if result.snapshot_id is None:
        return f"{title}: nothing to do"
    names = [field.name for field in fields(result)]
    width = max(map(len, names))
    rows = (f"  {name:<{width}}  {getattr(result, name)}" for name in names)
    return "\n".join([title, *rows])


def _files(count: int) -> str:
    return f"{count:,} file" if count == 1 else f"{count:,} files"
