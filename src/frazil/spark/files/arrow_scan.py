"""Scans of files that Spark's reader cannot read as the table means them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.errors import UnsupportedError
from frazil.format import types as I
from frazil.format.values import from_json, to_json
from frazil.spark.files.arrow.convert import scan_type
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.spark.files.parquet.file_log import ORDINAL, POSITION
from frazil.spark.files.parquet.native import ScanContext, Wanted
from frazil.spark.session.tasks import map_items
from frazil.spark.types import shows_times
from frazil.storage.files import FileIO

TASKS: Final = pa.schema(
    [
        pa.field("ordinal", pa.int64()),
        pa.field("path", pa.string()),
        pa.field("format", pa.string()),
        pa.field("constants", pa.string()),
    ]
)


def scan_with_arrow(
    context: ScanContext,
    files: pl.DataFrame,
    wanted: Wanted,
    table: TableColumns,
    constants: Mapping[int, Mapping[int, Any]] | None = None,
) -> DataFrame:
    """The files' columns under the scan's names, in scan types, read on the executors.

    Args:
        files: columns ``ordinal``, ``file_path``, ``file_format``.
        constants: for some ordinals, internal values of columns that the file may lack (rule 53).

    Raises:
        UnsupportedError: a column whose type this way cannot yield (variant).
    """
    if any(shows_times(field.field_type, context.support) for field in wanted.fields):
        raise UnsupportedError(
            "columns of type time in files that Spark cannot read need "
            "spark.sql.timeType.enabled=false"
        )
    types = {field.field_id: field.field_type for field in wanted.fields}
    texts = [
        _constants_text((constants or {}).get(ordinal, {}), types) for ordinal in files["ordinal"]
    ]
    tasks = pa.table(
        [
            files["ordinal"].to_arrow(),
            files["file_path"].to_arrow().cast(pa.string()),
            files["file_format"].to_arrow().cast(pa.string()),
            pa.array(texts, pa.string()),
        ],
        schema=TASKS,
    )
    names = [wanted.names[field.field_id] for field in wanted.fields]
    schema = S.StructType(
        [
            S.StructField(name, scan_type(field.field_type, context.support), True)
            for name, field in zip(names, wanted.fields, strict=True)
        ]
        + [S.StructField(name, S.LongType(), False) for name in (ORDINAL, POSITION)]
    )
    read = partial(_rows_of_file, context.io, wanted.fields, tuple(names), table)
    spread = context.spark.createDataFrame(tasks).repartition(len(files))
    rows = map_items(spread, read, schema)
    kept = [*names]
    if wanted.ordinal:
        kept.append(ORDINAL)
    if wanted.position:
        kept.append(POSITION)
    return rows.select(*(f"`{name.replace('`', '``')}`" for name in kept))


def _rows_of_file(
    io: FileIO,
    fields: tuple[I.NestedField, ...],
    names: tuple[str, ...],
    table: TableColumns,
    task: dict[str, Any],
) -> Iterator[pa.RecordBatch]:
    types = {field.field_id: field.field_type for field in fields}
    constants = {
        int(key): None if value is None else from_json(types[int(key)], value)
        for key, value in json.loads(task["constants"]).items()
    }
    part = FilePart(path=task["path"], file_format=task["format"], constants=constants)
    for start, length, arrays in read_batches(io, part, fields, table):
        ordinals = pa.repeat(pa.scalar(task["ordinal"], pa.int64()), length)
        positions = pa.array(range(start, start + length), pa.int64())
        yield pa.RecordBatch.from_arrays(
            [*arrays, ordinals, positions], names=[*names, ORDINAL, POSITION]
        )


def _constants_text(values: Mapping[int, Any], types: Mapping[int, I.IcebergType]) -> str:
    return json.dumps(
        {
            str(field_id): None if value is None else to_json(types[field_id], value)
            for field_id, value in values.items()
            if field_id in types
        }
    )
