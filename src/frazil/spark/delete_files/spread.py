"""Delete files written by executors: each task has the deletes of some data files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from frazil.format.types import StructType
from frazil.spark.abilities import repartition_by_id
from frazil.spark.delete_files.earlier import DeleteTargets, EarlierDeletes
from frazil.spark.delete_files.encode import Encoder, FileDeletes, NewEntry
from frazil.spark.deletes.bitmap import KEY, WORDS, Longs, Words, by_file
from frazil.spark.deletes.collect import Collected
from frazil.spark.files.staging import StagedFolder
from frazil.spark.files.wire import entry_from_text, entry_to_text
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.session.tasks import map_batches
from frazil.spark.write.arrow import name_in_task
from frazil.storage.file_kinds import FileKind

_LOW: Final = (1 << 32) - 1
_TASK, _RANK, _ORDINAL = "_frazil_task", "_frazil_rank", "_frazil_ordinal"
_FILE, _PLACES = "_frazil_file", "_frazil_places"
_UNPARTITIONED: Final = StructType(())
_RESULT: Final = pa.schema(
    {"entry": pa.string(), "ordinals": pa.list_(pa.int64()), "deleted_rows": pa.int64()}
)


def written_by_executors(
    spark: SparkSession,
    found: Collected,
    targets: DeleteTargets,
    *,
    encoder: Encoder,
    kind: FileKind,
    staging: StagedFolder,
    operation_id: str,
) -> tuple[NewEntry, ...]:
    """Return the new entries, of files in the folder, without spec and partition.

    Files of tasks that were tried again are left in the folder too.

    Raises:
        PySparkException: a task failed for good.
    """
    tasks, count = _tasks(spark, found, targets)
    if found.words is not None:
        rows, read = _pack(spark, found.words, targets, tasks), _packed_files
    else:
        assert found.rows is not None
        rows, read = _join(spark, found.rows, targets, tasks), _joined_files
    task = partial(_encode, read, staging, encoder, kind, operation_id)
    placed = repartition_by_id(rows, count, _TASK).sortWithinPartitions(KEY)
    told = map_batches(placed.drop(_TASK), task, _RESULT).toArrow()
    entries = [
        NewEntry(
            entry=entry_from_text(row["entry"], _UNPARTITIONED),
            ordinals=tuple(row["ordinals"]),
            deleted_rows=row["deleted_rows"],
        )
        for row in told.to_pylist()
    ]
    return tuple(sorted(entries, key=lambda each: each.entry.file_path))


def _tasks(spark: SparkSession, found: Collected, targets: DeleteTargets) -> tuple[Longs, int]:
    """The task of each data file, in their order, and how many tasks there are."""
    earlier = targets.earlier.group_by("ordinal").agg(pl.col("record_count").sum().alias("rows"))
    weights = (
        targets.files.select("ordinal")
        .join(found.counts, on="ordinal", how="left", maintain_order="left")
        .join(earlier, on="ordinal", how="left", maintain_order="left")
        .select(
            pl.col("words").fill_null(0)
            + costs.WORDS_OF_A_FILE
            + pl.col("rows").fill_null(0) // costs.EARLIER_ROWS_OF_A_WORD
        )
        .to_series()
        .to_numpy()
    )
    most = shuffle_partitions(spark)
    ends = np.cumsum(weights)
    total = int(ends[-1])
    count = max(1, min(most, len(weights), -(-total // costs.WORDS_A_TASK)))
    return (ends - weights // 2) * count // (total + 1), count


def _pack(spark: SparkSession, words: Words, targets: DeleteTargets, tasks: Longs) -> DataFrame:
    """A row a file, in their order, with its words as bytes: quicker to send than a row a word."""
    sets = by_file(words, targets.files["ordinal"]).values()
    table = pa.table(
        {
            _TASK: pa.array(tasks, pa.int32()),
            KEY: np.arange(len(tasks), dtype=np.int64),
            _FILE: pa.array(targets.texts(), pa.string()),
            _PLACES: pa.array([each.places.tobytes() for each in sets], pa.binary()),
            WORDS: pa.array([each.bits.tobytes() for each in sets], pa.binary()),
        }
    )
    return spark.createDataFrame(table)


def _packed_files(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[dict[str, Any], Words]]:
    """The files of `_pack` rows, each with its words."""
    for batch in batches:
        columns = (batch.column(name) for name in (_FILE, _PLACES, WORDS))
        for text, places, bits in zip(*columns, strict=True):
            words = Words(
                np.frombuffer(places.as_buffer(), dtype=np.int64),
                np.frombuffer(bits.as_buffer(), dtype=np.uint64),
            )
            yield json.loads(text.as_py()), words


def _join(spark: SparkSession, kept: DataFrame, targets: DeleteTargets, tasks: Longs) -> DataFrame:
    """A row a word, keyed by the rank of its file, and before the words of each file its row."""
    ranks = np.arange(len(tasks), dtype=np.int64)
    task_column = pa.array(tasks, pa.int32())
    heads = pa.table(
        {
            _TASK: task_column,
            # Right before the file's first word.
            KEY: (ranks << 32) - 1,
            WORDS: pa.nulls(len(tasks), pa.int64()),
            _FILE: pa.array(targets.texts(), pa.string()),
        }
    )
    places = pa.table(
        {_ORDINAL: targets.files["ordinal"].to_numpy(), _TASK: task_column, _RANK: ranks}
    )
    of_file = F.broadcast(spark.createDataFrame(places))
    words = kept.join(of_file, F.expr(f"shiftright({KEY}, 32) = {_ORDINAL}")).selectExpr(
        _TASK,
        f"shiftleft({_RANK}, 32) | ({KEY} & {_LOW}L) as {KEY}",
        WORDS,
        f"cast(null as string) as {_FILE}",
    )
    return spark.createDataFrame(heads).unionByName(words)


def _joined_files(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[dict[str, Any], Words]]:
    """The files of `_join` rows, each with its words."""
    file: dict[str, Any] | None = None
    parts: list[Words] = []
    for batch in batches:
        places = batch.column(KEY).to_numpy() & _LOW
        bits = batch.column(WORDS).fill_null(0).to_numpy().view(np.uint64)
        texts = batch.column(_FILE)
        heads = np.flatnonzero(texts.is_valid().to_numpy(zero_copy_only=False))
        start = 0
        for head in (*heads.tolist(), len(places)):
            parts.append(Words(places[start:head].copy(), bits[start:head].copy()))
            if head < len(places):
                if file is not None:
                    yield file, _concatenate(parts)
                file, parts = json.loads(texts[head].as_py()), []
            start = head + 1
    if file is not None:
        yield file, _concatenate(parts)


def _concatenate(parts: list[Words]) -> Words:
    # They are sorted, and no word comes twice.
    return Words(
        np.concatenate([each.places for each in parts] or [np.empty(0, np.int64)]),
        np.concatenate([each.bits for each in parts] or [np.empty(0, np.uint64)]),
    )


def _encode(
    read: Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[dict[str, Any], Words]]],
    staging: StagedFolder,
    encoder: Encoder,
    kind: FileKind,
    operation_id: str,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the deletes of a partition, in a Python worker."""
    earlier = EarlierDeletes(staging.io)
    deletes = (
        FileDeletes(
            ordinal=file["ordinal"],
            path=file["path"],
            group=file["group"],
            found=words,
            earlier=earlier.words(file),
        )
        for file, words in read(batches)
    )

    def path(count: int, ordinal: int) -> str:
        return f"{staging.path}/{name_in_task(kind, operation_id, count)}"

    for encoded in encoder.files(deletes, path):
        staging.io.create_unique(encoded.path, encoded.data)
        yield pa.RecordBatch.from_pylist(
            [
                {
                    "entry": entry_to_text(each.entry, _UNPARTITIONED),
                    "ordinals": list(each.ordinals),
                    "deleted_rows": each.deleted_rows,
                }
                for each in encoded.entries
            ],
            schema=_RESULT,
        )
