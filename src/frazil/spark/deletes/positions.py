"""Position deletes and deletion vectors as bitmap rows (SPEC rules 176, 177, 217-228)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.planning.cache import store_key
from frazil.planning.deletes.index import POSITION_DELETES, DeleteIndex
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import Words, words_by_file, words_of_rows
from frazil.spark.deletes.bitmap_rows import KEY, BitmapSize, Grain, Longs, bitmap_rows, merged_rows
from frazil.spark.deletes.deletion_cache import DeletedWords, WordsOfFiles
from frazil.spark.deletes.joins import BROADCAST_BYTES, Bitmaps, JoinedBitmaps
from frazil.spark.deletes.position_files import (
    DeletedRows,
    comparable_paths,
    deleted_rows,
    vector_positions,
)
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import in_threads

ON_DRIVER_POSITIONS: Final = 16_000_000
ON_DRIVER_FILES: Final = 512
"""Up to so many deletes are read beside the session: a Spark job would cost more. Of more of them
executors make the bitmaps, once."""

ON_DRIVER_BYTES: Final = 128 * 1024 * 1024
"""Up to so many bytes of bitmaps: those of a billion rows."""

ON_DRIVER_DATA_FILES: Final = 20_000
"""Of so many data files what is deleted is kept in this process."""

ON_DRIVER_PAIRS: Final = 4_000_000
"""And of so many pairs of a data file and a delete."""

_READERS: Final = 8

_PATH: Final = "data_path"
_SEQUENCE: Final = "delete_sequence_number"
_SCOPE: Final = "delete_scope"


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """The position deletes and vectors of some data files, each of which has at least one.

    A vector's file is known from the plan. A position delete names its files by path; it applies
    where the path, the partition and the sequence number fit and the file has no vector.

    Attributes:
        plan: what the files are of.
        index: which of them apply to which of the files.
        tasks: the deletes to read, each once; vectors with their data file's ordinal.
        targets: the data files of deletes by path: ``ordinal``, path, sequence number, scope.
        size: of their bitmaps, by the counts in the manifests.
    """

    context: ScanContext
    plan: ScanPlan
    index: DeleteIndex
    tasks: pl.DataFrame
    targets: pl.DataFrame
    size: BitmapSize

    @classmethod
    def of(cls, context: ScanContext, plan: ScanPlan, ordinals: pl.Series) -> PositionDeletes:
        """Those of the data files with these ordinals."""
        deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES)
        index = plan.delete_index.of(deletes["delete"]).on(ordinals)
        is_vector = deletes["file_format"] == "puffin"
        vectors = index.of(deletes.filter(is_vector)["delete"]).expanded()
        by_path = index.of(deletes.filter(~is_vector)["delete"])
        used = deletes.filter(pl.col("delete").is_in(by_path.deletes().implode()))
        files = plan.files.filter(pl.col("ordinal").is_in(ordinals.implode()))
        targets = files.filter(pl.col("ordinal").is_in(by_path.ordinals().implode())).select(
            "ordinal", pl.col("file_path").alias(_PATH), "sequence_number", "scope"
        )
        vectors = vectors.join(deletes, on="delete")
        return cls(
            context,
            plan,
            index,
            tasks=_tasks(vectors, used),
            targets=targets.with_columns(comparable_paths(targets[_PATH], context.io)),
            size=BitmapSize(
                positions=int(vectors["record_count"].sum()) + int(used["record_count"].sum()),
                rows=int(files["record_count"].sum()),
                files=len(files),
            ),
        )

    @property
    def are_few(self) -> bool:
        """Whether what they delete is kept beside the session."""
        return (
            self.size.files <= ON_DRIVER_DATA_FILES
            and self.size.bytes <= ON_DRIVER_BYTES
            and self.index.pair_count <= ON_DRIVER_PAIRS
        )

    def words(self) -> dict[int, Words]:
        """The deleted positions by the data file's ordinal; what is not kept yet is read here.

        Raises:
            MissingFileError, InvalidDataFileError: a delete file cannot be read.
            UnsupportedError: a position that bitmaps have no room for.
        """
        names = self.plan.deletes.select("delete", _delete_name())
        pairs = self.index.expanded().join(names, on="delete", maintain_order="left")
        io, uuid = self.context.io, self.context.metadata.table_uuid
        files = WordsOfFiles(
            DeletedWords.of(io), self.plan, pairs, "positions", store_key(io), uuid
        )
        if len(files.pending):
            files.add(self._read(files.pending))
        return files.words

    def bitmaps(self) -> Bitmaps:
        """The bitmaps, from deletes that executors read."""
        grain, context = self.size.grain, self.context
        rows = _read_on_executors(context, self.tasks, self.targets, grain)
        is_small = self.size.bytes <= BROADCAST_BYTES
        if is_small and len(self.targets):
            rows = _one_row_a_key(context, rows, grain)
        return JoinedBitmaps(F.broadcast(rows) if is_small else rows.hint("merge"), grain)

    def _read(self, lacking: pl.DataFrame) -> dict[int, Words]:
        """What the deletes of these pairs delete in each of their files."""
        files = {
            delete: pairs.select(_PATH, "ordinal")
            for (delete,), pairs in lacking.join(self.targets, on="ordinal").group_by("delete")
        }

        chosen = self.tasks.join(lacking, on="delete", how="semi")
        if len(chosen) > ON_DRIVER_FILES or chosen["record_count"].sum() > ON_DRIVER_POSITIONS:
            return self._read_there(chosen, lacking["ordinal"].unique())

        def read(task: dict[str, Any]) -> list[tuple[int, Words]]:
            # As words at once: positions take sixteen bytes each.
            if task["format"] == "puffin":
                positions = vector_positions(self.context.io, task)
                ordinals = np.full(len(positions), task["ordinal"], dtype=np.int64)
                return [*words_by_file(ordinals, positions).items()]
            chunks = deleted_rows(self.context.io, task["path"], task["format"])
            return [
                found
                for rows in chunks
                for part in _of_files(rows, files[task["delete"]])
                for found in words_by_file(*part).items()
            ]

        found = in_threads(read, chosen.to_dicts(), threads=_READERS, name="frazil-positions")
        parts: dict[int, list[Words]] = {ordinal: [] for ordinal in lacking["ordinal"].unique()}
        for ordinal, words in (part for each in found for part in each):
            parts[ordinal].append(words)
        return {ordinal: Words.union(words) for ordinal, words in parts.items()}

    def _read_there(self, tasks: pl.DataFrame, ordinals: pl.Series) -> dict[int, Words]:
        """What these deletes delete in these files, read by executors."""
        targets = self.targets.filter(pl.col("ordinal").is_in(ordinals.implode()))
        rows = _read_on_executors(self.context, tasks, targets, self.size.grain)
        return words_of_rows(rows.toArrow(), self.size.grain, ordinals)


def _delete_name() -> pl.Expr:
    """What tells a delete file, or one vector of a file, from every other."""
    place = pl.col("content_offset").cast(pl.String).fill_null("")
    text = pl.concat_str("file_path", pl.lit(" "), place, pl.lit(" "), "record_count")
    return text.alias("name")


def _tasks(vectors: pl.DataFrame, by_path: pl.DataFrame) -> pl.DataFrame:
    columns: list[str | pl.Expr] = [
        "delete",
        pl.col("file_path").alias("path"),
        pl.col("file_format").alias("format"),
        "record_count",
        "content_offset",
        pl.col("content_size_in_bytes").alias("content_size"),
    ]
    scope = ["sequence_number", "scope"]
    none = pl.lit(None, pl.Int64)
    return pl.concat(
        [
            vectors.select(*columns, *scope, "ordinal"),
            by_path.select(*columns, *scope, none.alias("ordinal")),
        ]
    )


def _of_files(rows: DeletedRows, files: pl.DataFrame) -> Iterator[tuple[Longs, Longs]]:
    """The (ordinal, position) rows of those deleted rows whose file is wanted."""
    codes = rows.paths.to_frame(_PATH).with_row_index("code")
    named = codes.join(files, on=_PATH).with_columns(pl.int_range(pl.len()).over("code").alias("n"))
    # One file may be read under several ordinals.
    for nth in named.partition_by("n"):
        ordinals = np.full(len(codes), -1, dtype=np.int64)
        ordinals[nth["code"].to_numpy()] = nth["ordinal"].to_numpy()
        found = ordinals[rows.codes]
        is_wanted = found >= 0
        yield found[is_wanted], rows.positions[is_wanted]


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
        parts.append(map_batches(spread, _VectorReader(io, grain), grain.spark_schema))
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
        found = map_batches(spread, _PositionReader(io, grain), by_path)
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


def _one_row_a_key(context: ScanContext, rows: DataFrame, grain: Grain) -> DataFrame:
    """The same bitmaps for a broadcast, whose join is cheapest where keys are unique."""
    spread = rows.repartition(_partitions(context, ON_DRIVER_FILES), KEY)
    return map_batches(spread, _Merger(grain), grain.spark_schema)


def _partitions(context: ScanContext, files: int) -> int:
    return max(1, min(files, shuffle_partitions(context.spark)))


@dataclass(frozen=True, slots=True)
class _VectorReader:
    """Deletion vectors to bitmap rows, in a Python worker."""

    io: FileIO
    grain: Grain

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                positions = vector_positions(self.io, task)
                yield bitmap_rows(task["ordinal"], positions, self.grain)


@dataclass(frozen=True, slots=True)
class _PositionReader:
    """Position delete files to bitmap rows a data file's path, in a Python worker."""

    io: FileIO
    grain: Grain

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            for task in batch.to_pylist():
                for found in deleted_rows(self.io, task["path"], task["format"]):
                    yield self._rows(task, found)

    def _rows(self, task: dict[str, object], found: DeletedRows) -> pa.RecordBatch:
        rows = bitmap_rows(found.codes, found.positions, self.grain)
        keys = rows.column(KEY).to_numpy()
        low = np.int64((1 << 32) - 1)
        return pa.RecordBatch.from_arrays(
            [
                found.paths.gather(keys >> 32).to_arrow().cast(pa.string()),
                pa.repeat(pa.scalar(task["sequence_number"], pa.int64()), len(rows)),
                pa.repeat(pa.scalar(task["scope"], pa.int64()), len(rows)),
                pa.array(keys & low),
                rows.column(1),
            ],
            names=[_PATH, _SEQUENCE, _SCOPE, *self.grain.spark_schema.names],
        )


@dataclass(frozen=True, slots=True)
class _Merger:
    """The bitmap rows of a partition, one a key, in a Python worker."""

    grain: Grain

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = [batch for batch in batches if len(batch)]
        if parts:
            yield merged_rows(pa.Table.from_batches(parts), self.grain)
