"""Tables made file by file with PyArrow, and what their rows are by the rules, in plain Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from frazil.format.metadata import TableMetadata
from frazil.format.new_table import new_table_metadata
from frazil.format.predicates.expressions import AlwaysTrue
from frazil.format.puffin.deletion_vectors import deletion_vector_to_bytes
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, LongType, NestedField, StringType
from frazil.planning.deletes.index import GLOBAL_SCOPE, DeleteIndex
from frazil.planning.scan_plan import ScanPlan
from frazil.spark.deletes.resolve import EQUALITY_SETTING, EqualityReading
from frazil.spark.files.projection import project
from frazil.spark.read.reader import TableReader
from frazil.spark.session.facts import temporary_settings
from frazil.storage.files import FileIO

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "kind", IntegerType()),
        NestedField(3, "name", StringType()),
    )
)
ARROW = {1: pa.int64(), 2: pa.int32(), 3: pa.string()}
FILE_PATH = pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"})
POS = pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"})

Row = tuple[Any, ...]


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    """An Arrow field whose Parquet or ORC column has this id."""
    ids = {"PARQUET:field_id": str(field_id), "iceberg.id": str(field_id)}
    return pa.field(name, kind, metadata=ids)


@dataclass
class MadeTable:
    """An unpartitioned table of `SCHEMA`; deletes apply by sequence number (rules 176-178)."""

    folder: Path
    metadata: TableMetadata = field(init=False)
    files: list[dict[str, Any]] = field(default_factory=list)
    deletes: list[dict[str, Any]] = field(default_factory=list)
    rows: list[list[Row]] = field(default_factory=list)
    gone: list[set[int]] = field(default_factory=list)
    io: FileIO = field(default_factory=FileIO)

    def __post_init__(self) -> None:
        made = new_table_metadata(SCHEMA, location=f"file://{self.folder}", format_version=3)
        self.metadata = replace(made, schemas=(SCHEMA,))

    def add(self, rows: Sequence[Row], *, sequence: int, file_format: str = "parquet") -> None:
        """A data file."""
        path = self.folder / f"data {len(self.files)} {{%41[=ü.{file_format}"
        names = [f.name for f in SCHEMA.fields]
        fields = [with_id(n, ARROW[i], i) for i, n in enumerate(names, 1)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        write(path, pa.table(columns, schema=pa.schema(fields)), file_format)
        self.files.append(
            file_row(
                len(self.files),
                path,
                len(rows),
                file_format=file_format,
                sequence=sequence,
                first_row_id=1000 * len(self.files),
            )
        )
        self.rows.append(list(rows))
        self.gone.append(set())

    def delete_positions(
        self, where: Iterable[tuple[int, int]], *, sequence: int, file_format: str = "parquet"
    ) -> None:
        """A position delete file of (data file, position)."""
        pairs = list(where)
        path = self.folder / f"pos-{len(self.deletes)}.{file_format}"
        names = [self.files[file]["file_path"] for file, _ in pairs]
        schema = pa.schema([FILE_PATH, POS])
        table = pa.table([names, [position for _, position in pairs]], schema=schema)
        write(path, table, file_format)
        applied = self._add_delete(path, file_format, 1, len(pairs), sequence)
        for file, position in pairs:
            if self.files[file]["sequence_number"] <= sequence:
                self.gone[file].add(position)
                applied.add(file)

    def delete_vector(self, file: int, positions: Iterable[int], *, sequence: int) -> None:
        """A deletion vector between other bytes of a Puffin file."""
        chosen = sorted(set(positions))
        blob = deletion_vector_to_bytes(chosen)
        path = self.folder / f"dv-{len(self.deletes)}.puffin"
        path.write_bytes(b"PFA1" + blob + b"rest")
        applied = self._add_delete(path, "puffin", 1, len(chosen), sequence)
        self.deletes[-1] |= {"content_offset": 4, "content_size_in_bytes": len(blob)}
        self.gone[file].update(chosen)
        applied.add(file)

    def delete_keys(
        self,
        ids: Sequence[int],
        keys: Sequence[Row],
        *,
        sequence: int,
        file_format: str = "parquet",
    ) -> None:
        """An equality delete file of values for these field ids (rules 229, 230)."""
        path = self.folder / f"eq-{len(self.deletes)}.{file_format}"
        fields = [with_id(f"old name {i}", ARROW[i], i) for i in ids]
        columns = [list(column) for column in zip(*keys, strict=True)]
        write(path, pa.table(columns, schema=pa.schema(fields)), file_format)
        applied = self._add_delete(path, file_format, 2, len(keys), sequence)
        self.deletes[-1]["equality_ids"] = list(ids)
        self.deletes[-1]["scope"] = GLOBAL_SCOPE
        self.deletes[-1]["may_hold_null_keys"] = any(None in key for key in keys)
        for file, rows in enumerate(self.rows):
            if self.files[file]["sequence_number"] < sequence:
                applied.add(file)
                for position, row in enumerate(rows):
                    if tuple(row[i - 1] for i in ids) in set(keys):
                        self.gone[file].add(position)

    def _add_delete(
        self, path: Path, file_format: str, content: int, count: int, sequence: int
    ) -> set[int]:
        applied: set[int] = set()
        self.deletes.append(
            {
                "delete": len(self.deletes),
                "file_path": f"file://{path}",
                "file_format": file_format,
                "file_size_in_bytes": path.stat().st_size,
                "content": content,
                "record_count": count,
                "sequence_number": sequence,
                "scope": 1,
                "equality_ids": None,
                "content_offset": None,
                "content_size_in_bytes": None,
                "key_metadata": None,
                "may_hold_null_keys": True,
                "applied": applied,
            }
        )
        return applied

    def live(self) -> list[Row]:
        """The rows that are left, sorted, by the model."""
        kept = [
            row
            for file, rows in enumerate(self.rows)
            for position, row in enumerate(rows)
            if position not in self.gone[file]
        ]
        return sorted(kept, key=repr)

    def plan(self) -> ScanPlan:
        """The table as planning would give it."""
        deletes = [{k: v for k, v in d.items() if k != "applied"} for d in self.deletes]
        pairs = [
            {"ordinal": file, "delete": d["delete"]} for d in self.deletes for file in d["applied"]
        ]
        index = DeleteIndex(pl.DataFrame(pairs, schema={"ordinal": pl.Int64, "delete": pl.Int64}))
        return plan_of(SCHEMA, self.files, deletes, index)

    def dataframe(
        self,
        spark: Any,
        columns: Sequence[str] | None = None,
        equality: EqualityReading = EqualityReading.JOIN,
    ) -> Any:
        """What Frazil reads."""
        reader = TableReader(spark, self.metadata, self.io)
        with temporary_settings(spark, {EQUALITY_SETTING: equality.value}):
            return reader.rows(self.plan(), project(SCHEMA, columns))

    def read(
        self,
        spark: Any,
        columns: Sequence[str] | None = None,
        equality: EqualityReading = EqualityReading.JOIN,
    ) -> list[Row]:
        """The rows that Frazil reads, sorted."""
        rows = self.dataframe(spark, columns, equality).collect()
        return sorted((tuple(row) for row in rows), key=repr)


def file_row(
    ordinal: int,
    path: Path,
    rows: int,
    *,
    file_format: str = "parquet",
    sequence: int = 1,
    first_row_id: int | None = None,
) -> dict[str, Any]:
    """A row of a plan's files, of an unpartitioned table."""
    return {
        "ordinal": ordinal,
        "file_path": f"file://{path}",
        "file_format": file_format,
        "file_size_in_bytes": path.stat().st_size,
        "record_count": rows,
        "spec_id": 0,
        "partition": None,
        "sequence_number": sequence,
        "snapshot_id": 1,
        "first_row_id": first_row_id,
        "split_offsets": None,
        "key_metadata": None,
        "scope": 1,
    }


