"""Files and entries of a snapshot whose manifests the driver knows.

A row is a place, and its values are looked up where they are asked for. How many rows a manifest
has its list says. So a count starts no Python on an executor; what is decoded there is the result
of a function, which Spark leaves out where no column of it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import InvalidManifestError
from frazil.format import types as I
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.snapshots import Snapshot
from frazil.spark.metadata_frames.entry_rows import (
    manifest_of_task,
    stated_manifest,
    without_comments,
)
from frazil.spark.metadata_frames.shape import record_batch, spark_schema
from frazil.spark.session.tasks import arrow_function, spread_items
from frazil.spark.types import COMMENT_KEY, SparkTypeSupport
from frazil.storage.files import FileIO
from frazil.table.inspect.files import ROW, EntryTables
from frazil.table.inspect.schemas import MAPPED, without_maps

PlacedTable = Literal["files", "entries"]

_TASK: Final = "_frazil_task"
_PLAIN: Final = "_frazil_plain"
_MAPS: Final = "_frazil_maps"
_TOTALS: Final = {
    "total-data-files": ManifestContent.DATA,
    "total-delete-files": ManifestContent.DELETES,
}
_ROW_FIELD: Final = I.NestedField(0, ROW, I.LongType(), required=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRows:
    """The rows of a table of files or entries.

    Attributes:
        table: which of both.
        columns: of the table.
        support: the session's newer types.
    """

    spark: SparkSession
    io: FileIO
    tables: EntryTables
    table: PlacedTable
    columns: I.StructType
    support: SparkTypeSupport

    def of(self, manifests: Sequence[ManifestFile], counts: Sequence[int]) -> DataFrame:
        """Its rows, as many as a manifest list says; executors decode what is asked for.

        Args:
            counts: the rows of each manifest.
        """
        known = [(task, count) for task, count in enumerate(counts) if count]
        items = pa.table(
            {
                _TASK: pa.array([task for task, _ in known], pa.int32()),
                "count": pa.array([count for _, count in known], pa.int64()),
            }
        )
        numbers = F.sequence(F.lit(0).cast("bigint"), F.col("count") - 1)
        rows = spread_items(self.spark, items).select(_TASK, F.explode(numbers).alias(ROW))
        plain = self._plain
        look_up = _function(self._reader("plain", plain, manifests, counts), plain, self.support)
        rows = rows.select(_TASK, look_up(F.col(_TASK), F.col(ROW)).alias(_PLAIN))
        maps = I.StructType(self.tables.maps_columns)
        look_up = _function(self._reader("maps", maps, manifests, ()), maps, self.support)
        found = rows.withColumn(_MAPS, look_up(F.col(_TASK), F.col(f"{_PLAIN}.{ROW}")))
        return found.select(*(self._column(each) for each in self.columns.fields))

    def _column(self, column: I.NestedField, inside: str = f"{_PLAIN}.") -> Column:
        if column.name == "data_file" and isinstance(column.field_type, I.StructType):
            parts = column.field_type.fields
            found = F.struct(*(self._column(part, f"{inside}data_file.") for part in parts))
        else:
            place = f"{_MAPS}." if column.name in MAPPED else inside
            # With the comments of the fields within it.
            shown = spark_schema(I.StructType((column,)), self.support).fields[0].dataType
            found = F.col(f"{place}{column.name}")
            if column.required:
                found = _never_null(found, shown)
            found = found.cast(shown)
        metadata = {} if column.doc is None else {COMMENT_KEY: column.doc}
        return found.alias(column.name, metadata=metadata)

    @property
    def _plain(self) -> I.StructType:
        return I.StructType((*without_maps(self.columns).fields, _ROW_FIELD))

    def _reader(
        self,
        what: Literal["plain", "maps"],
        columns: I.StructType,
        manifests: Sequence[ManifestFile],
        counts: Sequence[int],
    ) -> _Reader:
        return _Reader(
            io=self.io,
            tables=self.tables,
            table=self.table,
            what=what,
            columns=columns,
            support=self.support,
            tasks=tuple(stated_manifest(manifest) for manifest in manifests),
            counts=tuple(counts),
        )


def counts_in_list(manifests: Sequence[ManifestFile], table: PlacedTable) -> list[int] | None:
    """The rows of each manifest in a table as their list states them; None where one lacks it."""
    found: list[int] = []
    for each in manifests:
        counts = [each.added_files_count, each.existing_files_count]
        if table == "entries":
            counts.append(each.deleted_files_count)
        known = [count for count in counts if count is not None and count >= 0]
        if len(known) < len(counts):
            return None
        found.append(sum(known))
    return found


def agrees_with_list(snapshot: Snapshot | None, manifests: Sequence[ManifestFile]) -> bool:
    """Whether a snapshot's own totals, where it has them, are those of its manifest list."""
    summary = {} if snapshot is None else snapshot.summary or {}
    counts = counts_in_list(manifests, "files") or [-1] * len(manifests)
    for name, content in _TOTALS.items():
        pairs = zip(manifests, counts, strict=True)
        listed = sum(count for manifest, count in pairs if manifest.content is content)
        if summary.get(name, str(listed)) != str(listed):
            return False
    return True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Reader:
    """Places to the values of their entries, in a Python worker.

    Attributes:
        what: "plain" for the row of a table of that number in a manifest, "maps" for what is made
            of the maps of the entry of that number.
        columns: what is looked up.
        tasks: what is told of each manifest.
        counts: how many rows each must have; any without.
    """

    io: FileIO
    tables: EntryTables
    table: PlacedTable
    what: Literal["plain", "maps"]
    columns: I.StructType
    support: SparkTypeSupport
    tasks: tuple[dict[str, Any], ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)

    def __call__(self, tasks: pa.Array, rows: pa.Array) -> pa.Array:
        asked = pl.DataFrame({"task": pl.from_arrow(tasks), ROW: pl.from_arrow(rows)})
        asked = asked.with_row_index("nth")
        found: list[pl.DataFrame] = []
        for (task,), members in asked.group_by("task", maintain_order=True):
            values = _values_of(self, int(str(task)))
            found.append(values[members[ROW]].with_columns(members["nth"]))
        ordered = pl.concat(found).sort("nth").drop("nth") if found else self.none()
        batch = record_batch(ordered, self.columns, self.support)
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))

    def none(self) -> pl.DataFrame:
        """Values without rows."""
        if self.what == "maps":
            return self.tables.no_maps()
        tables = self.tables
        return tables.no_plain_files() if self.table == "files" else tables.no_plain_entries()

    def of_manifest(self, task: int) -> pl.DataFrame:
        """The values of all rows of a manifest."""
        manifest = manifest_of_task(self.tasks[task])
        if self.what == "maps":
            return self.tables.maps(self.io, manifest)
        read = self.tables.plain_files if self.table == "files" else self.tables.plain_entries
        found = read(self.io, manifest)
        if len(found) != self.counts[task]:
            raise InvalidManifestError(
                f"it has {len(found)} {self.table}, and the manifest list says "
                f"{self.counts[task]}: see what check() of the table says",
                file=manifest.manifest_path,
            )
        return found


@lru_cache(maxsize=1)
def _values_of(reader: _Reader, task: int) -> pl.DataFrame:
    """The values of a manifest, of which the batches of a task are parts."""
    return reader.of_manifest(task)


def _function(reader: _Reader, columns: I.StructType, support: SparkTypeSupport) -> Any:
    return arrow_function(reader, without_comments(spark_schema(columns, support)))


def _never_null(column: Column, kind: S.DataType) -> Column:
    """A column that is never null as Spark shows such ones."""
    if isinstance(kind, S.StructType):
        return F.struct(*(column.getField(each.name).alias(each.name) for each in kind.fields))
    return F.coalesce(column, F.lit("" if isinstance(kind, S.StringType) else 0).cast(kind))
