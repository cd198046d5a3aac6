"""Position deletes and deletion vectors as bitmap rows (SPEC rules 176, 177, 217-228)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.planning.deletes.index import POSITION_DELETES, DeleteIndex
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.bitmap import (
    KEY,
    ROW_BYTES,
    WORD_ROWS,
    WORDS,
    Longs,
    Words,
    by_file,
    words_by_file,
    words_of_files,
)
from frazil.spark.deletes.collect import most_words, words_of
from frazil.spark.deletes.deletion_cache import DeletedWords, Known, WordsOfFiles, data_files
from frazil.spark.deletes.joins import Bitmaps, JoinedBitmaps, join_of
from frazil.spark.deletes.position_files import (
    DeletedRows,
    comparable_paths,
    deleted_rows,
    vector_positions,
)
from frazil.spark.deletes.ways import ChosenWay, Way, cheapest
from frazil.spark.files.parquet.native import ScanContext
from frazil.spark.session import costs
from frazil.spark.session.facts import shuffle_partitions
from frazil.spark.session.tasks import map_batches
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key
from frazil.storage.side_by_side import in_threads

_BYTES_PER_FILE: Final = 8_192

_PATH: Final = "data_path"
_SEQUENCE: Final = "delete_sequence_number"
_SCOPE: Final = "delete_scope"


@dataclass(frozen=True, slots=True)
class PositionDeletes:
    """The position deletes and vectors of some data files.

    A vector's file is known from the plan. A position delete names its files by path; it applies
    where the path, the partition and the sequence number fit and the file has no vector.

    Attributes:
        plan: what the files are of.
        index: which of them apply to which of the files.
        tasks: the deletes to read, each once; vectors with their data file's ordinal.
        targets: the data files of deletes by path: ``ordinal``, path, sequence number, scope.
        most_deleted: how many positions they delete at most.
        files: the data files: `ordinal` and `record_count`.
    """

    context: ScanContext
    plan: ScanPlan
    index: DeleteIndex
    tasks: pl.DataFrame
    targets: pl.DataFrame
    most_deleted: int
    files: pl.DataFrame

    @classmethod
    def of(cls, context: ScanContext, plan: ScanPlan, ordinals: pl.Series) -> PositionDeletes:
        """Those of the data files with these ordinals."""
        deletes = plan.deletes.filter(pl.col("content") == POSITION_DELETES)
        index = plan.delete_index.for_deletes(deletes["delete"]).for_files(ordinals)
        is_vector = deletes["file_format"] == "puffin"
        vectors = index.for_deletes(deletes.filter(is_vector)["delete"]).expanded_pairs()
        by_path = index.for_deletes(deletes.filter(~is_vector)["delete"])
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
            most_deleted=int(vectors["record_count"].sum()) + int(used["record_count"].sum()),
            files=files.select("ordinal", "record_count"),
        )

    @property
    def are_few(self) -> bool:
        """Whether what they delete is kept beside the session."""
        return self.choice().way.apply == self.words

    def reading_here(self) -> Callable[[], dict[int, Words]] | None:
        """Return what reads them by threads of this process; None where nothing is left to read.

        It is also None where executors read.
        """
        if not self.are_few:
            return None
        files = self._known_words()
        way = self._reading_way(self._tasks_of(files.pending)).way
        if not len(files.pending) or way.apply != self._read_here:
            return None
        return partial(self._complete, files)

    def choice(self) -> ChosenWay[Callable[[], dict[int, Words] | Bitmaps]]:
        """Return which way they are applied: as positions by file, or as rows that are joined."""
        kept = Way(
            "applied as positions that are kept",
            self.words,
            {
                "data files": costs.DATA_FILES_HERE,
                "bytes": costs.BITMAP_BYTES_HERE,
                "pairs": costs.PAIRS_HERE,
            },
        )
        # A bit a row, or a word a deleted position.
        bits = int(self.files["record_count"].sum()) // 8 + _BYTES_PER_FILE * len(self.files)
        load = {
            "data files": len(self.files),
            "bytes": min(bits, self.most_deleted * ROW_BYTES),
            "pairs": self.index.pair_count,
        }
        return cheapest((kept, Way("made into rows by executors", self.bitmaps)), load)

    def choices(self) -> list[ChosenWay[Any]]:
        """Return what is chosen one after the other, without a look at the deletes."""
        if not self.are_few:
            return [self.choice(), self._join]
        lacking = self._known_words().pending
        return [self.choice(), self._reading_way(self._tasks_of(lacking))]

    def words(self) -> dict[int, Words]:
        """The deleted positions by the data file's ordinal; what is not kept yet is read here.

        Raises:
            MissingFileError, InvalidDataFileError: a delete file cannot be read.
            UnsupportedError: a position that bitmaps have no room for.
        """
        return self._complete(self._known_words())

    def bitmaps(self) -> Bitmaps:
        """The bitmaps, from deletes that executors read."""
        rows = _read_on_executors(self.context, self.tasks, self.targets)
        # Spark joins fastest where it knows the keys to be unique.
        words = rows.groupBy(KEY).agg(F.expr(f"bit_or({WORDS})").alias(WORDS))
        return JoinedBitmaps(self._join.way.apply(words))

    @property
    def _join(self) -> ChosenWay[Callable[[DataFrame], DataFrame]]:
        return join_of(
            {"bytes": min(most_words(self.files["record_count"]), self.most_deleted) * ROW_BYTES}
        )

    def _complete(self, files: WordsOfFiles) -> dict[int, Words]:
        if len(files.pending):
            chosen = self._tasks_of(files.pending)
            files.add(self._reading_way(chosen).way.apply(chosen, files.pending))
        return files.words

    def _known_words(self) -> WordsOfFiles:
        names = self.plan.deletes.select("delete", _delete_name())
        pairs = self.index.expanded_pairs().join(names, on="delete", maintain_order="left")
        io = self.context.io
        read_by = _read_by(self.context.metadata, io)
        return WordsOfFiles(DeletedWords.of(io), self.plan, pairs, *read_by)

    def _tasks_of(self, lacking: pl.DataFrame) -> pl.DataFrame:
        return self.tasks.join(lacking, on="delete", how="semi")

    def _reading_way(
        self, chosen: pl.DataFrame
    ) -> ChosenWay[Callable[[pl.DataFrame, pl.DataFrame], dict[int, Words]]]:
        here = Way(
            "read beside the session",
            self._read_here,
            {"delete files": costs.POSITION_FILES_HERE, "positions": costs.POSITIONS_HERE},
        )
        load = {"delete files": len(chosen), "positions": int(chosen["record_count"].sum())}
        return cheapest((here, Way("read by executors", self._read_there)), load)

    def _read_here(self, chosen: pl.DataFrame, lacking: pl.DataFrame) -> dict[int, Words]:
        """What the chosen deletes delete in each of the files that lack them."""
        files = {
            delete: pairs.select(_PATH, "ordinal")
            for (delete,), pairs in lacking.join(self.targets, on="ordinal").group_by("delete")
        }

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

        found = in_threads(read, chosen.to_dicts(), name="frazil-positions")
        parts: dict[int, list[Words]] = {ordinal: [] for ordinal in lacking["ordinal"].unique()}
        for ordinal, words in (part for each in found for part in each):
            parts[ordinal].append(words)
        return {ordinal: Words.union(words) for ordinal, words in parts.items()}

    def _read_there(self, chosen: pl.DataFrame, lacking: pl.DataFrame) -> dict[int, Words]:
        """The same, read by executors."""
        ordinals = lacking["ordinal"].unique()
        targets = self.targets.filter(pl.col("ordinal").is_in(ordinals.implode()))
        return by_file(words_of(_read_on_executors(self.context, chosen, targets)), ordinals)


def keep_written(
    files: Iterable[tuple[DataFile, Sequence[int]]],
    words: Mapping[int, Words],
    *,
    plan: ScanPlan,
    metadata: TableMetadata,
    io: FileIO,
) -> None:
    """Keep what new position deletes delete of a plan's files: the next read asks for it.

    Args:
        files: the delete files, each with the ordinals of data files that it is about.
        words: all that they delete of each of these.
    """
    names: dict[int, set[Hashable]] = {}
    for file, ordinals in files:
        place = "" if file.content_offset is None else file.content_offset
        for ordinal in ordinals:
            name = f"{file.file_path} {place} {file.record_count}"
            names.setdefault(ordinal, set()).add(name)
    ordinals_of: dict[Hashable, list[int]] = {}
    for ordinal, owner in data_files(plan, names, *_read_by(metadata, io)).items():
        ordinals_of.setdefault(owner, []).append(ordinal)
    for owner, same in ordinals_of.items():
        # A table may hold one file twice: what deletes name the one deletes in the other too.
        deletes = frozenset(name for ordinal in same for name in names[ordinal])
        both = Words.union([words[ordinal] for ordinal in same])
        DeletedWords.of(io).keep(owner, Known(deletes, both))


def _read_by(metadata: TableMetadata, io: FileIO) -> tuple[Hashable, ...]:
    return ("positions", store_key(io), metadata.table_uuid)


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
    context: ScanContext, tasks: pl.DataFrame, targets: pl.DataFrame
) -> DataFrame:
    spark, io = context.spark, context.io
    parts: list[DataFrame] = []
    vectors = tasks.filter(pl.col("format") == "puffin")
    if len(vectors):
        spread = _spread_tasks(spark, vectors)
        parts.append(map_batches(spread, partial(_vector_rows, io), WORD_ROWS))
    others = tasks.filter(pl.col("format") != "puffin")
    if len(others):
        by_path = S.StructType(
            [
                S.StructField(_PATH, S.StringType(), False),
                S.StructField(_SEQUENCE, S.LongType(), False),
                S.StructField(_SCOPE, S.LongType(), False),
                *WORD_ROWS.fields,
            ]
        )
        found = map_batches(_spread_tasks(spark, others), partial(_position_rows, io), by_path)
        files = spark.createDataFrame(targets.rechunk().to_arrow())
        applies = (
            (found[_PATH] == files[_PATH])
            & (files["sequence_number"] <= found[_SEQUENCE])
            & (files["scope"] == found[_SCOPE])
        )
        key = F.shiftleft(files["ordinal"], 32).bitwiseOR(found[KEY]).alias(KEY)
        parts.append(found.join(files, applies).select(key, found[WORDS]))
    return reduce(DataFrame.unionByName, parts)


def _spread_tasks(spark: SparkSession, tasks: pl.DataFrame) -> DataFrame:
    rows = spark.createDataFrame(tasks.rechunk().to_arrow())
    return rows.repartition(min(len(tasks), shuffle_partitions(spark)))


def _vector_rows(io: FileIO, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Deletion vectors to bitmap rows, in a Python worker."""
    for batch in tasks:
        for task in batch.to_pylist():
            positions = vector_positions(io, task)
            yield words_of_files(task["ordinal"], positions).rows()


def _position_rows(io: FileIO, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Position delete files to bitmap rows a data file's path, in a Python worker."""
    for batch in tasks:
        for task in batch.to_pylist():
            for found in deleted_rows(io, task["path"], task["format"]):
                yield _rows_of_paths(task, found)


def _rows_of_paths(task: dict[str, object], found: DeletedRows) -> pa.RecordBatch:
    words = words_of_files(found.codes, found.positions)
    keys = words.places
    low = np.int64((1 << 32) - 1)
    return pa.RecordBatch.from_arrays(
        [
            found.paths.gather(keys >> 32).to_arrow().cast(pa.string()),
            pa.repeat(pa.scalar(task["sequence_number"], pa.int64()), len(keys)),
            pa.repeat(pa.scalar(task["scope"], pa.int64()), len(keys)),
            pa.array(keys & low),
            words.rows().column(WORDS),
        ],
        names=[_PATH, _SEQUENCE, _SCOPE, *WORD_ROWS.names],
    )