def plan_of(
    schema: Schema,
    files: Sequence[Mapping[str, Any]],
    deletes: Sequence[Mapping[str, Any]] = (),
    index: DeleteIndex | None = None,
) -> ScanPlan:
    """The plan of these rows of files and deletes."""
    return ScanPlan(
        snapshot_id=1,
        schema=schema,
        where=AlwaysTrue(),
        residual=AlwaysTrue(),
        files=pl.DataFrame(list(files), schema_overrides=FILE_TYPES),
        deletes=pl.DataFrame(list(deletes), schema=DELETE_TYPES),
        delete_index=DeleteIndex.empty() if index is None else index,
    )


FILE_TYPES: Mapping[str, Any] = {
    "spec_id": pl.Int32,
    "first_row_id": pl.Int64,
    "key_metadata": pl.Binary,
}
DELETE_TYPES: Mapping[str, Any] = {
    "delete": pl.Int64,
    "file_path": pl.String,
    "file_format": pl.String,
    "file_size_in_bytes": pl.Int64,
    "content": pl.Int32,
    "record_count": pl.Int64,
    "sequence_number": pl.Int64,
    "scope": pl.Int64,
    "equality_ids": pl.List(pl.Int32),
    "content_offset": pl.Int64,
    "content_size_in_bytes": pl.Int64,
    "key_metadata": pl.Binary,
    "may_hold_null_keys": pl.Boolean,
}


def write(path: Path, table: pa.Table, file_format: str) -> None:
    """The table as a Parquet or ORC file."""
    if file_format == "parquet":
        pq.write_table(table, path, row_group_size=37)
    else:
        orc.write_table(table, path)
