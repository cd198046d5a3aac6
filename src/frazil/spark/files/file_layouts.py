"""Which files a scan can leave to Spark's reader, and under which column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.layout.footers import (
    FileFacts,
    FooterColumn,
    file_facts,
    has_ids,
    sampled_facts,
)
from frazil.spark.files.layout.layouts import Layout, Reader, layout_of, names_of_columns
from frazil.spark.files.scan_names import columns_of_schema, named_alike, names_of_schemas
from frazil.storage.files import FileIO

CHECKED_FILES: Final = 64
"""The footers of so many files are looked at before a scan; they are kept for the next one."""

TRUSTED: Final = Layout(Reader.BY_ID, (), frozenset())
"""Of files whose footers were not read: Spark refuses one without ids, so no row can be wrong."""
NO_NATIVE_DEFAULT: Final = (
    I.BinaryType,
    I.DecimalType,
    I.FixedType,
    I.UUIDType,
    I.GeometryType,
    I.GeographyType,
)
"""Types whose defaults Spark's vectorized reader cannot fill in."""

_ARROW: Final = Layout(Reader.ARROW, (), frozenset())


@dataclass(frozen=True, slots=True)
class Survey:
    """What is known of the files before they are read.

    Attributes:
        files: with the index of their layout as ``layout`` and true sizes.
        layouts: how to read them.
        file_names: dotted column names, lower case, and the ids they stand for in the files that
            Spark reads by id; None where that is not known.
        named_alike: ids of the scan's top-level columns that every file has under the table's
            names, at any depth.
    """

    files: pl.DataFrame
    layouts: tuple[Layout, ...]
    file_names: Mapping[str, frozenset[int]] | None
    named_alike: frozenset[int]


def survey(
    io: FileIO,
    metadata: TableMetadata,
    files: pl.DataFrame,
    fields: Sequence[I.NestedField],
    table: TableColumns,
) -> Survey:
    """How each of a plan's files is read for these top-level columns.

    The footers of a small plan are read, and those of every plan whose files may need more than
    Spark's reader does: under a name mapping, or with defaults inside of structs. Of a larger plan
    a sample is read: one file without ids in it, and all are.
    """
    parquet = files.filter(pl.col("file_format") == "parquet")["file_path"]
    everything = (
        len(parquet) <= CHECKED_FILES
        or table.mapping is not None
        or any(_may_need_more(field, metadata) for field in fields)
    )
    sample = parquet if everything else parquet.gather_every(len(parquet) // CHECKED_FILES)
    facts = (file_facts if everything else sampled_facts)(io, sample.to_list())
    if not everything and not all(known.has_field_ids for known in facts.values()):
        facts = file_facts(io, parquet.to_list())
    layouts: dict[tuple[FooterColumn, ...], tuple[int, Layout]] = {}
    chosen: list[Layout] = [TRUSTED, _ARROW]
    places: dict[str, int] = {}
    for path, known in facts.items():
        if known.columns not in layouts:
            layout = layout_of(
                known.columns,
                has_ids=has_ids(known.columns),
                fields=fields,
                mapping=table.mapping,
                table_fields=table.fields,
            )
            same = next((i for i, other in enumerate(chosen) if _same(other, layout)), None)
            if same is None or same < 2:
                same = len(chosen)
                chosen.append(layout)
            layouts[known.columns] = (same, layout)
        places[path] = layouts[known.columns][0]
    all_checked = len(places) == len(parquet)
    return Survey(
        files=_with_layouts(files, places, facts),
        layouts=tuple(chosen),
        file_names=_file_names(metadata, facts, all_checked),
        named_alike=_named_alike(metadata, fields, facts, all_checked),
    )


def _same(left: Layout, right: Layout) -> bool:
    # Files that Spark reads by id need not be told apart by their other columns.
    by_id = left.reader is right.reader is Reader.BY_ID
    return by_id and left.missing == right.missing


def _may_need_more(field: I.NestedField, metadata: TableMetadata) -> bool:
    """Whether a file without this field cannot be left to Spark's reader."""
    nested = field.field_type.is_nested
    if nested and (field.initial_default is not None or _holds_default(field.field_type)):
        return True
    if field.initial_default is not None and isinstance(field.field_type, NO_NATIVE_DEFAULT):
        return True
    # Spark would read the days of a date as nanoseconds.
    return any(
        _was_date(metadata, inner.field_id)
        for inner in (field, *Schema((field,)).fields_by_id.values())
        if isinstance(inner.field_type, I.TimestampNanoType)
    )


def _holds_default(field_type: I.IcebergType) -> bool:
    children: tuple[I.NestedField, ...] = getattr(field_type, "fields", ())
    return any(
        child.initial_default is not None or _holds_default(child.field_type) for child in children
    )


def _was_date(metadata: TableMetadata, field_id: int) -> bool:
    fields = (schema.field_or_none(field_id) for schema in metadata.schemas)
    return any(field is not None and isinstance(field.field_type, I.DateType) for field in fields)


def _with_layouts(
    files: pl.DataFrame, places: Mapping[str, int], facts: Mapping[str, FileFacts]
) -> pl.DataFrame:
    known = pl.DataFrame(
        {
            "file_path": list(places),
            "checked_layout": list(places.values()),
            "checked_size": [facts[path].size for path in places],
        },
        schema={"file_path": pl.String, "checked_layout": pl.Int64, "checked_size": pl.Int64},
    )
    unchecked = pl.when(pl.col("file_format") == "parquet").then(0).otherwise(1)
    return (
        files.join(known, on="file_path", how="left", maintain_order="left")
        .with_columns(
            pl.coalesce("checked_layout", unchecked.cast(pl.Int64)).alias("layout"),
            pl.coalesce("checked_size", "file_size_in_bytes").alias("file_size_in_bytes"),
        )
        .drop("checked_layout", "checked_size")
    )


def _file_names(
    metadata: TableMetadata, facts: Mapping[str, FileFacts], all_checked: bool
) -> Mapping[str, frozenset[int]] | None:
    names: dict[str, frozenset[int]] = {}
    if not all_checked:
        schemas = _all_schemas(metadata)
        if schemas is None:
            return None
        names = names_of_schemas(schemas)
    for columns in {known.columns for known in facts.values()}:
        for name, ids_here in names_of_columns(columns).items():
            names[name] = names.get(name, frozenset()) | ids_here
    return names


def _named_alike(
    metadata: TableMetadata,
    fields: Sequence[I.NestedField],
    facts: Mapping[str, FileFacts],
    all_checked: bool,
) -> frozenset[int]:
    nested = [field for field in fields if field.field_type.is_nested]
    schemas = () if all_checked or not nested else _all_schemas(metadata)
    if schemas is None:
        return frozenset()
    seen = {known.columns for known in facts.values()}.union(map(columns_of_schema, schemas))
    return frozenset(
        field.field_id for field in nested if all(named_alike([field], each) for each in seen)
    )


def _all_schemas(metadata: TableMetadata) -> Sequence[Schema] | None:
    """Every schema that the table has had; None where they are not all known."""
    schemas = metadata.schemas
    ids = {schema.schema_id for schema in schemas}
    # v1 metadata may name only the current schema; elsewhere a gap tells of removed ones.
    if metadata.format_version == 1 or ids != set(range(len(schemas))):
        return None
    return schemas
