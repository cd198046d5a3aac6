"""A table of 50 partitions after many small upsert commits, by a long key and by a string key.

Every commit has a delete file for the whole table and a data file for each partition, as streams
of changes leave them: each data file is newer than some deletes and older than others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import frazil
from frazil.format import types as I
from frazil.format.manifests import Content, DataFile
from frazil.format.values import to_bytes

TABLE = "bench.upserted"
DDL = "id bigint, d double, s string, p int"
PARTITIONS = 50
KEYS: Mapping[str, str] = {"a long": "id", "a string": "s"}


@dataclass(frozen=True, slots=True)
class Upserted:
    """The table, and how much its commits change.

    Attributes:
        rows: before the commits.
        changes: of each commit.
    """

    table: frazil.Table
    rows: int
    changes: int

    def commit(self, number: int) -> None:
        """Commit the same changes on the branches of both keys: new values of random rows."""
        ids = np.random.default_rng(number).choice(self.rows, self.changes, replace=False)
        rows = pa.table(
            {
                "id": ids,
                "d": np.full(len(ids), -1.0 - number),
                "s": _names(ids),
                "p": (ids % PARTITIONS).astype(np.int32),
            }
        )
        data = [
            self._file(f"data-{number}-{part}", rows.filter(pc.field("p") == part), part)
            for part in range(PARTITIONS)
        ]
        for column in KEYS.values():
            deletes = self._deletes(f"deletes-{number}-{column}", rows.select([column]))
            self.table.files.row_delta(
                added=[each for each in data if each.record_count],
                added_deletes=[deletes],
                branch=column,
            )

    def _file(self, name: str, rows: pa.Table, partition: int) -> DataFile:
        spec = next(s for s in self.table.metadata.partition_specs if not s.is_unpartitioned)
        return DataFile(**self._written(name, rows), spec_id=spec.spec_id, partition=(partition,))

    def _deletes(self, name: str, keys: pa.Table) -> DataFile:
        spec = next(s for s in self.table.metadata.partition_specs if s.is_unpartitioned)
        ids = tuple(self.table.schema.find_field(column).field_id for column in keys.column_names)
        return DataFile(
            **self._written(name, keys),
            content=Content.EQUALITY_DELETES,
            spec_id=spec.spec_id,
            equality_ids=ids,
        )

    def _written(self, name: str, rows: pa.Table) -> dict[str, Any]:
        fields = [self.table.schema.find_field(column) for column in rows.column_names]
        kinds = [rows.schema.field(f.name).with_metadata(_id_of(f)) for f in fields]
        sink = pa.BufferOutputStream()
        pq.write_table(rows.cast(pa.schema(kinds)), sink)
        content = sink.getvalue().to_pybytes()
        path = f"{self.table.location}/data/upserted-{name}.parquet"
        self.table.io.write(path, content)
        return {
            "file_path": path,
            "record_count": len(rows),
            "file_size_in_bytes": len(content),
            "value_counts": {f.field_id: len(rows) for f in fields},
            "null_value_counts": {f.field_id: 0 for f in fields},
            "lower_bounds": _bounds(fields, rows, "min"),
            "upper_bounds": _bounds(fields, rows, "max"),
        }


def _names(ids: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("name", pc.cast(pa.array(ids), pa.string()), "-")


def _id_of(field: I.NestedField) -> dict[str, str]:
    return {"PARQUET:field_id": str(field.field_id)}


def _bounds(fields: Sequence[I.NestedField], rows: pa.Table, which: str) -> dict[int, bytes]:
    if not len(rows):
        return {}
    ranges = {f: pc.min_max(rows[f.name]).as_py()[which] for f in fields}
    return {f.field_id: to_bytes(f.field_type, value) for f, value in ranges.items()}


def make_table(spark: SparkSession, lake: frazil.Lake, rows: int, changes: int) -> Upserted:
    """The table with a branch for each key, on which nothing is deleted yet."""
    table = lake.create_table(TABLE, DDL, format_version=2)
    with table.update_spec() as change:
        change.add_field("p")
    table.append(
        spark.range(0, rows, 1, 8).selectExpr(
            "id",
            "cast(hash(id) as double) / 1000 as d",
            "concat('name-', cast(id as string)) as s",
            f"cast(id % {PARTITIONS} as int) as p",
        )
    )
    for column in KEYS.values():
        table.create_branch(column)
    return Upserted(table, rows, changes)
