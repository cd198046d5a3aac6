"""Columns that change their type while live equality deletes compare them."""

from __future__ import annotations

import warnings

import polars as pl

from frazil.errors import InvalidFormatError, StorageError
from frazil.format.manifests import Content, ManifestContent
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import ListType, MapType, StructType
from frazil.planning.frames import live_entries
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO


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
        and not isinstance(field.field_type, StructType | ListType | MapType)
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
