"""A table of two longs, a double and a string, with branches under equality deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import frazil
from frazil.format.manifests import Content, DataFile
from frazil.format.values import to_bytes

TABLE = "bench.equality"
DDL = "id bigint, k bigint, d double, s string"
KEYS: Mapping[str, tuple[str, ...]] = {
    "one long": ("id",),
    "one string": ("s",),
    "long and string": ("k", "s"),
}


def make_table(spark: SparkSession, lake: frazil.Lake, rows: int) -> frazil.Table:
    """The table, with no delete yet; every `id` and every `s` occurs once."""
    table = lake.create_table(TABLE, DDL, format_version=2)
    table.append(
        spark.range(0, rows, 1, 8).selectExpr(
            "id",
            "(id * 7919) % 1000003 as k",
            "cast(hash(id) as double) / 1000 as d",
            "concat('name-', cast(id as string)) as s",
        )
    )
    return table


def chosen_ids(rows: int, count: int) -> np.ndarray:
    """So many different ids from all over the table."""
    return np.random.default_rng(11).choice(rows, count, replace=False)


def add_deletes(
    table: frazil.Table, branch: str, columns: Sequence[str], ids: np.ndarray, files: int
) -> None:
    """A branch of the table on which the rows of these ids are deleted by their keys."""
    table.create_branch(branch)
    parts = np.array_split(ids, files)
    added = [_delete_file(table, f"{branch}-{n}", columns, part) for n, part in enumerate(parts)]
    table.files.row_delta(added_deletes=added, branch=branch)


def _delete_file(
    table: frazil.Table, name: str, columns: Sequence[str], ids: np.ndarray
) -> DataFile:
    values = {
        "id": pa.array(ids),
        "k": pa.array(ids * 7919 % 1000003),
        "s": pc.binary_join_element_wise("name", pc.cast(pa.array(ids), pa.string()), "-"),
    }
    fields = [table.schema.find_field(column) for column in columns]
    schema = pa.schema(
        [
            pa.field(f.name, values[f.name].type, True, {"PARQUET:field_id": str(f.field_id)})
            for f in fields
        ]
    )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([values[c] for c in columns], schema=schema), sink)
    content = sink.getvalue().to_pybytes()
    target = f"{table.location}/data/equality-{name}.parquet"
    table.io.write(target, content)
    ranges = {f: pc.min_max(values[f.name]).as_py() for f in fields}
    return DataFile(
        content=Content.EQUALITY_DELETES,
        file_path=target,
        record_count=len(ids),
        file_size_in_bytes=len(content),
        equality_ids=tuple(f.field_id for f in fields),
        value_counts={f.field_id: len(ids) for f in fields},
        null_value_counts={f.field_id: 0 for f in fields},
        lower_bounds={f.field_id: to_bytes(f.field_type, ranges[f]["min"]) for f in fields},
        upper_bounds={f.field_id: to_bytes(f.field_type, ranges[f]["max"]) for f in fields},
    )
