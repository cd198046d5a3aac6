"""The files of a source as entries of a table, read by the driver's threads or by executors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any

import polars as pl
from pyspark.sql import SparkSession

from frazil.errors import ValidationError
from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.metadata.table_mapping import name_mapping_of
from frazil.format.schema.name_mapping import FileNames, mapping_for
from frazil.spark.migration.entries import EntryMaker, Found, found_wire
from frazil.spark.migration.sources import FileSource
from frazil.spark.session import costs
from frazil.spark.session.facts import is_case_sensitive, time_zone_of
from frazil.spark.session.tasks import work_on
from frazil.storage.files import FileIO
from frazil.table.migration.partitions import PartitionTexts, compatible_spec, value_column


@dataclass(frozen=True, slots=True)
class Importer:
    """Reads the footers of files for one table.

    Attributes:
        spark: the session; its executors read where the files are many.
        io: opens the files.
        metadata: of the table.
        table: what errors call it.
        parallelism: how many files a process reads beside each other.
    """

    spark: SparkSession
    io: FileIO
    metadata: TableMetadata
    table: str
    parallelism: int | None = None

    def __post_init__(self) -> None:
        number = self.parallelism
        if number is not None and (isinstance(number, bool) or number < 1):
            raise ValidationError(f"parallelism is {number}; it must be positive")

    def files_of(
        self, source: FileSource, partition_filter: Mapping[str, Any] | None = None
    ) -> tuple[list[DataFile], FileNames]:
        """Read the files of the partitions that a filter leaves.

        Returns:
            An entry for each file, and names that the table's name mapping must have for them
            besides its own.

        Raises:
            ValidationError: the partitioning of the source is none of the table's, or the filter
                does not fit or leaves nothing.
            SchemaMismatchError: a file's columns do not fit the table.
            InvalidDataFileError: a file is damaged.
            StorageError: a file cannot be read.
        """
        mapping = name_mapping_of(self.metadata) or mapping_for(self.metadata.schema)
        spec = compatible_spec(self.metadata, source.files.names, source.name)
        texts = PartitionTexts(spec, self.metadata.schema, time_zone_of(self.spark))
        there = texts.with_values(source.files, source.name)
        chosen = texts.with_partition_values(there, partition_filter or {}, self.table)
        if len(there) and not len(chosen):
            raise ValidationError(
                f"no partition of {source.name} has {dict(partition_filter or {})!r}: nothing was "
                "added"
            )
        maker = EntryMaker.of(
            self.io,
            self.metadata,
            mapping,
            spec,
            source.file_format,
            is_case_sensitive=is_case_sensitive(self.spark),
        )
        found = self._find_all(maker, chosen)
        names = reduce(or_, (each.names for each in found), FileNames())
        return [each.entry for each in found], names

    def _find_all(self, maker: EntryMaker, files: pl.DataFrame) -> list[Found]:
        columns = [value_column(number) for number in range(len(maker.spec.fields))]
        files = files.select("path", *columns)
        self._refuse_required_nulls(maker, files)
        return work_on(
            self.spark,
            files.rows(),
            partial(_find_file, maker),
            found_wire(maker.partition_type),
            cost=costs.REMOTE_FOOTERS,
            units=len(files),
            threads=self.parallelism,
        )

    def _refuse_required_nulls(self, maker: EntryMaker, files: pl.DataFrame) -> None:
        for number, each in enumerate(maker.spec.fields):
            if each.is_void or not self.metadata.schema.find_field(each.source_id).required:
                continue
            null = files.filter(pl.col(value_column(number)).is_null())["path"]
            if len(null):
                raise ValidationError(
                    f"{null[0]} is of the partition where {each.name} is NULL, and the table "
                    "requires the column"
                )


def _find_file(maker: EntryMaker, file: Sequence[str]) -> Found:
    """Given a file's path and what its partition is made of."""
    return maker.find(file[0], maker.partition_of(file[1:]))
