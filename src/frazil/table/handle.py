"""TableHandle: a table, without any engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Self, Unpack

from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.format.arguments import SnapshotId, optional_snapshot_id_of
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.sorting import SortOrder
from frazil.later import later
from frazil.table.operations import TableOperations
from frazil.table.port import HandlePort
from frazil.table.time_travel import Moment, find_snapshot

if TYPE_CHECKING:
    from frazil.format.html_text import html_table, notebook_card
    from frazil.table.inspect.inspector import Inspector
    from frazil.table.maintenance.table_maintenance import Maintenance
    from frazil.table.transaction import Transaction, TransactionPort
    from frazil.table.updates.replacement import DefinitionKwargs, ReplaceDefinition
else:
    html_table, notebook_card = later("frazil.format.html_text", "html_table", "notebook_card")
    Inspector = later("frazil.table.inspect.inspector", "Inspector")
    Maintenance = later("frazil.table.maintenance.table_maintenance", "Maintenance")
    Transaction, TransactionPort = later(
        "frazil.table.transaction", "Transaction", "TransactionPort"
    )
    ReplaceDefinition = later("frazil.table.updates.replacement", "ReplaceDefinition")


_MOST_COLUMNS_SHOWN: Final = 20


class TableHandle(TableOperations):
    """A table as it was when it was loaded or changed through this handle, and how to change it.

    Every change commits at once and moves the handle to what was committed; `transaction()`
    collects several. `refresh()` looks for what others have committed.

    There is no session here: times without a zone, text as well as datetimes, are local times of
    the process.
    """

    port: HandlePort

    def __init__(self, catalog: Catalog, loaded: LoadedTable) -> None:
        super().__init__(HandlePort(catalog, loaded))

    def __repr__(self) -> str:
        metadata = self.metadata
        columns = ", ".join(
            f"{field.name}: {field.field_type}" for field in metadata.schema.fields[:8]
        )
        more = len(metadata.schema.fields) - 8
        spec = ", ".join(
            f"{field.transform}({metadata.schema.find_column_name(field.source_id)})"
            for field in metadata.spec.fields
        )
        return (
            f"{type(self).__name__}({self.name}, format version {metadata.format_version})\n"
            f"  columns: {columns}{f', and {more} more' if more > 0 else ''}\n"
            f"  partitioned by: {spec or 'nothing'}\n"
            f"  snapshot: {metadata.current_snapshot_id}, {len(metadata.snapshots)} kept\n"
            f"  location: {metadata.location}"
        )

    def _repr_html_(self) -> str:
        metadata = self.metadata
        spec = ", ".join(
            f"{field.transform}({metadata.schema.find_column_name(field.source_id)})"
            for field in metadata.spec.fields
        )
        facts = {
            "format version": metadata.format_version,
            "partitioned by": spec or "nothing",
            "snapshot": f"{metadata.current_snapshot_id}, {len(metadata.snapshots)} kept",
            "location": metadata.location,
        }
        fields = metadata.schema.fields
        rows = [
            (field.name, str(field.field_type), field.doc or "")
            for field in fields[:_MOST_COLUMNS_SHOWN]
        ]
        more = len(fields) - len(rows)
        below = html_table(("column", "type", "comment"), rows)
        below += f"<p>and {more} more columns</p>" if more else ""
        return notebook_card(f"{type(self).__name__} {self.name}", facts, below=below)

    # -- what it is ----

    @property
    def identifier(self) -> tuple[str, ...]:
        """Namespace levels and the table's name."""
        return self.port.identifier

    @property
    def name(self) -> str:
        """The identifier as text."""
        return self.port.name

    @property
    def catalog(self) -> Catalog:
        """The catalog that the table is in."""
        return self.port.catalog

    @property
    def metadata_location(self) -> str:
        """The path of the metadata file."""
        return self.port.loaded_table.metadata_location

    @property
    def uuid(self) -> str | None:
        """What makes the table the same one under any name; None only in some v1 tables."""
        return self.metadata.table_uuid

    @property
    def location(self) -> str:
        """The table's folder."""
        return self.metadata.location

    @property
    def format_version(self) -> int:
        """1, 2 or 3."""
        return self.metadata.format_version

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return dict(self.metadata.properties)

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema

    @property
    def schemas(self) -> Mapping[int, Schema]:
        """Every schema that is kept, by its id."""
        return dict(self.metadata.schemas_by_id)

    @property
    def spec(self) -> PartitionSpec:
        """The partition spec of new files."""
        return self.metadata.spec

    @property
    def specs(self) -> Mapping[int, PartitionSpec]:
        """Every partition spec that is kept, by its id."""
        return dict(self.metadata.specs_by_id)

    @property
    def sort_order(self) -> SortOrder:
        """The sort order of new files."""
        return self.metadata.sort_order

    @property
    def sort_orders(self) -> Mapping[int, SortOrder]:
        """Every sort order that is kept, by its id."""
        return dict(self.metadata.sort_orders_by_id)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of `main`; None in an empty table."""
        return self.metadata.current_snapshot

    @property
    def inspect(self) -> Inspector:
        """The metadata tables as Polars frames."""
        return Inspector(
            self.metadata, self.metadata_location, self.io, text_zone=self.port.text_zone
        )

    @property
    def maintenance(self) -> Maintenance:
        """What keeps the table small: `maintenance.expire_snapshots()` and others."""
        return Maintenance(self.port)

    def snapshot(
        self,
        snapshot_id: SnapshotId | None = None,
        *,
        as_of: Moment | None = None,
        ref: str | None = None,
    ) -> Snapshot | None:
        """Return a snapshot by id, by a time, or by a branch or tag; by default the current one.

        Args:
            snapshot_id: its id.
            as_of: milliseconds since the epoch, an ISO text, a datetime or a date: the snapshot
                that was current then (rule 188). Text without an offset is a time in the zone of
                the Spark session, or without one in the process's.
            ref: the name of a branch or tag.

        Raises:
            NoSuchSnapshotError, NoSuchRefError: there is none.
        """
        return find_snapshot(
            self.metadata,
            snapshot_id=optional_snapshot_id_of(snapshot_id),
            as_of=as_of,
            ref=ref,
            text_zone=self.port.text_zone,
        )

    def ancestors(self, snapshot_id: SnapshotId | None = None) -> tuple[Snapshot, ...]:
        """Return a snapshot (by default the current one) and its kept ancestors, newest first."""
        given = optional_snapshot_id_of(snapshot_id)
        start = given if given is not None else self.metadata.current_snapshot_id
        return () if start is None else self.metadata.ancestors_of(start)

    # -- how it changes ----

    def refresh(self) -> Self:
        """Load what others have committed since.

        Raises:
            ValidationError: the name now belongs to another table (rule 192).
            NoSuchTableError: the table is gone.
        """
        self.port.refresh()
        return self

    def transaction(self) -> Transaction:
        """Several operations in one commit, for a `with` block."""
        return Transaction(TransactionPort(self.port, self.port.refresh()))

    def replace_transaction(
        self, schema: Schema, **definition: Unpack[DefinitionKwargs]
    ) -> Transaction:
        """Return a transaction that starts by giving the table another definition and no rows.

        The schema's ids are assigned anew, by name where the table has such a column. History,
        other branches and tags stay.
        """
        port = TransactionPort(self.port, self.port.refresh())
        port.run(ReplaceDefinition(schema, **definition))
        return Transaction(port)
