"""Deleted rows become position delete files (version 2) or deletion vectors (version 3).

Where they are few, the driver writes them; where they are many, executors do, and only the new
entries come back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.format.properties.table import DELETE_FORMAT, DELETE_GRANULARITY, WRITE_FORMAT
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.delete_files.earlier import CarriedDeletes, DeleteTargets
from frazil.spark.delete_files.encode import (
    EncodedFile,
    FileDeletes,
    NewEntry,
    PositionEncoder,
    VectorEncoder,
)
from frazil.spark.delete_files.spread import written_by_executors
from frazil.spark.deletes.bitmap import Words, by_file
from frazil.spark.deletes.collect import Collected, collect_places, most_words, word_counts
from frazil.spark.deletes.positions import keep_written
from frazil.spark.files.staging import StagedFolder
from frazil.spark.session import costs
from frazil.spark.session.facts import prepare_session
from frazil.spark.write.files import WriteProgress, tell_nobody
from frazil.storage.file_kinds import POSITION_DELETE_FILES, VECTOR_FILES, FileKind
from frazil.storage.files import FileIO
from frazil.storage.locations import new_data_folder
from frazil.storage.parquet.position_deletes import PositionDeleteOptions
from frazil.storage.paths import name_of
from frazil.storage.side_by_side import in_threads

Granularity = Literal["file", "partition"]


@dataclass(frozen=True, slots=True)
class WrittenDeletes:
    """What a write of deletes gives to a commit.

    Attributes:
        added: the new delete files or vectors; several vectors may be in one file.
        removed: deletes that the new ones replace: the earlier vectors, and position delete files
            about one data file.
        deleted_rows: rows that none of the deletes had deleted that the new ones take over.
        referenced_paths: the data files that the new deletes are about.
    """

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    deleted_rows: int = 0
    referenced_paths: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written, each once; they go if no commit takes place."""
        return tuple(dict.fromkeys(file.file_path for file in self.added))


def write_deletes(
    rows: DataFrame,
    *,
    plan: ScanPlan,
    metadata: TableMetadata,
    io: FileIO,
    granularity: Granularity | None = None,
    target_size: int | None = None,
    most_rows: int | None = None,
    tasks: int | None = None,
    on_progress: Callable[[WriteProgress], None] | None = None,
) -> WrittenDeletes:
    """Write deletes of rows of a plan's files; nothing is committed.

    In version 3 each data file gets one deletion vector, which holds what all position deletes and
    the vector that apply to it do. In version 2 a delete file of one data file holds what earlier
    ones of that file alone do; with the granularity ``partition`` nothing is taken over.

    Args:
        rows: two columns: the data file's ordinal in the plan, and the row's position in it. A
            place may come more than once. They are computed once, or twice where `tasks` are
            given.
        plan: with every position delete that applies to its files.
        granularity: of position delete files; unless given, `write.delete.granularity` says it.
        target_size: of delete files, in bytes; `write.delete.target-file-size-bytes` unless given.
        most_rows: how many rows there are at most; few are collected as they are. None where that
            is not known.
        tasks: how many compute the rows, about, where a second time costs little and gives the
            same; else None.
        on_progress: called at each stage.

    Raises:
        ValidationError: an ordinal is none of the plan's, or a position none of its file's.
        ConfigurationError: a property is malformed.
        UnsupportedError: a table of version 1, or another format of delete files than Parquet.
        MissingFileError, InvalidDataFileError: an earlier delete cannot be read.
        StorageError: the store refused or failed; what was written is removed.
    """
    write = _Write.plan(metadata, io, granularity, target_size)
    tell = on_progress or tell_nobody
    tell(WriteProgress("writing"))
    prepare_session(rows.sparkSession)
    files = plan.files
    room = most_words(files["record_count"])
    last = max(files["ordinal"], default=0)
    with collect_places(
        rows, most_words=room, most_rows=most_rows, most_ordinal=last, tasks=tasks
    ) as found:
        return write.write(rows.sparkSession, found, plan, tell)


