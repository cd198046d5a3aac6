"""Reads that are kept, so that a snapshot which is read again is not prepared again.

A snapshot's files and deletes never change. What Spark was told of them for one read serves the
next one of the same columns in the same session: only the result's columns are made anew, since two
reads in one query must be told apart.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from frazil.format.schema.name_mapping import NameMapping
from frazil.planning.cache import memory_of_plan
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.resolve import EqualityReading
from frazil.spark.files.layout.trusted import FOOTERS_SETTING
from frazil.spark.files.parquet.access import access_tag
from frazil.spark.files.parquet.file_log import READING_SETTINGS
from frazil.spark.files.parquet.locations import LOCATION_SETTINGS
from frazil.spark.files.projection import Projection
from frazil.spark.read.result_columns import ScanColumn
from frazil.spark.session.facts import given_settings, is_connect
from frazil.spark.types import SparkTypeSupport
from frazil.storage.files import FileIO

READ_BYTES: Final = 256 * 1024
BYTES_PER_FILE: Final = 700
"""What Spark's driver keeps of a read, and of each of its files, about: of 200 000 files with names
of 90 characters 660 bytes of live objects each."""


@dataclass(frozen=True, slots=True)
class PreparedRows:
    """Some rows of a read.

    Attributes:
        rows: them, maybe with columns that the result does not have.
        columns: the result's columns; None where the rows have just those.
        is_small: whether the rows' plan holds little more than the names of files.
    """

    rows: DataFrame
    columns: tuple[ScanColumn, ...] | None = None
    is_small: bool = False

    def frame(self) -> DataFrame:
        """The rows in the result's columns, which are new ones at every call if they are named."""
        if self.columns is None:
            return self.rows
        spark = self.rows.sparkSession
        return self.rows.select(*(each.made_anew(spark) for each in self.columns))

    def relation(self) -> DataFrame:
        """The rows in the result's columns, which are those of the scan where that has them."""
        if self.columns is None:
            return self.rows
        if all(each.is_as_stored for each in self.columns) and self.rows.columns == [
            each.name for each in self.columns
        ]:
            return self.rows
        spark = self.rows.sparkSession
        return self.rows.select(
            *(
                each.as_stored() if each.is_as_stored else each.made_anew(spark)
                for each in self.columns
            )
        )


@dataclass(frozen=True)
class PreparedRead:
    """All rows of a read, at least one part of them."""

    parts: tuple[PreparedRows, ...]

    @property
    def can_be_repeated(self) -> bool:
        """Whether each call of `frame` gives columns of its own, at little memory."""
        return all(part.columns is not None and part.is_small for part in self.parts)

    def frame(self) -> DataFrame:
        """The rows in the result's columns."""
        return reduce(DataFrame.union, [part.frame() for part in self.parts])

    @cached_property
    def relation(self) -> DataFrame:
        """The rows for Spark to name in a query's text, the same columns at every call.

        They are the columns of the scans wherever those have the result's names and types. The
        optimizer leaves some of the columns that a select makes anew, and then does not see that
        two parts of a query read the same rows. The metadata of such columns has what scans need.
        """
        return reduce(DataFrame.union, [part.relation() for part in self.parts])


@dataclass(frozen=True, slots=True)
class _ForgettableRead:
    """A read whose files the virtual machine may forget: it does where it needs the memory.

    Attributes:
        spark: the session.
        rows: a soft reference to those of each part.
        columns: of each part.
    """

    spark: SparkSession
    rows: tuple[Any, ...]
    columns: tuple[tuple[ScanColumn, ...] | None, ...]

    @classmethod
    def of(cls, spark: SparkSession, read: PreparedRead) -> _ForgettableRead:
        """That of a read of a session beside this process."""
        session: Any = spark
        soft = session._jvm.java.lang.ref.SoftReference
        frames: list[Any] = [part.rows for part in read.parts]
        columns = tuple(part.columns for part in read.parts)
        return cls(spark, tuple(soft(frame._jdf) for frame in frames), columns)

    def read_again(self) -> PreparedRead | None:
        """The read; None where it was forgotten."""
        found = [reference.get() for reference in self.rows]
        if None in found:
            return None
        return PreparedRead(
            tuple(
                PreparedRows(DataFrame(rows, self.spark), columns, is_small=True)
                for rows, columns in zip(found, self.columns, strict=True)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """What a read depends on beside its session and its plan.

    Attributes:
        projection: the result's columns.
        support: the session's newer types.
        mapping: the table's name mapping, for files without field ids (SPEC rule 54).
        equality: how equality deletes are applied.
        settings: of the session, and the folder that relative paths start at.
        pushed: ids of columns whose floats only predicates for Parquet's filters are about.
    """

    projection: Projection
    support: SparkTypeSupport
    mapping: NameMapping | None = None
    equality: EqualityReading = EqualityReading.JOIN
    settings: tuple[str | None, ...] = ()
    pushed: frozenset[int] = frozenset()


def settings_of(spark: SparkSession, io: FileIO) -> tuple[str | None, ...]:
    """The settings that say how files are handed to Spark, and a tag of what reaches them."""
    names = (*READING_SETTINGS, *LOCATION_SETTINGS, FOOTERS_SETTING)
    return (*given_settings(spark, names), os.path.abspath(""), access_tag(spark, io))


@dataclass(frozen=True, slots=True, eq=False)
class _ReadKey:
    """What a read was made for: this session, this very plan, and a request that is equal."""

    spark: SparkSession
    plan: ScanPlan
    request: ReadRequest

    def __hash__(self) -> int:
        return hash((id(self.spark), id(self.plan)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _ReadKey)
            and self.spark is other.spark
            and self.plan is other.plan
            and self.request == other.request
        )


def known_read(
    spark: SparkSession, plan: ScanPlan, request: ReadRequest, io: FileIO
) -> PreparedRead | None:
    """Return the read of this very plan that is kept with these files; None without one."""
    found = io.caches["reads"].get(_ReadKey(spark, plan, request))
    return found.read_again() if isinstance(found, _ForgettableRead) else found


def keep_read(
    read: PreparedRead, spark: SparkSession, plan: ScanPlan, request: ReadRequest, io: FileIO
) -> None:
    """Keep a read, where it can be repeated; those that were not used for longest make room.

    What Spark keeps of its files is in the virtual machine. Of more than the cache's bound it is
    left to the machine, which forgets it where it needs the memory, and only the plan is counted.
    """
    if not read.can_be_repeated:
        return
    kept, key = io.caches["reads"], _ReadKey(spark, plan, request)
    here = READ_BYTES + memory_of_plan(plan)
    size = here + plan.file_count * BYTES_PER_FILE
    if size <= kept.max_bytes or is_connect(spark):
        kept.put(key, read, size)
    else:
        kept.put(key, _ForgettableRead.of(spark, read), here)
