"""`position_deletes`: every deleted position of delete files and deletion vectors, as rows.

The files are opened by the executors: nothing of their content passes through the driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.schema.name_mapping import mapping_for
from frazil.spark.files.arrow.convert import convert_column, is_scanned, needs_conversion, scan_type
from frazil.spark.files.arrow.files import FilePart, TableColumns, arrow_type, read_batches
from frazil.spark.metadata_frames.entry_rows import BATCH_ROWS
from frazil.spark.session.tasks import map_batches
from frazil.spark.types import COMMENT_KEY, SparkTypeSupport, shows_times
from frazil.storage.files import FileIO
from frazil.storage.vectors import read_deletion_vector

_PATH: Final = I.NestedField(2147483546, "file_path", I.StringType(), required=True)
_POSITION: Final = I.NestedField(2147483545, "pos", I.LongType(), required=True)
_ROW_ID: Final = 2147483544
_CONTENT: Final = 1
_FILE: Final = (
    "spec_id",
    "delete_file_path",
    "content_offset",
    "content_size_in_bytes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPositions:
    """How delete files become rows.

    Attributes:
        io: the table's files; sent to the workers.
        schema: the table's current schema, the type of `row`.
        support: which of Spark's newer types the session has.
        columns: the Spark schema of the result.
    """

    io: FileIO
    schema: Schema
    support: SparkTypeSupport
    columns: S.StructType

    def rows(self, files: DataFrame, partitions: int) -> DataFrame:
        """A row a deleted position, given rows of the table `delete_files`.

        Args:
            partitions: how many tasks to spread the files over.

        Raises:
            UnsupportedError: in a worker, for an encrypted file, or for a file that holds deleted
                rows with a column that cannot be read through Arrow.
        """
        own = ["partition"] if "partition" in self.columns.names else []
        offset = files["content_offset"]
        tasks = (
            files.where(F.col("content") == _CONTENT)
            .select(
                *own,
                "spec_id",
                F.col("file_path").alias("delete_file_path"),
                offset,
                "content_size_in_bytes",
                "file_format",
                "record_count",
                "referenced_data_file",
                F.col("key_metadata").isNotNull().alias("encrypted"),
            )
            .repartition(partitions)
        )
        row = self._row_field
        read = _DeleteReader(self.io, row, (*own, *_FILE))
        schema = S.StructType(
            [
                S.StructField("file_path", S.StringType(), False),
                S.StructField("pos", S.LongType(), False),
                *([] if row is None else [self._scanned_row(row)]),
                *(
                    self.columns[name] if name in self.columns.names else tasks.schema[name]
                    for name in (*own, *_FILE)
                ),
            ]
        )
        found = map_batches(tasks, read, schema)
        return found.select(*(self._column(field, row) for field in self.columns.fields))

    @property
    def _row_field(self) -> I.NestedField | None:
        """The deleted row as files may hold it; None where Arrow has no place for its type."""
        kind = I.StructType(tuple(f for f in self.schema.fields if is_scanned(f.field_type)))
        try:
            arrow_type(kind)
        except UnsupportedError:
            return None
        if shows_times(kind, self.support):
            return None
        return I.NestedField(_ROW_ID, "row", kind)

    def _scanned_row(self, row: I.NestedField) -> S.StructField:
        """The row as workers give it: as it is shown, where files hold it so."""
        if needs_conversion(self.schema.as_struct(), self.support):
            return S.StructField("row", scan_type(row.field_type, self.support), True)
        return self.columns["row"]

    def _column(self, field: S.StructField, row: I.NestedField | None) -> Column:
        column = F.col(quote_name_always([field.name]))
        kind = self.schema.as_struct()
        if field.name == "row" and row is None:
            column = F.lit(None).cast(field.dataType)
        elif field.name == "row" and row is not None and needs_conversion(kind, self.support):
            column = convert_column(column, kind, self.support, scanned=row.field_type)
        comment = (field.metadata or {}).get(COMMENT_KEY)
        return column.alias(field.name, metadata={} if comment is None else {COMMENT_KEY: comment})


@dataclass(frozen=True, slots=True)
class _DeleteReader:
    """Delete files to rows, in a Python worker.

    Attributes:
        row: the deleted row; None to refuse files that hold one.
        kept: the columns of the tasks that every row repeats.
    """

    io: FileIO
    row: I.NestedField | None
    kept: tuple[str, ...]

    def __call__(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in tasks:
            names = [name for name in batch.schema.names if name != "partition"]
            for place, task in enumerate(batch.select(names).to_pylist()):
                if task["encrypted"]:
                    raise UnsupportedError(
                        f"the file {task['delete_file_path']} is encrypted; reading encrypted "
                        "tables is not supported"
                    )
                vector = task["file_format"] == "PUFFIN"
                found = self._vector(task) if vector else self._file(task)
                schema = self._schema(batch)
                for arrays in found:
                    repeated = pa.array([place], pa.int64()).take(
                        pa.array([0] * len(arrays[0]), pa.int64())
                    )
                    kept = (batch.column(name).take(repeated) for name in self.kept)
                    yield pa.RecordBatch.from_arrays([*arrays, *kept], schema=schema)

    def _schema(self, tasks: pa.RecordBatch) -> pa.Schema:
        """One schema for every file, whether it holds rows or not."""
        known = [pa.field("file_path", pa.string()), pa.field("pos", pa.int64())]
        row = [pa.field("row", self._row_type)] if self.row else []
        return pa.schema([*known, *row, *(tasks.schema.field(name) for name in self.kept)])

    @property
    def _row_type(self) -> pa.DataType:
        return _nullable(arrow_type(self.row.field_type if self.row else I.StructType(())))

    def _vector(self, task: dict[str, Any]) -> Iterator[list[pa.Array]]:
        bitmap = read_deletion_vector(
            self.io,
            task["delete_file_path"],
            offset=task["content_offset"],
            length=task["content_size_in_bytes"],
            cardinality=task["record_count"],
        )
        positions = pa.array(bitmap.to_array(), pa.int64())
        for start in range(0, len(positions), BATCH_ROWS):
            piece = positions.slice(start, BATCH_ROWS)
            paths = pa.repeat(pa.scalar(task["referenced_data_file"], pa.string()), len(piece))
            rows = [pa.nulls(len(piece), self._row_type)] if self.row else []
            yield [paths, piece, *rows]

    def _file(self, task: dict[str, Any]) -> Iterator[list[pa.Array]]:
        stored = self.row or I.NestedField(_ROW_ID, "row", I.StructType(()))
        fields = (_PATH, _POSITION, stored)
        table = TableColumns(fields=fields, mapping=mapping_for(Schema(fields)))
        part = FilePart(path=task["delete_file_path"], file_format=str(task["file_format"]).lower())
        for _, _, arrays in read_batches(self.io, part, fields, table):
            # A row that names no file or no position deletes nothing.
            named = pc.and_(arrays[0].is_valid(), arrays[1].is_valid())
            *known, row = (array.filter(named) for array in arrays)
            if self.row is None and row.null_count < len(row):
                raise UnsupportedError(
                    f"the position delete file {part.path} holds deleted rows with a column that "
                    "can be read from Parquet files with field ids only"
                )
            yield [*known, *([row.cast(self._row_type)] if self.row else [])]


def _nullable(kind: pa.DataType) -> pa.DataType:
    """The type with every field nullable, as arrays from different files have it in common."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _nullable(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_nullable(kind.key_type), _nullable(kind.item_type))
    return kind
