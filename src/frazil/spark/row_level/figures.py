"""What a row-level command did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from frazil.format.html_text import ShownInNotebooks
from frazil.format.snapshots.summaries import MOVED_ROWS, RIVAL_SNAPSHOTS, SHARED_FILES
from frazil.planning.scan_plan import ScanPlan, Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeResult(ShownInNotebooks):
    """What a command did to the table.

    A count is None where only a look at rows would tell it, which an overwrite does not take.

    Attributes:
        command: ``append``, ``overwrite``, ``delete``, ``update`` or ``merge``.
        mode: ``copy-on-write``, ``merge-on-read``, ``append`` where files only came, or
            ``metadata`` where files only came and went as a whole.
        snapshot_id: the snapshot that the command read; None for a table without one.
        rows_read: rows of the data files that were searched, each file once and deleted rows too;
            files that go as a whole by metadata have none of them.
        rows_updated, rows_deleted, rows_inserted: rows of the table that were changed so.
        rows_copied: unchanged rows that were written anew with others of their file.
        files_read: data files that the command looked at.
        files_skipped: data files that it did not; None where manifests do not state their number.
        files_added, files_removed: data files.
        deletes_added, deletes_removed: delete files or deletion vectors.
        skipped: why files were not looked at.
        matched_updated, matched_deleted: of the rows above, by clauses of a merge for matched rows.
        by_source_updated, by_source_deleted: by clauses for rows that the source does not match.
        rivals: snapshots that others committed after the one that the command read.
        files_shared: data files of which these delete rows too.
        rows_moved: rows that were found and deleted in files that were written meanwhile, by others
            or by the command itself.
    """

    command: str
    mode: str
    snapshot_id: int | None
    rows_read: int = 0
    rows_updated: int = 0
    rows_deleted: int | None = 0
    rows_inserted: int | None = 0
    rows_copied: int | None = 0
    files_read: int = 0
    files_skipped: int | None = 0
    files_added: int = 0
    files_removed: int = 0
    deletes_added: int = 0
    deletes_removed: int = 0
    skipped: tuple[Skipped, ...] = ()
    matched_updated: int = 0
    matched_deleted: int = 0
    by_source_updated: int = 0
    by_source_deleted: int = 0
    rivals: int = 0
    files_shared: int = 0
    rows_moved: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes_nothing(self) -> bool:
        """Whether no row was changed and nothing was committed."""
        files = self.files_added or self.files_removed or self.deletes_added
        return not (self.rows_updated or self.rows_deleted or self.rows_inserted or files)

    def __repr__(self) -> str:
        rows = [
            f"{'some' if count is None else f'{count:,}'} {what}"
            for count, what in (
                (self.rows_updated, "updated"),
                (self.rows_deleted, "deleted"),
                (self.rows_inserted, "inserted"),
                (self.rows_copied, "copied"),
            )
            if count != 0
        ]
        files = [
            f"{count:,} {what}"
            for count, what in (
                (self.files_added, "added"),
                (self.files_removed, "removed"),
                (self.deletes_added, "with deletes added"),
                (self.deletes_removed, "with deletes removed"),
            )
            if count
        ]
        beside = [
            f"{count:,} {one if count == 1 else many}"
            for count, one, many in (
                (self.rivals, "commit of others", "commits of others"),
                (self.files_shared, "file shared with them", "files shared with them"),
                (self.rows_moved, "row moved", "rows moved"),
            )
            if count
        ]
        read = [f"{self.rows_read:,} read"] if self.rows_read else []
        skipped = "" if not self.files_skipped else f", {self.files_skipped:,} skipped"
        return "\n".join(
            [
                f"{self.command.upper()} ({self.mode})"
                if self.command != self.mode
                else self.command.upper(),
                f"  rows   {', '.join([*read, *(rows or ['none changed'])])}",
                f"  files  {', '.join([f'{self.files_read:,} read{skipped}', *files])}",
                *(
                    f"         {'some' if each.files is None else f'{each.files:,}'} skipped by "
                    f"{each.reason}"
                    for each in self.skipped
                ),
                *([f"  beside {', '.join(beside)}"] if beside else []),
            ]
        )


def files_skipped(plan: ScanPlan) -> int | None:
    """Return the number of data files that a plan leaves out; None where it is not known."""
    counts = [each.files for each in plan.skipped]
    return None if None in counts else sum(count for count in counts if count is not None)


def summary_entries(command: str, figures: Mapping[str, int]) -> dict[str, str]:
    """Return the rows of a command under the Java runtime's names of a snapshot's summary."""
    return {entry: str(figures.get(name, 0)) for name, entry in _ENTRIES[command].items()}


def figures_beside_others(summary: Mapping[str, str]) -> dict[str, int]:
    """Return what a snapshot's summary says of commits that it came after."""
    said = {name: summary.get(entry, "") for name, entry in _BESIDE.items()}
    # A user may have given an entry of the name.
    return {name: int(text) for name, text in said.items() if text.isdecimal()}


_BESIDE: Final[Mapping[str, str]] = {
    "rivals": RIVAL_SNAPSHOTS,
    "files_shared": SHARED_FILES,
    "rows_moved": MOVED_ROWS,
}
_MERGED: Final = "spark.merge-into.num-target-rows-"
_ENTRIES: Final[Mapping[str, Mapping[str, str]]] = {
    "delete": {
        "rows_deleted": "spark.delete.num-deleted-rows",
        "rows_copied": "spark.delete.num-copied-rows",
    },
    "update": {
        "rows_updated": "spark.update.num-updated-rows",
        "rows_copied": "spark.update.num-copied-rows",
    },
    "merge": {
        "rows_copied": f"{_MERGED}copied",
        "rows_updated": f"{_MERGED}updated",
        "rows_deleted": f"{_MERGED}deleted",
        "rows_inserted": f"{_MERGED}inserted",
        "matched_updated": f"{_MERGED}matched-updated",
        "matched_deleted": f"{_MERGED}matched-deleted",
        "by_source_updated": f"{_MERGED}not-matched-by-source-updated",
        "by_source_deleted": f"{_MERGED}not-matched-by-source-deleted",
    },
}
