"""What a user says of a command beside its rows: where it commits, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from frazil.errors import ValidationError
from frazil.format.arguments import SnapshotId
from frazil.spark.write.files import WriteProgress
from frazil.table.conflicts.validation import Isolation, isolation_named
from frazil.table.snapshots.producer import BranchSettings

OnProgress = Callable[[WriteProgress], None]


class WriteKwargs(BranchSettings, total=False):
    """Keywords of commands that write rows.

    Attributes:
        branch: the branch to write to; `main` unless given.
        snapshot_properties: entries for the snapshot's summary.
        options: write options by the Java runtime's names.
        on_progress: called as files are written.
    """

    options: Mapping[str, str] | None
    on_progress: OnProgress | None


class CommitKwargs(WriteKwargs, total=False):
    """Keywords of commands that change rows.

    Attributes:
        isolation: ``serializable`` refuses rows that others added meanwhile and that match,
            ``snapshot`` only what they did to the same files; unless given, the table's property
            ``write.delete.isolation-level``, and that of updates and merges.
        retry: how often the command is run again where another commit contradicts it. A delete
            under ``snapshot`` is run again ``commit.retry.num-retries`` times at least.
    """

    isolation: Isolation | None
    retry: int


class OverwriteKwargs(WriteKwargs, total=False):
    """Keywords of overwrites.

    Attributes:
        isolation: ``serializable`` also refuses rows that others added meanwhile and that match,
            ``snapshot`` only what they deleted; unless given, matching rows that others added are
            replaced too, or refused where only Spark can tell which match.
        validate_from_snapshot_id: look for such changes from here on. Unless given, from the
            snapshot that this handle gave out last (`to_df`, `scan`), or that it showed when
            nothing was read; what was committed through it right after does not count.
    """

    isolation: Isolation | None
    validate_from_snapshot_id: SnapshotId | None


def write_options(
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    on_progress: OnProgress | None = None,
) -> CommitOptions:
    """Return what `WriteKwargs` say; TypeError for what no command that only writes takes."""
    return CommitOptions(
        branch=branch,
        snapshot_properties=snapshot_properties,
        options=options,
        on_progress=on_progress,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOptions:
    """Where a command commits, and how; `CommitKwargs` and `OverwriteKwargs` say what each means.

    Raises:
        ValidationError: there is no such isolation level, or no such number of tries.
    """

    branch: str | None = None
    isolation: Isolation | None = None
    retry: int = 0
    validate_from_snapshot_id: SnapshotId | None = None
    snapshot_properties: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None
    on_progress: OnProgress | None = None

    def with_summary(self, entries: Mapping[str, str]) -> CommitOptions:
        """Return the options with more entries for the snapshot's summary."""
        return replace(self, snapshot_properties={**(self.snapshot_properties or {}), **entries})

    def __post_init__(self) -> None:
        if self.isolation is not None:
            isolation_named(self.isolation)
        if not isinstance(self.retry, int) or isinstance(self.retry, bool) or self.retry < 0:
            raise ValidationError(f"retry is a number of tries from 0 on, not {self.retry!r}")
