"""UpdateSchema: columns come, go and change; data files stay as they are (rules 43-51)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from itertools import chain
from typing import Any

import polars as pl

from frazil.errors import ConflictError, InvalidFormatError, StorageError
from frazil.format.changes import (
    LAST_ADDED,
    AddSchema,
    RemoveProperties,
    SetCurrentSchema,
    SetProperties,
    Update,
)
from frazil.format.evolution.promotion import keeps_partition_values
from frazil.format.evolution.schema import SchemaEvolution
from frazil.format.manifests import Content, ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import evolved_mapping_property
from frazil.format.properties.table import COLUMN_PROPERTIES
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import IcebergType, as_type
from frazil.planning.frames import live_entries
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO
from frazil.table.commit.block import CommittedAtEnd
from frazil.table.commit.operation import MetadataOperation, Operation

COLUMN_PROPERTY_PREFIXES = tuple(each.prefix for each in COLUMN_PROPERTIES)


class UpdateSchema(SchemaEvolution, CommittedAtEnd):
    """Collects schema changes; leaving the `with` block commits them.

        with table.update_schema() as u:
            u.add_column("tip", "double", doc="in dollars")
            u.rename_column("a", "b")

    An exception inside of the block commits nothing. Table properties that name a column follow
    it when it is renamed, and go when it is deleted. The name mapping learns new names, but for
    those that it has for other columns, so that files without field ids keep their rows.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        run: Callable[[Operation], None],
        *,
        case_sensitive: bool = True,
        text_zone: str | tzinfo = UTC,
        type_of: Callable[[Any], IcebergType] = as_type,
        io: FileIO | None = None,
    ) -> None:
        super().__init__(
            metadata.schema,
            metadata.last_column_id,
            metadata.format_version,
            partition_fields=[field for spec in metadata.partition_specs for field in spec.fields],
            kept_source_ids=_sources_in_use(metadata),
            case_sensitive=case_sensitive,
            text_zone=text_zone,
            type_of=type_of,
        )
        self._table = metadata
        self._run_operation = run
        self._io = io

    def commit(self) -> None:
        """Commit the changes; leaving the `with` block does this.

        A warning says so before, where live equality deletes delete by a column whose type changes.
        """
        schema = self.apply()
        if self._io is not None:
            warn_of_promoted_keys(self._io, self._table, schema)
        self._run_operation(replace_schema(self._table, schema, self.last_column_id))


def replace_schema(start: TableMetadata, schema: Schema, last_column_id: int) -> MetadataOperation:
    """Make a schema that was evolved from `start` the current one (rule 43).

    Raises ConflictError when run on metadata whose schema another commit changed (rule 213).
    """

    def updates(base: TableMetadata) -> list[Update]:
        before = (start.current_schema_id, start.last_column_id)
        now = (base.current_schema_id, base.last_column_id)
        if before != now:
            raise ConflictError(
                "another commit changed the table's schema: schema and last column id were "
                f"{before} and are {now}; make the change again"
            )
        _check_sources(start, base, schema)
        if schema.is_same_as(base.schema):
            return []
        mapping = evolved_mapping_property(base, schema)
        return [
            # Servers assign the id; some refuse one that another schema has.
            AddSchema(base.as_added(schema), last_column_id),
            SetCurrentSchema(LAST_ADDED),
            *_follow_columns(base.properties, base.schema, schema),
            *([SetProperties(mapping)] if mapping else []),
        ]

    return MetadataOperation(updates)


def _follow_columns(properties: Mapping[str, str], before: Schema, after: Schema) -> list[Update]:
    """Properties that name a column, under its new name, or gone with it."""
    moved: dict[str, str] = {}
    gone: list[str] = []
    for key, value in properties.items():
        prefix = next((p for p in COLUMN_PROPERTY_PREFIXES if key.startswith(p)), None)
        if prefix is None:
            continue
        field = before.field_or_none(key.removeprefix(prefix))
        if field is None:
            continue
        name = after.find_column_name(field.field_id)
        if name == key.removeprefix(prefix):
            continue
        gone.append(key)
        if name is not None:
            moved[prefix + name] = value
    updates: list[Update] = []
    if gone:
        updates.append(RemoveProperties(tuple(gone)))
    if moved:
        updates.append(SetProperties(moved))
    return updates


