"""Deletes by place that Frazil writes: the Java runtime reads them and adds its own to them."""

from __future__ import annotations

from typing import Any

import pytest

from ci_share import only_in_interop, only_in_soak
from frazil.planning.plan import plan
from frazil.spark.delete_files import write
from frazil.spark.lake import Lake
from frazil.spark.session import costs


@pytest.mark.parametrize(
    ("version", "granularity", "way"),
    [
        only_in_soak(2, "file", "driver"),
        only_in_interop(2, "file", "executors"),
        (2, "partition", "driver"),
        only_in_soak(2, "partition", "executors"),
        only_in_soak(3, "file", "driver"),
        (3, "file", "executors"),
    ],
)
def test_java_reads_written_deletes(
    spark: Any,
    sql_lake: Lake,
    monkeypatch: pytest.MonkeyPatch,
    version: int,
    granularity: Any,
    way: str,
) -> None:
    """Java leaves out the same rows, tells the same places, and deletes more of the same files."""
    if way == "executors":
        monkeypatch.setattr(costs, "DELETED_ROWS", 0)
    short = f"db.written_deletes_{version}_{granularity}_{way}"
    name = f"java_sql.{short}"
    table = sql_lake.create_table(
        short,
        "id bigint, part bigint",
        partition_by=["part"],
        format_version=version,
        properties={"write.delete.mode": "merge-on-read"},
    )
    for start in (0, 300):
        rows = spark.range(start, start + 300).selectExpr("id", "id % 2 as part")
        table.append(rows.coalesce(1))
    expected = set(range(600))
    for step in (7, 5):
        table.refresh()
        found = plan(table.metadata, table.current_snapshot, table.io)
        places = []
        for ordinal, path in found.files.select("ordinal", "file_path").iter_rows():
            ids = spark.read.parquet(path).select("id").toArrow()["id"].to_pylist()
            places += [(ordinal, n) for n in range(0, len(ids), step)]
            expected -= set(ids[::step])
        written = write.write_deletes(
            spark.createDataFrame(places, "file bigint, pos bigint"),
            plan=found,
            metadata=table.metadata,
            io=table.io,
            granularity=granularity,
        )
        table.files.row_delta(
            added_deletes=written.added,
            removed_deletes=written.removed,
            referenced_data_files=written.referenced_paths,
        )
        spark.sql(f"refresh table {name}")
        assert {row.id for row in spark.table(name).collect()} == expected
    theirs = spark.table(f"{name}.position_deletes").select("file_path", "pos").distinct()
    ours = (
        table.refresh().inspect.dataframes.position_deletes().select("file_path", "pos").distinct()
    )
    assert sorted(theirs.collect()) == sorted(ours.collect())

    spark.sql(f"delete from {name} where id >= 100 and id < 120")
    expected -= set(range(100, 120))
    assert {row.id for row in spark.table(name).collect()} == expected
    assert {row.id for row in table.refresh().scan().to_df().collect()} == expected
    if version == 3:
        deletes = table.inspect.delete_files()["referenced_data_file"].to_list()
        assert len(deletes) == len(set(deletes)) == 4
