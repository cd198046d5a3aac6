"""Every change of a table as a method; what it is run on is the subclass's business.

`TableHandle` commits each call, `Transaction` collects them for one commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from frazil.format.arguments import SnapshotId, snapshot_id_of
from frazil.format.metadata import TableMetadata
from frazil.format.sorting import SortExpr, SortField
from frazil.later import later
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver
from frazil.table.port import TablePort
from frazil.table.time_travel import Moment
from frazil.table.updates import references
from frazil.table.updates.references import DEFAULT_RETENTION, Retention

if TYPE_CHECKING:
    from frazil.table.file_changes import FileChanges
    from frazil.table.maintenance.table_maintenance import StatisticsChanges
    from frazil.table.snapshots.cherry_pick import CherryPick, publication
    from frazil.table.updates import properties
    from frazil.table.updates import sort_order as sort_update
    from frazil.table.updates.create_branch import CreateBranch
    from frazil.table.updates.schema import UpdateSchema
    from frazil.table.updates.spec import UpdateSpec
else:
    FileChanges = later("frazil.table.file_changes", "FileChanges")
    StatisticsChanges = later("frazil.table.maintenance.table_maintenance", "StatisticsChanges")
    CherryPick, publication = later(
        "frazil.table.snapshots.cherry_pick", "CherryPick", "publication"
    )
    properties = later("frazil.table.updates.properties")
    sort_update = later("frazil.table.updates.sort_order")
    CreateBranch = later("frazil.table.updates.create_branch", "CreateBranch")
    UpdateSchema = later("frazil.table.updates.schema", "UpdateSchema")
    UpdateSpec = later("frazil.table.updates.spec", "UpdateSpec")


class TableOperations(OnDriver):
    """The operations of a table, by readable names.

    They are applied at once on a handle, and with the rest of the block in a transaction.
    """

    def __init__(self, port: TablePort) -> None:
        self.port = port

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata, with all operations of a transaction so far."""
        return self.port.metadata

    @property
    def io(self) -> FileIO:
        """The table's files."""
        return self.port.io

    # -- schema, partitioning, order, properties ----

    def update_schema(self, *, case_sensitive: bool = True) -> UpdateSchema:
        """Return a builder of schema changes, for a `with` block."""
        return UpdateSchema(
            self.port.newest(),
            self.port.run,
            case_sensitive=case_sensitive,
            text_zone=self.port.text_zone,
            type_of=self.port.column_type,
            io=self.port.io,
        )

    def update_spec(self, *, case_sensitive: bool = True) -> UpdateSpec:
        """Return a builder of changes to the partitioning, for a `with` block."""
        return UpdateSpec(self.port.newest(), self.port.run, case_sensitive=case_sensitive)

    def replace_sort_order(
        self, *fields: str | SortExpr | SortField, case_sensitive: bool = True
    ) -> None:
        """Sort new files by these keys, as `"ts desc nulls last"`; by none, do not sort them."""
        self.port.run(sort_update.replace_sort_order(fields, case_sensitive=case_sensitive))

    def set_properties(self, changes: Mapping[str, str] | None = None, /, **named: str) -> None:
        """Set table properties; ValidationError for reserved ones.

        Examples:
            >>> trips.set_properties({"owner": "finance"})
        """
        self.port.run(properties.set_properties({**(changes or {}), **named}))

    def remove_properties(self, *names: str) -> None:
        """Remove table properties; those that are not set are passed over."""
        self.port.run(properties.remove_properties(names))

    def set_location(self, location: str) -> None:
        """Choose where new files go from now on; existing files stay."""
        self.port.run(properties.set_location(location))

    def upgrade(self, format_version: int | str) -> None:
        """Raise the format version; there is no way back."""
        self.port.run(properties.upgrade(format_version))

    # -- what serves engines and maintenance ----

    @property
    def files(self) -> FileChanges:
        """Commits of files that are already written: `files.append(data_files)` and others."""
        return FileChanges(self.port)

    @property
    def maintenance(self) -> StatisticsChanges:
        """What of a table's maintenance a transaction can do: its statistics files."""
        return StatisticsChanges(self.port)

    # -- branches, tags, the current snapshot ----

    def create_branch(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        """Make a branch at a snapshot, by default the current one; an empty table's is empty.

        Examples:
            >>> trips.create_branch("audit")
        """
        branch = CreateBranch(self.io, name, snapshot_id=snapshot_id, retention=retention)
        self.port.run(branch)

    def create_tag(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        """Make a tag at a snapshot, by default the current one.

        Examples:
            >>> trips.create_tag("v1", retention=frazil.Retention(max_ref_age_ms=86_400_000))
        """
        tag = references.create_tag(name, snapshot_id=snapshot_id, retention=retention)
        self.port.run(tag)

    def replace_branch(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Point an existing branch at another snapshot, by default the current one."""
        branch = references.replace_branch(name, snapshot_id=snapshot_id, retention=retention)
        self.port.run(branch)

    def replace_tag(
        self,
        name: str,
        *,
        snapshot_id: SnapshotId | None = None,
        retention: Retention | None = None,
    ) -> None:
        """Point an existing tag at another snapshot, by default the current one."""
        tag = references.replace_tag(name, snapshot_id=snapshot_id, retention=retention)
        self.port.run(tag)

    def set_retention(self, name: str, retention: Retention) -> None:
        """Change how long a branch or tag and its snapshots are kept."""
        self.port.run(references.set_retention(name, retention))

    def remove_branch(self, name: str) -> None:
        """Remove a branch; its snapshots stay until they expire."""
        self.port.run(references.remove_branch(name))

    def remove_tag(self, name: str) -> None:
        """Remove a tag; its snapshot stays until it expires."""
        self.port.run(references.remove_tag(name))

    def rename_branch(self, name: str, new_name: str) -> None:
        """Give a branch another name."""
        self.port.run(references.rename_branch(name, new_name))

    def fast_forward(self, branch: str, to: str) -> None:
        """Move a branch to the snapshot of another reference that builds on it."""
        self.port.run(references.fast_forward(branch, to))

    def set_current_snapshot(
        self, snapshot_id: SnapshotId | None = None, *, ref: str | None = None
    ) -> None:
        """Make a snapshot, or that of a reference, the current one."""
        self.port.run(references.set_current_snapshot(snapshot_id, ref=ref))

    def rollback_to_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Make an ancestor of the current snapshot the current one."""
        self.port.run(references.rollback_to_snapshot(snapshot_id))

    def rollback_to_timestamp(self, timestamp: Moment) -> None:
        """Make the newest ancestor older than a time the current snapshot.

        Args:
            timestamp: milliseconds since the epoch, ISO text (in the zone of the Spark session, or
                without one in the process's), a datetime or a date.
        """
        self.port.run(references.rollback_to_timestamp(self.port.timestamp_ms(timestamp)))

    def cherrypick_snapshot(self, snapshot_id: SnapshotId) -> None:
        """Apply the append or dynamic overwrite of a snapshot to `main`."""
        self.port.run(CherryPick(self.io, self.port.newest(), snapshot_id_of(snapshot_id)))

    def publish_changes(self, wap_id: str) -> None:
        """Apply what was staged under a WAP id to `main`.

        Raises:
            NoSuchSnapshotError: nothing was.
            ValidationError: several snapshots were that do not build on each other.
            ConflictError: it was published already.
        """
        self.port.run(publication(self.io, self.port.newest(), wap_id))