def write_deletes_at(
    spark: SparkSession,
    places: Words,
    *,
    plan: ScanPlan,
    metadata: TableMetadata,
    io: FileIO,
    on_progress: Callable[[WriteProgress], None] | None = None,
) -> WrittenDeletes:
    """Write deletes of rows whose places the driver has, as `write_deletes` does.

    Args:
        spark: writes where the driver should not.
        places: keyed by ``ordinal << 32 | position >> 6``.
        plan: with every position delete that applies to its files.
        metadata: of the table, whose properties say how deletes are written.
        on_progress: called at each stage; errors are those of `write_deletes`.
    """
    write = _Write.plan(metadata, io, None, None)
    tell = on_progress or tell_nobody
    tell(WriteProgress("writing"))
    prepare_session(spark)
    return write.write(spark, Collected(word_counts(places), places, None), plan, tell)


def write_deletes_anew(
    spark: SparkSession,
    *,
    plan: ScanPlan,
    metadata: TableMetadata,
    io: FileIO,
    granularity: Granularity | None = None,
    target_size: int | None = None,
) -> WrittenDeletes:
    """Write what the position deletes and vectors of a plan delete once more; commit nothing.

    In version 3 all of it becomes deletion vectors. What `removed` is the caller knows: the plan
    may hold some of a table's deletes.

    Args:
        spark: writes where the driver should not.
        plan: the deletes, and the data files that they apply to.
        granularity: of position delete files; unless given, `write.delete.granularity` says it.
        target_size: of delete files, in bytes; `write.delete.target-file-size-bytes` unless given.

    Raises:
        ConfigurationError, UnsupportedError, StorageError: as `write_deletes`.
        MissingFileError, InvalidDataFileError: a delete cannot be read.
    """
    planned = _Write.plan(metadata, io, granularity, target_size)
    write = replace(planned, encoder=replace(planned.encoder, writes_known=True))
    prepare_session(spark)
    none = Words.empty()
    touched = DeleteTargets.of(
        plan,
        plan.files["ordinal"].cast(pl.Int64),
        metadata=metadata,
        io=io,
        carried=CarriedDeletes.ALL,
    )
    new = write.entries(spark, Collected(word_counts(none), none, None), touched)
    ordinals = [ordinal for each in new for ordinal in each.ordinals]
    paths = touched.files.filter(pl.col("ordinal").is_in(ordinals))["path"]
    return WrittenDeletes(added=tuple(each.entry for each in new), referenced_paths=tuple(paths))


def write_deletes_of_new_files(
    spark: SparkSession,
    files: Sequence[DataFile],
    deleted: Sequence[Words],
    *,
    metadata: TableMetadata,
    io: FileIO,
) -> WrittenDeletes:
    """Write deletes of rows of data files that the same commit will add; commit nothing.

    Args:
        spark: writes where the driver should not.
        files: the data files, where they stay.
        deleted: the positions that are deleted of each of them.
        metadata: of the table, whose properties say how deletes are written.

    Raises:
        ConfigurationError, UnsupportedError, StorageError: as `write_deletes`.
    """
    touched = [at for at, words in enumerate(deleted) if len(words.places)]
    if not touched:
        return WrittenDeletes()
    about = [files[at] for at in touched]
    words = Words.of_words(
        np.concatenate([deleted[at].places | (n << 32) for n, at in enumerate(touched)]),
        np.concatenate([deleted[at].bits for at in touched]),
    )
    write = _Write.plan(metadata, io, None, None)
    found = Collected(word_counts(words), words, None)
    places = DeleteTargets.just_written(about, metadata=metadata, io=io)
    _check_places(found.counts, places.files)
    prepare_session(spark)
    new = write.entries(spark, found, places)
    return WrittenDeletes(
        added=tuple(each.entry for each in new),
        deleted_rows=sum(each.deleted_rows for each in new),
        referenced_paths=tuple(file.file_path for file in about),
    )


