"""Files and entries of manifests as rows, decoded by executors.

What is made of an entry's maps takes most of the time. It is the result of a function of its own,
which Spark leaves out where no such column is asked for: a count, a list of paths. A Spark without
such functions makes all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.files.arrow.files import arrow_type
from frazil.spark.metadata_frames.shape import record_batch, spark_schema
from frazil.spark.session.tasks import arrow_function, map_items
from frazil.spark.types import SparkTypeSupport, named_column
from frazil.storage.files import FileIO
from frazil.table.inspect.files import ROW, EntryTables
from frazil.table.inspect.schemas import MAPPED, without_maps

BATCH_ROWS: Final = 4_096

EntryTable = Literal["files", "entries", "holdings"]

_PLACE: Final = "_frazil_place"
_MAPS: Final = "_frazil_maps"
_PLACE_TYPE: Final = I.StructType(
    (
        I.NestedField(1, "manifest_path", I.StringType(), required=True),
        I.NestedField(2, "manifest_length", I.LongType(), required=True),
        I.NestedField(3, "partition_spec_id", I.IntegerType(), required=True),
        I.NestedField(4, "content", I.IntegerType(), required=True),
        I.NestedField(5, "sequence_number", I.LongType()),
        I.NestedField(6, "added_snapshot_id", I.LongType()),
        I.NestedField(7, "first_row_id", I.LongType()),
        I.NestedField(8, ROW, I.LongType(), required=True),
    )
)
TASK_ARROW: Final = pa.schema([(f.name, arrow_type(f.field_type)) for f in _PLACE_TYPE.fields[:-1]])
"""What a task is told of a manifest."""


def entry_rows(
    tasks: DataFrame,
    io: FileIO,
    tables: EntryTables,
    table: EntryTable,
    columns: I.StructType,
    support: SparkTypeSupport,
) -> DataFrame:
    """Return the rows of a table of entries.

    Args:
        tasks: a row a manifest.
    """
    if table == "holdings" or not HAS_ARROW_FUNCTIONS:
        read = partial(_whole_rows, io, tables, table, columns, support)
        return map_items(tasks, read, spark_schema(columns, support))
    place = I.NestedField(0, _PLACE, _PLACE_TYPE, required=True)
    plain = I.StructType((*without_maps(columns).fields, place))
    read = partial(_entries, io, tables, table, plain, support)
    rows = map_items(tasks, read, spark_schema(plain, support))
    maps = I.StructType(tables.maps_columns)
    read_maps = arrow_function(
        _MapsReader(io, tables, maps, support), without_comments(spark_schema(maps, support))
    )
    found = rows.withColumn(_MAPS, read_maps(F.col(_PLACE)))
    return found.select(*(_column(field, support) for field in columns.fields))


def without_comments(kind: S.StructType) -> S.StructType:
    """The type as Arrow tells it, which Spark compares with what is said of a function."""
    return S.StructType(
        [
            S.StructField(
                field.name,
                without_comments(field.dataType)
                if isinstance(field.dataType, S.StructType)
                else field.dataType,
                field.nullable,
            )
            for field in kind.fields
        ]
    )


def _column(field: I.NestedField, support: SparkTypeSupport, inside: str = "") -> Column:
    if field.name in MAPPED:
        # With the comments of the fields within it.
        shown = spark_schema(I.StructType((field,)), support).fields[0].dataType
        column = F.col(f"{_MAPS}.{field.name}").cast(shown)
    elif field.name == "data_file" and isinstance(field.field_type, I.StructType):
        parts = field.field_type.fields
        column = F.struct(*(_column(part, support, "data_file.") for part in parts))
    else:
        column = F.col(f"{inside}{field.name}")
    return named_column(column, field)


def batches_of(
    frame: pl.DataFrame, columns: I.StructType, support: SparkTypeSupport
) -> Iterator[pa.RecordBatch]:
    """The frame in pieces of a size that fits an executor's memory."""
    for piece in frame.iter_slices(BATCH_ROWS):
        yield record_batch(piece, columns, support)


def _whole_rows(
    io: FileIO,
    tables: EntryTables,
    table: EntryTable,
    columns: I.StructType,
    support: SparkTypeSupport,
    task: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """The rows of a manifest, with what is made of maps."""
    read = {"files": tables.files, "entries": tables.entries, "holdings": tables.holdings}[table]
    return batches_of(read(io, manifest_of_task(task)), columns, support)


def _entries(
    io: FileIO,
    tables: EntryTables,
    table: EntryTable,
    columns: I.StructType,
    support: SparkTypeSupport,
    task: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    """The files or entries of a manifest, without what is made of maps."""
    read = tables.plain_files if table == "files" else tables.plain_entries
    parts = [pl.lit(task[name]).alias(name) for name in TASK_ARROW.names]
    place = pl.struct(*parts, ROW).alias(_PLACE)
    found = read(io, manifest_of_task(task)).with_columns(place)
    return batches_of(found, columns, support)


@dataclass(frozen=True, slots=True, eq=False)
class _MapsReader:
    """Places of entries to what is made of their maps, in a Python worker."""

    io: FileIO
    tables: EntryTables
    columns: I.StructType
    support: SparkTypeSupport

    def __call__(self, places: pa.Array) -> pa.Array:
        asked = pl.DataFrame(pl.from_arrow(places)).unnest(pl.selectors.all())
        asked = asked.with_row_index("nth")
        found = [self.tables.no_maps().with_columns(pl.lit(0, pl.UInt32).alias("nth"))]
        for _, members in asked.group_by("manifest_path", maintain_order=True):
            maps = _maps_of(self, manifest_of_task(members.row(0, named=True)))
            found.append(maps[members[ROW].to_list()].with_columns(members["nth"]))
        ordered = pl.concat(found).sort("nth").drop("nth")
        batch = record_batch(ordered, self.columns, self.support)
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


@lru_cache(maxsize=1)
def _maps_of(reader: _MapsReader, manifest: ManifestFile) -> pl.DataFrame:
    """The maps of a manifest's entries, of which the batches of a task are parts."""
    return reader.tables.maps(reader.io, manifest)


def stated_manifest(manifest: ManifestFile) -> dict[str, object]:
    """Return what a task is told of a manifest; `manifest_of_task` takes it back."""
    return {
        name: int(manifest.content) if name == "content" else getattr(manifest, name)
        for name in TASK_ARROW.names
    }


def manifest_of_task(task: dict[str, Any]) -> ManifestFile:
    """Return the manifest that a task names."""
    stated = {name: task[name] for name in TASK_ARROW.names}
    return ManifestFile(**{**stated, "content": ManifestContent(stated["content"])})
