"""Position deletes and deletion vectors as bitmap rows (SPEC rules 176, 177, 217-228)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.deletion_vectors import deletion_vector_from_bytes
from frazil.format.name_mapping import mapping_for
from frazil.format.schema import Schema
from frazil.spark.read.arrow_files import FilePart, TableColumns, read_batches
from frazil.spark.read.inputs import POSITION_DELETES, ReadInput
from frazil.spark.read.native import ScanContext
from frazil.spark.read.positions import KEY, BitmapSize, Grain, Longs, bitmap_rows
from frazil.storage.files import FileIO
from frazil.storage.moved import MovedFileIO

BROADCAST_BYTES: Final = 32 * 1024 * 1024
"""Bitmaps up to this size are sent to every executor; larger ones are shuffled with the rows."""

ON_DRIVER_POSITIONS: Final = 2_000_000
ON_DRIVER_FILES: Final = 64
"""Up to so many deletes are read beside the session: a Spark job would cost more."""

_FIELDS: Final = (
    I.NestedField(2147483546, "file_path", I.StringType(), required=True),
    I.NestedField(2147483545, "pos", I.LongType(), required=True),
)
_COLUMNS: Final = TableColumns(fields=_FIELDS, mapping=mapping_for(Schema(_FIELDS)))
_PATH: Final = "data_path"
_SEQUENCE: Final = "delete_sequence_number"
_SCOPE: Final = "delete_scope"


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """The deleted positions of some data files; ``rows`` carry a broadcast or merge hint."""

    rows: DataFrame
    grain: Grain


def position_bitmaps(context: ScanContext, plan: ReadInput, ordinals: pl.Series) -> Bitmaps:
    """The bitmaps of these data files, each of which has at least one position delete or vector.

    A vector's file is known from the plan. A position delete names its files by path; it applies
    where the path, the partition and the sequence number fit and the file has no vector.
    """
    deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES)
    pairs = plan.pairs.filter(pl.col("ordinal").is_in(ordinals.implode())).join(
        deletes, on="delete"
    )
    vectors = pairs.filter(pl.col("format") == "puffin")
    by_path = pairs.filter(pl.col("format") != "puffin")
    used = by_path.unique("delete", maintain_order=True)
    files = plan.files.filter(pl.col("ordinal").is_in(ordinals.implode()))
    size = BitmapSize(
        positions=int(vectors["record_count"].sum()) + int(used["record_count"].sum()),
        rows=int(files["record_count"].sum()),
        files=len(files),
    )
    grain = size.grain
    tasks = _tasks(vectors, used)
    targets = files.join(by_path.select("ordinal").unique(), on="ordinal", how="semi").select(
        "ordinal", pl.col("path").alias(_PATH), "sequence_number", "scope"
    )
    targets = targets.with_columns(_comparable(targets[_PATH], context.io))
    here = len(tasks) <= ON_DRIVER_FILES and size.positions <= ON_DRIVER_POSITIONS
    if here and size.bytes <= BROADCAST_BYTES:
        rows = _read_here(context, tasks, targets, by_path, grain)
    else:
        rows = _read_on_executors(context, tasks, targets, grain)
    hinted = F.broadcast(rows) if size.bytes <= BROADCAST_BYTES else rows.hint("merge")
    return Bitmaps(hinted, grain)


def _tasks(vectors: pl.DataFrame, by_path: pl.DataFrame) -> pl.DataFrame:
    columns = ["delete", "path", "format", "record_count", "content_offset", "content_size"]
    scope = ["sequence_number", "scope"]
    none = pl.lit(None, pl.Int64)
    return pl.concat(
        [
            vectors.select(*columns, *scope, "ordinal"),
            by_path.select(*columns, *scope, none.alias("ordinal")),
        ]
    )


def _read_here(
    context: ScanContext,
    tasks: pl.DataFrame,
    targets: pl.DataFrame,
    pairs: pl.DataFrame,
    grain: Grain,
) -> DataFrame:
    batches: list[pa.RecordBatch] = []
    named = pairs.select("delete", "ordinal").join(targets, on="ordinal")
    for task in tasks.iter_rows(named=True):
        if task["format"] == "puffin":
            positions = _vector_positions(context.io, task)
            batches.append(bitmap_rows(task["ordinal"], positions, grain))
            continue
        wanted = named.filter(pl.col("delete") == task["delete"]).select(_PATH, "ordinal")
        for paths, positions in _deleted_rows(context.io, task["path"], task["format"]):
            found = pl.DataFrame({_PATH: paths, "pos": positions}).join(wanted, on=_PATH)
            batches.append(bitmap_rows(found["ordinal"].to_numpy(), found["pos"].to_numpy(), grain))
    # Spark drops whatever comes after an empty batch.
    table = pa.Table.from_batches(batches, schema=grain.arrow_schema).combine_chunks()
    return context.spark.createDataFrame(table, grain.spark_schema)


def _read_on_executors(
    context: ScanContext, tasks: pl.DataFrame, targets: pl.DataFrame, grain: Grain
) -> DataFrame:
    spark, io = context.spark, context.io
    parts: list[DataFrame] = []
    vectors = tasks.filter(pl.col("format") == "puffin")
    if len(vectors):
        spread = spark.createDataFrame(vectors.rechunk().to_arrow()).repartition(
            _partitions(context, len(vectors))
        )
        parts.append(spread.mapInArrow(_VectorReader(io, grain), grain.spark_schema))
    others = tasks.filter(pl.col("format") != "puffin")
    if len(others):
        by_path = S.StructType(
            [
                S.StructField(_PATH, S.StringType(), False),
                S.StructField(_SEQUENCE, S.LongType(), False),
                S.StructField(_SCOPE, S.LongType(), False),
                *grain.spark_schema.fields,
            ]
        )
        spread = spark.createDataFrame(others.rechunk().to_arrow()).repartition(
            _partitions(context, len(others))
        )
        found = spread.mapInArrow(_PositionReader(io, grain), by_path)
        files = spark.createDataFrame(targets.rechunk().to_arrow())
        applies = (
            (found[_PATH] == files[_PATH])
            & (files["sequence_number"] <= found[_SEQUENCE])
            & (files["scope"] == found[_SCOPE])
        )
        key = F.shiftleft(files["ordinal"], 32).bitwiseOR(found[KEY]).alias(KEY)
        words = [found[name] for name in grain.spark_schema.names[1:]]
        parts.append(found.join(files, applies).select(key, *words))
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows


def _partitions(context: ScanContext, files: int) -> int:
    shuffle = int(context.spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)
    return max(1, min(files, shuffle))


@dataclass(frozen=True, slots=True)
class _VectorReader:
    """Deletion vectors to bitmap rows, in a Python worker."""

    io: FileIO
    grain: Grain

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                positions = _vector_positions(self.io, task)
                yield bitmap_rows(task["ordinal"], positions, self.grain)


@dataclass(frozen=True, slots=True)
class _PositionReader:
    """Position delete files to bitmap rows a data file's path, in a Python worker."""

    io: FileIO
    grain: Grain

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                for paths, positions in _deleted_rows(self.io, task["path"], task["format"]):
                    yield self._rows(task, paths, positions)

    def _rows(self, task: dict[str, object], paths: pl.Series, positions: Longs) -> pa.RecordBatch:
        names = paths.unique()
        places = paths.replace_strict(names, range(len(names)), return_dtype=pl.Int64)
        rows = bitmap_rows(places.to_numpy(), positions, self.grain)
        keys = rows.column(KEY).to_numpy()
        low = np.int64((1 << 32) - 1)
        return pa.RecordBatch.from_arrays(
            [
                names.gather(keys >> 32).to_arrow().cast(pa.string()),
                pa.repeat(pa.scalar(task["sequence_number"], pa.int64()), len(rows)),
                pa.repeat(pa.scalar(task["scope"], pa.int64()), len(rows)),
                pa.array(keys & low),
                rows.column(1),
            ],
            names=[_PATH, _SEQUENCE, _SCOPE, *self.grain.spark_schema.names],
        )


