"""Deletes by the Java runtime, and equality deletes: Frazil reads the rows that are left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from interop_java import java_table

from ci_share import one_of_each
from frazil.spark.lake import Lake

MERGE_ON_READ = ", ".join(
    f"'write.{operation}.mode' = 'merge-on-read'" for operation in ("delete", "update", "merge")
)
SPECS = {"unpartitioned": "", "partitioned": "partitioned by (bucket(2, id))"}


def _read(table: Any, where: str | None = None) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.refresh().scan(where=where).to_df().collect())


def _java(spark: Any, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in spark.table(name).collect())


@pytest.mark.parametrize(("version", "spec"), one_of_each([2, 3], SPECS))
def test_positions_and_vectors(spark: Any, sql_lake: Lake, version: int, spec: str) -> None:
    """Position deletes in v2, deletion vectors in v3, by DELETE, UPDATE and MERGE."""
    short = f"db.deletes_{version}_{spec}"
    name = f"java_sql.{short}"
    spark.sql(
        f"create table {name} (id int, v string) using iceberg {SPECS[spec]} "
        f"tblproperties ('format-version' = '{version}', {MERGE_ON_READ})"
    )
    table = sql_lake.load_table(short)
    rows = {number: f"v{number}" for number in range(20)}
    first = spark.createDataFrame(list(rows.items()), "id int, v string")
    table.append(first)

    spark.sql(f"delete from {name} where id in (3, 4, 11)")
    for number in (3, 4, 11):
        del rows[number]
    assert _read(table) == sorted(rows.items()) == _java(spark, name)
    assert table.current_snapshot.summary["operation"] in ("overwrite", "delete")
    assert int(table.current_snapshot.summary["total-position-deletes"]) == 3

    table.append(spark.createDataFrame([(3, "again")], "id int, v string"))
    rows[3] = "again"
    spark.sql(f"update {name} set v = 'changed' where id = 5")
    rows[5] = "changed"
    assert _read(table) == sorted(rows.items()) == _java(spark, name)

    changes = spark.createDataFrame([(6, "merged"), (30, "inserted")], "id int, v string")
    changes.createOrReplaceTempView("delete_changes")
    spark.sql(
        f"merge into {name} as t using delete_changes as c on t.id = c.id "
        "when matched then update set v = c.v when not matched then insert *"
    )
    rows |= {6: "merged", 30: "inserted"}
    assert _read(table) == sorted(rows.items()) == _java(spark, name)
    assert _read(table, "id >= 5 and id < 7") == [(5, "changed"), (6, "merged")]
    assert table.scan().count() == len(rows)

    # Frazil rewrites files that carry deletes; deleted rows must not come back.
    table.overwrite(spark.createDataFrame([(40, "new")], "id int, v string"), where="id = 7")
    del rows[7]
    rows[40] = "new"
    assert _read(table) == sorted(rows.items()) == _java(spark, name)


def _delete_by_keys(
    spark: Any, name: str, folder: Path, columns: dict[str, tuple[int, pa.Array]]
) -> None:
    """Commit an equality delete file of all given columns through the Java library."""
    jvm = spark._jvm
    schema = pa.schema(
        [
            pa.field(column, values.type, metadata={"PARQUET:field_id": str(field_id)})
            for column, (field_id, values) in columns.items()
        ]
    )
    keys = pa.table([values for _, values in columns.values()], schema=schema)
    path = folder / f"equality-{len(list(folder.iterdir()))}.parquet"
    pq.write_table(keys, path)
    table = java_table(spark, name)
    ids = spark.sparkContext._gateway.new_array(jvm.int, len(columns))
    for index, (field_id, _) in enumerate(columns.values()):
        ids[index] = field_id
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(table.spec())
    deletes = (
        builder.ofEqualityDeletes(ids)
        .withFormat("PARQUET")
        .withPath(str(path))
        .withFileSizeInBytes(path.stat().st_size)
        .withRecordCount(keys.num_rows)
        .build()
    )
    table.newRowDelta().addDeletes(deletes).commit()


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes(spark: Any, sql_lake: Lake, tmp_path: Path, version: int) -> None:
    """By one column and by two, NULL keys among them; only what is older goes."""
    table = sql_lake.create_table(
        f"db.equality_{version}", "id int, v string, n long", format_version=version
    )
    name = f"java_sql.db.equality_{version}"
    columns = "id int, v string, n long"
    table.append(
        spark.createDataFrame(
            [(1, "a", 1), (2, "b", None), (3, None, 3), (4, "d", 4), (5, "e", None)], columns
        )
    )
    _delete_by_keys(spark, name, tmp_path, {"id": (1, pa.array([1, 99], pa.int32()))})
    left: list[tuple[Any, ...]] = [(2, "b", None), (3, None, 3), (4, "d", 4), (5, "e", None)]
    assert sorted(_read(table), key=repr) == sorted(left, key=repr)

    table.append(spark.createDataFrame([(1, "again", 1)], columns))
    left.append((1, "again", 1))
    assert sorted(_read(table), key=repr) == sorted(left, key=repr)

    keys = {
        "v": (2, pa.array(["b", None, "d"], pa.string())),
        "n": (3, pa.array([None, 3, 999], pa.int64())),
    }
    _delete_by_keys(spark, name, tmp_path, keys)
    left.remove((2, "b", None))
    left.remove((3, None, 3))
    assert sorted(_read(table), key=repr) == sorted(left, key=repr)
    assert sorted(_java(spark, name), key=repr) == sorted(left, key=repr)
    assert _read(table, "id < 3") == [(1, "again", 1)]
    assert table.scan(columns=["v"]).to_df().count() == len(left)
    assert table.scan().count() == len(left)