def _check_sources(start: TableMetadata, base: TableMetadata, schema: Schema) -> None:
    """Check that partition fields and sort keys that others have made since fit the new columns."""
    for source in sorted(_sources_in_use(base)):
        if schema.field_or_none(source) is None and base.schema.field_or_none(source) is not None:
            raise ConflictError(
                f"another commit made the partition spec or sort order from column "
                f"{base.schema.find_column_name(source)!r}, which this one deletes; make the "
                "change again"
            )
    known = {field for spec in start.partition_specs for field in spec.fields}
    for field in (field for spec in base.partition_specs for field in spec.fields):
        for source in () if field in known else field.source_ids:
            before, after = base.schema.field_or_none(source), schema.field_or_none(source)
            if before is None or after is None or before.field_type == after.field_type:
                continue
            if not keeps_partition_values(before.field_type, after.field_type, field.transform):
                raise ConflictError(
                    f"another commit made the partition field {field.name!r} from column "
                    f"{base.schema.find_column_name(source)!r}, whose type this one changes; make "
                    "the change again"
                )


def _sources_in_use(metadata: TableMetadata) -> frozenset[int]:
    """The columns that the current partitioning and order are made from."""
    partitioned = (field.source_ids for field in metadata.spec.fields if not field.is_void)
    sorted_by = (field.source_ids for field in metadata.sort_order.fields)
    return frozenset(source for ids in chain(partitioned, sorted_by) for source in ids)


# -- promoted keys of equality deletes -------------------------------------------------------------


def warn_of_promoted_keys(io: FileIO, metadata: TableMetadata, schema: Schema) -> None:
    """Warn if columns change their types by which live equality deletes delete.

    Frazil applies such deletes by the values; DuckDB fails on such a table, and the Java runtime
    gives deleted rows back at older snapshots.
    `metadata` has the columns as they are, `schema` as they will be.
    """
    after = schema.fields_by_id
    promoted = {
        field_id: str(metadata.schema.find_column_name(field_id))
        for field_id, field in metadata.schema.fields_by_id.items()
        if field_id in after
        and after[field_id].field_type != field.field_type
        # A struct is another one with each field that comes.
        and not field.field_type.is_nested
    }
    if not promoted:
        return
    heads = {ref.snapshot_id for ref in metadata.refs.values()}
    snapshots = [each for each in metadata.snapshots if each.snapshot_id in heads]
    try:
        files = [_files_by_key(io, metadata, each, list(promoted)) for each in snapshots]
    except (InvalidFormatError, StorageError):
        # What cannot be read hinders no change of the metadata.
        return
    found = pl.concat([pl.DataFrame(schema=_FOUND), *files]).unique()
    if found.is_empty():
        return
    columns = ", ".join(repr(promoted[i]) for i in sorted(found["key"].unique()))
    warnings.warn(
        f"{found['file_path'].n_unique()} live equality delete files delete by {columns}, whose "
        "type changes: DuckDB fails on such a table, and the Java runtime gives deleted rows back "
        "at older snapshots. Where other engines read the table, convert them first, by "
        "table.maintenance.convert_equality_deletes()",
        stacklevel=4,
    )


_FOUND = {"file_path": pl.String(), "key": pl.Int32()}


def _files_by_key(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, ids: list[int]
) -> pl.DataFrame:
    """The live equality delete files of a snapshot that compare one of the columns."""
    loader = ManifestLoader.of(metadata, io)
    manifests = [
        each
        for each in loader.manifests(snapshot)
        if each.content is ManifestContent.DELETES and each.has_live_files
    ]
    frames = [
        live_entries(frame)
        .filter(pl.col("content") == int(Content.EQUALITY_DELETES))
        .select("file_path", pl.col("equality_ids").cast(pl.List(pl.Int32)).alias("key"))
        .explode("key")
        .filter(pl.col("key").is_in(ids))
        for frame in loader.entries(manifests)
    ]
    return pl.concat([pl.DataFrame(schema=_FOUND), *frames])
