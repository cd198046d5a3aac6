"""Which files a scan can leave to Spark's reader, and under which column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.format import types as I
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.types.inside import fields_inside
from frazil.planning.frames import column_of, held_once
from frazil.spark.files.arrow.files import TableColumns
from frazil.spark.files.layout.footers import (
    FileFacts,
    FooterColumn,
    file_facts,
    has_ids,
    sampled_facts,
)
from frazil.spark.files.layout.layouts import Layout, Reader, layout_of, names_of_columns
from frazil.spark.files.layout.trusted import is_trusted, known_schemas, trusted_layout
from frazil.spark.files.scan_names import columns_of_schema, named_alike, names_of_schemas
from frazil.storage.files import FileIO

CHECKED_FILES: Final = 64
"""The footers of so many files are looked at before a scan; they are kept for the next one."""

UNKNOWN: Final = Layout(Reader.BY_ID, (), frozenset())
"""Of files that nothing is known of: Spark refuses one without ids, so no row can be wrong."""
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
_UNKNOWN, _BY_ARROW, _TRUSTED = range(3)
"""Places of layouts that need no footer."""


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
    *,
    asks_footers: bool = False,
) -> Survey:
    """How each of a plan's files is read for these top-level columns.

    Every footer is read where files may need more than Spark's reader does: under a name mapping,
    or with defaults inside of structs. Else those are of which the entries do not tell enough; of
    many a sample: one file without ids in it, and all of them are.

    Args:
        asks_footers: whether every footer is read in any case.
    """
    is_parquet = column_of(files, "file_format") == "parquet"
    needs_more = table.mapping is not None or any(_may_need_more(f, metadata) for f in fields)
    trusted = is_trusted(metadata, files, table.mapping)
    if needs_more or asks_footers:
        trusted &= False
    parquet = files.select("file_path", "file_size_in_bytes").filter(is_parquet & ~trusted)
    everything = needs_more or asks_footers or len(parquet) <= CHECKED_FILES
    sample = parquet if everything else parquet.gather_every(len(parquet) // CHECKED_FILES)
    facts = (file_facts if everything else sampled_facts)(io, *_paths_and_sizes(sample))
    if not everything and not all(known.has_field_ids for known in facts.values()):
        facts = file_facts(io, *_paths_and_sizes(parquet))
    layouts: dict[tuple[FooterColumn, ...], tuple[int, Layout]] = {}
    chosen: list[Layout] = [UNKNOWN, _ARROW, trusted_layout(metadata)]
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
            same = next(
                (i for i, other in enumerate(chosen) if _is_same_layout(other, layout)), None
            )
            if same is None or same <= _TRUSTED:
                same = len(chosen)
                chosen.append(layout)
            layouts[known.columns] = (same, layout)
        places[path] = layouts[known.columns][0]
    all_checked = len(places) == is_parquet.sum()
    return Survey(
        files=_with_layouts(files, trusted, places, facts),
        layouts=tuple(chosen),
        file_names=_file_names(metadata, facts, all_checked),
        named_alike=_named_alike(metadata, fields, facts, all_checked),
    )


def _paths_and_sizes(files: pl.DataFrame) -> tuple[list[str], dict[str, int]]:
    return files["file_path"].to_list(), dict(files.iter_rows())


def _is_same_layout(left: Layout, right: Layout) -> bool:
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
    return any(
        child.initial_default is not None or _holds_default(child.field_type)
        for child in fields_inside(field_type)
    )


def _was_date(metadata: TableMetadata, field_id: int) -> bool:
    fields = (schema.field_or_none(field_id) for schema in metadata.schemas)
    return any(field is not None and isinstance(field.field_type, I.DateType) for field in fields)


def _with_layouts(
    files: pl.DataFrame,
    trusted: pl.Series,
    places: Mapping[str, int],
    facts: Mapping[str, FileFacts],
) -> pl.DataFrame:
    known = pl.DataFrame(
        {
            "file_path": list(places),
            "checked_layout": list(places.values()),
            "checked_size": [facts[path].size for path in places],
        },
        schema={"file_path": pl.String, "checked_layout": pl.Int64, "checked_size": pl.Int64},
    )
    by_format = pl.when(pl.col("file_format") == "parquet").then(_UNKNOWN).otherwise(_BY_ARROW)
    unchecked = pl.when(trusted).then(_TRUSTED).otherwise(by_format)
    # Of many files few are looked at: their places alone are sought, and the rest stays as it is.
    here = files.select(pl.int_range(pl.len(), dtype=pl.UInt32).alias("at"), "file_path")
    at = here.join(known, on="file_path", how="inner")
    layouts = files.select(unchecked.cast(pl.Int64).alias("layout")).to_series()
    sizes = files["file_size_in_bytes"]
    if len(at):
        layouts = layouts.scatter(at["at"], at["checked_layout"])
        sizes = sizes.scatter(at["at"], at["checked_size"])
    return files.with_columns(held_once(layouts), sizes)


def _file_names(
    metadata: TableMetadata, facts: Mapping[str, FileFacts], all_checked: bool
) -> Mapping[str, frozenset[int]] | None:
    names: dict[str, frozenset[int]] = {}
    if not all_checked:
        schemas = known_schemas(metadata)
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
    schemas = () if all_checked or not nested else known_schemas(metadata)
    if schemas is None:
        return frozenset()
    seen = {known.columns for known in facts.values()}.union(map(columns_of_schema, schemas))
    return frozenset(
        field.field_id for field in nested if all(named_alike([field], each) for each in seen)
    )