def _vector_positions(io: FileIO, task: Mapping[str, Any]) -> Longs:
    path, cardinality = task["path"], task["record_count"]
    blob = io.read_range(path, offset=task["content_offset"], length=task["content_size"])
    bitmap = deletion_vector_from_bytes(blob, file=path, cardinality=cardinality)
    return np.asarray(bitmap.to_array(), dtype=np.int64)


def _deleted_rows(io: FileIO, path: str, file_format: str) -> Iterator[tuple[pl.Series, Longs]]:
    """The (path of the data file, position) rows of a position delete file; without NULL paths.

    Paths are as `_comparable` gives them.
    """
    part = FilePart(path=path, file_format=file_format)
    for _, _, (paths, positions) in read_batches(io, part, _FIELDS, _COLUMNS):
        rows = pl.DataFrame({"path": pl.from_arrow(paths), "pos": pl.from_arrow(positions)})
        named = rows.drop_nulls()
        yield _comparable(named["path"], io), named["pos"].to_numpy()


def _comparable(paths: pl.Series, io: FileIO) -> pl.Series:
    """Paths of data files such that equal files have equal paths.

    They are equal as text (rule 226), but in a moved table one file may have two old names.
    """
    if not isinstance(io, MovedFileIO):
        return paths
    names = paths.unique()
    places = pl.Series([io.physical(name) for name in names], dtype=pl.String)
    return paths.replace_strict(names, places)