@dataclass(frozen=True, slots=True)
class _Write:
    """One write of deletes."""

    metadata: TableMetadata
    io: FileIO
    kind: FileKind
    encoder: VectorEncoder | PositionEncoder
    carried: CarriedDeletes
    operation_id: str

    @classmethod
    def plan(
        cls,
        metadata: TableMetadata,
        io: FileIO,
        granularity: Granularity | None,
        target_size: int | None,
    ) -> _Write:
        properties = metadata.properties
        if metadata.format_version < 2:
            raise UnsupportedError(
                "tables of format version 1 have no delete files; upgrade the table to version 2 "
                "or 3, or rewrite the data files"
            )
        operation_id = str(uuid.uuid4())
        if metadata.format_version > 2:
            size = target_size or VECTOR_FILES.target_size.of(properties)
            vectors = VectorEncoder(size)
            return cls(metadata, io, VECTOR_FILES, vectors, CarriedDeletes.ALL, operation_id)
        file_format = DELETE_FORMAT.of(properties) or WRITE_FORMAT.of(properties)
        if file_format != "parquet":
            raise UnsupportedError(
                f"writing {file_format} delete files is not supported; set "
                f"{DELETE_FORMAT.name} to parquet"
            )
        by_partition = (granularity or DELETE_GRANULARITY.of(properties)) == "partition"
        positions = PositionEncoder(
            PositionDeleteOptions.of(properties),
            target_size or POSITION_DELETE_FILES.target_size.of(properties),
            by_partition,
        )
        carried = CarriedDeletes.NONE if by_partition else CarriedDeletes.OF_ONE_FILE
        return cls(metadata, io, POSITION_DELETE_FILES, positions, carried, operation_id)

    def write(
        self,
        spark: SparkSession,
        found: Collected,
        plan: ScanPlan,
        tell: Callable[[WriteProgress], None],
    ) -> WrittenDeletes:
        """Write deletes of rows of a plan's files."""
        touched = DeleteTargets.of(
            plan,
            found.counts["ordinal"],
            metadata=self.metadata,
            io=self.io,
            carried=self.carried,
        )
        _check_places(found.counts, touched.files)
        new = self.entries(spark, found, touched)
        ordinals = {ordinal for each in new for ordinal in each.ordinals}
        paths = touched.files.filter(pl.col("ordinal").is_in(list(ordinals)))["path"]
        written = WrittenDeletes(
            added=tuple(each.entry for each in new),
            removed=touched.replaced_deletes(ordinals),
            deleted_rows=sum(each.deleted_rows for each in new),
            referenced_paths=tuple(paths),
        )
        size = sum(file.size_in_bytes for file in written.added)
        with self.io.remove_on_failure(written.paths):
            tell(WriteProgress("done", len(written.paths), written.deleted_rows, size))
        return written

    def entries(
        self, spark: SparkSession, found: Collected, touched: DeleteTargets
    ) -> tuple[NewEntry, ...]:
        """Write, on the driver where the deletes are few."""
        new = self.write_on_driver(spark, found, touched)
        return self.on_executors(spark, found, touched) if new is None else new

    def write_on_driver(
        self, spark: SparkSession, found: Collected, touched: DeleteTargets
    ) -> tuple[NewEntry, ...] | None:
        """Write on the driver; None where the deletes are too many for it."""
        if found.words is None or int(found.counts["places"].sum()) > costs.DELETED_ROWS:
            return None
        if self._file_count(touched) > costs.DELETE_FILES:
            return None
        earlier: Mapping[int, Words] = {}
        if len(touched.earlier):
            deletes = touched.position_deletes(spark, self.io)
            if not deletes.are_few:
                return None
            earlier = deletes.words()
        partition_of = touched.partition_of()

        def path(count: int, ordinal: int) -> str:
            name = self.kind.file_name(
                partition_id=0, task_id=0, operation_id=self.operation_id, count=count
            )
            return self._path(name, *partition_of[ordinal])

        new_words = by_file(found.words, touched.files["ordinal"])
        files = touched.files.select("ordinal", "path", "group").iter_rows()
        each_file = [
            FileDeletes(
                ordinal=ordinal,
                path=path_of_file,
                group=group,
                found=new_words[ordinal],
                earlier=earlier.get(ordinal, Words.empty()),
            )
            for ordinal, path_of_file, group in files
        ]
        new = _with_partitions(self._create(self.encoder.files(each_file, path)), partition_of)
        if touched.plan is not None:
            keep_written(
                ((each.entry, each.ordinals) for each in new),
                {each.ordinal: Words.union((each.found, each.earlier)) for each in each_file},
                plan=touched.plan,
                metadata=self.metadata,
                io=self.io,
            )
        return new

    def on_executors(
        self, spark: SparkSession, found: Collected, touched: DeleteTargets
    ) -> tuple[NewEntry, ...]:
        """Let executors write, under a fresh folder."""
        staging = StagedFolder(self.io, new_data_folder(self.metadata, self.operation_id))
        staging.make()
        with staging.discard_on_failure():
            new = written_by_executors(
                spark,
                found,
                touched,
                encoder=self.encoder,
                kind=self.kind,
                staging=staging,
                operation_id=self.operation_id,
            )
            new = _with_partitions(new, touched.partition_of())
            staged = [each.entry for each in new]
            staging.keep_only(staged)
            published = staging.publish(
                staged,
                lambda entry, _: self._path(
                    name_of(entry.file_path), entry.spec_id, entry.partition
                ),
            )
        return tuple(replace(each, entry=entry) for each, entry in zip(new, published, strict=True))

    def _path(self, name: str, spec_id: int, partition: tuple[Any, ...]) -> str:
        """Where the table's layout wants a file about data files of a partition."""
        return self.kind.file_path(
            self.metadata,
            name,
            spec=self.metadata.spec_by_id(spec_id),
            schema=schema_with_sources(self.metadata),
            partition=partition,
        )

    def _file_count(self, touched: DeleteTargets) -> int:
        """How many files are written at least."""
        match self.carried:
            case CarriedDeletes.ALL:
                return 1
            case CarriedDeletes.OF_ONE_FILE:
                return len(touched.files)
            case CarriedDeletes.NONE:
                return touched.files["group"].n_unique()

    def _create(self, encoded: Iterator[EncodedFile]) -> list[NewEntry]:
        """Write files; all or none stay."""
        started: list[str] = []

        def create(file: EncodedFile) -> tuple[NewEntry, ...]:
            started.append(file.path)
            self.io.create_unique(file.path, file.data)
            return file.entries

        with self.io.remove_on_failure(started):
            created = in_threads(create, encoded, name="frazil-deletes")
        return [each for entries in created for each in entries]


def _check_places(counts: pl.DataFrame, files: pl.DataFrame) -> None:
    """Check that every place is in the plan: else other rows than meant would be deleted."""
    unknown = counts.join(files, on="ordinal", how="anti")
    if len(unknown):
        raise ValidationError(
            f"rows are to be deleted of the data files {unknown['ordinal'].head(5).to_list()}, "
            "which are not in the plan: give the plan that the rows were read by"
        )
    beyond = counts.join(files, on="ordinal").filter(pl.col("last") >= pl.col("record_count"))
    if len(beyond):
        first = beyond.row(0, named=True)
        raise ValidationError(
            f"the row at position {first['last']} of {first['path']} is to be deleted, which has "
            f"{first['record_count']} rows: give the plan that the rows were read by"
        )


def _with_partitions(
    entries: Sequence[NewEntry], partition_of: Mapping[int, tuple[int, tuple[Any, ...]]]
) -> tuple[NewEntry, ...]:
    """The entries with the spec and partition of their data files, by the files' ordinals."""
    places = (partition_of[each.ordinals[0]] for each in entries)
    return tuple(
        replace(each, entry=replace(each.entry, spec_id=spec_id, partition=partition))
        for each, (spec_id, partition) in zip(entries, places, strict=True)
    )
