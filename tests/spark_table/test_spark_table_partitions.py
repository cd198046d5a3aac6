"""overwrite_partitions: the partitions of the new rows are replaced, no others."""

import pytest
from pyiceberg.table import StaticTable
from table_rows import SIMPLE, frame, rows_of

from ci_share import these

ROWS = [(1, "a", 0.5), (2, "a", 1.0), (3, "b", 1.5), (4, None, 2.0), (5, "c", 2.5)]
CASES = {
    "one": ([(9, "a", 0.0)], [3, 4, 5, 9]),
    "a new one": ([(9, "z", 0.0)], [1, 2, 3, 4, 5, 9]),
    "the null one": ([(9, None, 0.0)], [1, 2, 3, 5, 9]),
    "several": ([(8, "a", 0.0), (9, "c", 0.0)], [3, 4, 8, 9]),
    "none": ([], [1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize(
    ("case", "version"),
    these([("one", 1), ("the null one", 3), ("several", 2)], CASES, (1, 2, 3), test=1),
)
def test_partitions_of_the_new_rows_go(lake, spark, case, version):
    new, ids = CASES[case]
    table = lake.create_table_as_select(
        "db.t", frame(spark, ROWS), partition_by=["city"], format_version=version
    )
    commits = len(table.metadata.snapshots)
    table.overwrite_partitions(frame(spark, new), snapshot_properties={"job": "daily"})
    assert [row[0] for row in rows_of(table)] == ids
    if not new:
        assert len(table.metadata.snapshots) == commits
        return
    summary = table.current_snapshot.summary
    assert (summary["operation"], summary["replace-partitions"]) == ("overwrite", "true")
    assert summary["job"] == "daily"
    theirs = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    assert sorted(theirs.column("id").to_pylist()) == ids


def test_a_transformed_partition(lake, spark):
    table = lake.create_table("db.t", SIMPLE, partition_by=["truncate(10, id)"])
    table.append(frame(spark, [(i, "a", 0.0) for i in (1, 9, 11, 19, 25)]))
    table.overwrite_partitions(frame(spark, [(12, "n", 0.0)]))
    assert [row[0] for row in rows_of(table)] == [1, 9, 12, 25]


def test_an_unpartitioned_table_is_replaced_whole(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, ROWS))
    table.overwrite_partitions(frame(spark, []))
    assert len(rows_of(table)) == 5
    table.overwrite_partitions(frame(spark, ROWS[:1]))
    assert rows_of(table) == ROWS[:1]


ODD_TEXTS = (
    "a\x00b", "\u65e5" * 29, "x" * 254, "%" * 100, "", ".", "..", "/", " ", "a", "A",
    "e\u0301", "\u00e9", "\U0001f600" * 12, "\n", "__HIVE_DEFAULT_PARTITION__",
)  # fmt: skip


@pytest.mark.parametrize("layout", ["hive", "object-storage"])
def test_partition_values_that_no_file_name_holds(spark, lake, tmp_path, layout):
    rows = list(enumerate([*ODD_TEXTS, None]))
    df = spark.createDataFrame(rows, "id int, s string").coalesce(1)
    table = lake.create_table(
        "db.odd", df, partition_by=["s"],
        properties={"write.object-storage.enabled": str(layout != "hive").lower()},
    )  # fmt: skip
    table.append(df)
    assert sorted(map(tuple, table.to_df().collect()), key=lambda r: r[0]) == rows
    plan = table.scan().plan()
    assert plan.file_count == len(rows)
    for text in ("a", "A", "e\u0301"):
        found = table.scan(where=f"s = '{text}'")
        assert found.plan().file_count == 1
        assert [row["s"] for row in found.to_df().collect()] == [text]
    for path in (tmp_path / "lake").rglob("*"):
        assert len(path.name.encode()) <= 255
