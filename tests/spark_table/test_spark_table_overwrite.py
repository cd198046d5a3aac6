"""Overwrites: which rows go, which stay, and what concurrent commits do to them."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from table_rows import SIMPLE, frame, rows_of
from test_spark_table_position_deletes import written

from ci_share import one_of_each, only_in_check, these
from frazil import col
from frazil.errors import ConflictError, PredicateError
from rival_commits import before_the_commit

ROWS = [
    (1, "a", 0.5), (2, "a", None), (3, "b", 1.5), (4, "b", float("nan")), (5, None, 2.5),
]  # fmt: skip
NEW = [(9, "z", 9.0)]


def same(rows):
    """Rows as text, since NaN is not equal to itself."""
    return sorted(str(row) for row in rows)


# What stays of ROWS, worked out by hand: a row goes only if the predicate is TRUE for it. As Spark
# says, NaN is greater than every number.
KEPT = {
    "id <= 2": {3, 4, 5},
    "city = 'a'": {3, 4, 5},
    "city <> 'a'": {1, 2, 5},
    "not (city = 'a')": {1, 2, 5},
    "city is null": {1, 2, 3, 4},
    "x > 1": {1, 2},
    "not (x > 1)": {2, 3, 4, 5},
    "is_nan(x)": {1, 2, 3, 5},
    "x is null or city = 'b'": {1, 5},
    "city in ('a', 'c') and x is not null": {2, 3, 4, 5},
    "city like 'a%'": {3, 4, 5},
    "id > 100": {1, 2, 3, 4, 5},
    "id > 0": set(),
}
LAYOUTS = {
    "one file": {"coalesce": True},
    "partitions": {"partition_by": ["city"]},
    "buckets": {"partition_by": ["bucket(2, id)"]},
}


# Others of their kind are in CI: of equality, of comparisons, of two conditions.
IN_SOAK = {"city = 'a'", "city <> 'a'", "x > 1", "x is null or city = 'b'"}


@pytest.mark.parametrize(("where", "layout"), one_of_each(KEPT, LAYOUTS, without=IN_SOAK, test=1))
def test_rows_that_match_go(lake, spark, where, layout):
    options = dict(LAYOUTS[layout])
    options.pop("coalesce", None)
    table = lake.create_table("db.t", SIMPLE, **options)
    table.append(frame(spark, ROWS).coalesce(1))
    table.overwrite(frame(spark, NEW), where=where)
    expected = [row for row in ROWS if row[0] in KEPT[where]] + NEW
    assert same(rows_of(table)) == same(expected)
    theirs = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
    assert same((r["id"], r["city"], r["x"]) for r in theirs) == same(expected)


def test_all_rows(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, ROWS), partition_by=["city"])
    table.overwrite(frame(spark, NEW))
    assert rows_of(table) == NEW
    assert table.current_snapshot.operation == "overwrite"
    table.overwrite(frame(spark, []))
    assert rows_of(table) == []
    assert table.current_snapshot.operation == "delete"


def test_whole_files_are_dropped_and_not_rewritten(lake, spark, files):
    table = lake.create_table_as_select("db.t", frame(spark, ROWS), partition_by=["city"])
    before = files()
    table.overwrite(frame(spark, NEW), where=(col("city") == "a") | (col("city") == "b"))
    written = files() - before
    assert [path.split("/")[-2] for path in written] == ["city=z"]
    summary = table.current_snapshot.summary
    assert (summary["deleted-data-files"], summary["added-data-files"]) == ("2", "1")
    assert (summary["deleted-records"], summary["added-records"]) == ("4", "1")


def test_a_predicate_that_does_not_fit(lake, spark, files):
    table = lake.create_table_as_select("db.t", frame(spark, ROWS))
    before = files()
    for where in ("nope = 1", "id = 'x'", "id ="):
        with pytest.raises(PredicateError):
            table.overwrite(frame(spark, NEW), where=where)
    assert files() == before


@pytest.mark.check
def test_evolved_specs_and_schemas(lake, spark):
    table = lake.create_table("db.t", SIMPLE, partition_by=["city"])
    table.append(frame(spark, ROWS[:3]))
    with table.update_spec() as change:
        change.remove_field("city")
        change.add_field("bucket(2, id)")
    with table.update_schema() as change:
        change.rename_column("city", "town")
        change.add_column("n", "int")
        change.delete_column("x")
        change.add_column("x", "string")
    evolved = "id bigint not null, town string, n int, x string"
    table.append(frame(spark, [(7, "a", 1, "q"), (8, "b", 2, "r")], evolved))
    table.overwrite(frame(spark, [(9, "z", 3, "s")], evolved), where="town = 'a' and id >= 2")
    expected = [
        (1, "a", None, None), (3, "b", None, None), (8, "b", 2, "r"), (9, "z", 3, "s"),
    ]  # fmt: skip
    assert rows_of(table) == expected
    # The dropped column of the same name stays dropped in rewritten files.
    table.overwrite(frame(spark, [], evolved), where="x is not null")
    assert rows_of(table) == expected[:2]


def with_deletes(lake, spark):
    """Rows 0 to 9 in one file; 1 and 7 deleted by position, 2 and 8 by equality."""
    table = lake.create_table("db.t", SIMPLE)
    rows = [(i, "ab"[i % 2], float(i)) for i in range(10)]
    table.append(frame(spark, rows).coalesce(1))
    ((path,),) = {tuple(r) for r in table.scan(columns=["_file"]).to_df().collect()}
    ids = pq.read_table(path.removeprefix("file://"))["id"].to_pylist()
    folder = Path(table.location.removeprefix("file://")) / "data"
    places = sorted((path, ids.index(number)) for number in (1, 7))
    table.files.row_delta(added_deletes=[written(folder, "parquet", places)])
    gone = frame(spark, [(2, None, None, "d"), (8, None, None, "d")], f"{SIMPLE}, op string")
    table.apply_changes(gone, keys="id", op="op", mode="equality-deletes")
    assert [row[0] for row in rows_of(table)] == [0, 3, 4, 5, 6, 9]
    return table


# The predicate reaches none, some or all of the deleted rows: none may come back. Ids 0 and 9 are
# outside of the bounds of the equality deletes, which a scan of those ids would leave out.
KEPT_OF_DELETED = {
    "id = 5": [0, 3, 4, 6, 9],
    "id = 0": [3, 4, 5, 6, 9],
    "id > 8": [0, 3, 4, 5, 6],
    "id >= 5": [0, 3, 4],
    "id < 5": [5, 6, 9],
    "id = 2": [0, 3, 4, 5, 6, 9],
    "id in (1, 2, 7)": [0, 3, 4, 5, 6, 9],
    "city = 'b'": [0, 4, 6],
    "x > 3.5": [0, 3],
}


@pytest.mark.check
def test_partitions_of_an_earlier_spec_stay(lake, spark):
    """As in the Java runtime: a dynamic overwrite replaces partitions of the current spec."""
    table = lake.create_table("db.t", "id bigint, p string", partition_by=["p"])
    table.append(spark.sql("select 1L id, 'a' p union all select 2L, 'b'"))
    with table.update_spec() as update:
        update.remove_field("p")
        update.add_field("truncate(1, p)")
    new = spark.sql("select 3L id, 'a' p")
    table.overwrite_partitions(new)
    assert sorted(map(tuple, table.to_df().collect())) == [(1, "a"), (2, "b"), (3, "a")]
    table.overwrite_partitions(new)
    assert table.count() == 3
    table.compact(rewrite_all=True)
    table.refresh().overwrite_partitions(new)
    assert sorted(map(tuple, table.to_df().collect())) == [(2, "b"), (3, "a")]


@pytest.mark.check
def test_deleted_rows_do_not_come_back(lake, spark):
    table = with_deletes(lake, spark)
    first = table.current_snapshot.snapshot_id
    for where, kept in KEPT_OF_DELETED.items():
        table.overwrite(frame(spark, []), where=where)
        assert [row[0] for row in rows_of(table)] == kept, where
        if table.current_snapshot.snapshot_id != first:
            table.rollback_to_snapshot(first)


@pytest.mark.check
def test_a_new_row_is_not_deleted_by_an_old_delete(lake, spark):
    table = with_deletes(lake, spark)
    table.overwrite(frame(spark, [(2, "n", 0.0), (8, "n", 0.0)]), where="id = 0")
    assert [row[0] for row in rows_of(table)] == [2, 3, 4, 5, 6, 8, 9]


def test_a_file_that_another_added_and_that_matches_in_part(lake, spark, files):
    """Nothing of the table was read, so nothing is validated; and yet no row may be lost."""
    table = lake.create_table("db.t", SIMPLE)
    partly = frame(spark, [(2, "o", 0.0), (50, "o", 0.0)]).coalesce(1)
    before_the_commit(table, lambda: lake.load_table("db.t").append(partly))
    with pytest.raises(ConflictError, match="run the operation again"):
        table.overwrite(frame(spark, NEW), where="id < 5")
    assert [row[0] for row in rows_of(lake.load_table("db.t"))] == [2, 50]
    assert len(files()) == 1


def test_a_table_overwritten_by_its_own_rows(lake, spark):
    table = lake.create_table_as_select("db.t", frame(spark, ROWS[:3]), partition_by=["city"])
    changed = table.scan(where="city = 'a'").to_df().selectExpr("id", "city", "id * 10.0D as x")
    table.overwrite(changed, where="city = 'a'")
    assert rows_of(table) == [(1, "a", 10.0), (2, "a", 20.0), (3, "b", 1.5)]


def test_types_that_spark_lacks_survive_a_rewrite(lake, spark, session):
    import frazil
    from frazil import types as I

    fields = [("id", I.LongType()), ("u", I.UUIDType()), ("t", I.TimeType()),
              ("n", I.TimestampNanoType()), ("f", I.FixedType(2))]  # fmt: skip
    schema = frazil.Schema(tuple(frazil.NestedField(i, n, t) for i, (n, t) in enumerate(fields, 1)))
    table = lake.create_table("db.t", schema, format_version=3)
    uuid = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
    rows = [(i, uuid, i * 1_000_001, 10**18 + i, bytearray(b"ab")) for i in range(3)]
    ddl = "id bigint, u string, t bigint, n bigint, f binary"
    table.append(frame(spark, rows, ddl).coalesce(1))
    table.overwrite(frame(spark, [], ddl), where="t >= '00:00:02'")
    assert rows_of(table) == rows[:2]
    session(spark__sql__timeType__enabled="true")
    table.overwrite(frame(spark, [], ddl), where="t >= '00:00:01'")
    assert [row[0] for row in rows_of(table)] == [0]


# overwrite_partitions: the partitions of the new rows are replaced, no others.


OLD_ROWS = [(1, "a", 0.5), (2, "a", 1.0), (3, "b", 1.5), (4, None, 2.0), (5, "c", 2.5)]
REPLACED = {
    "one": ([(9, "a", 0.0)], [3, 4, 5, 9]),
    "a new one": ([(9, "z", 0.0)], [1, 2, 3, 4, 5, 9]),
    "the null one": ([(9, None, 0.0)], [1, 2, 3, 5, 9]),
    "several": ([(8, "a", 0.0), (9, "c", 0.0)], [3, 4, 8, 9]),
    "none": ([], [1, 2, 3, 4, 5]),
}


@pytest.mark.parametrize(
    ("case", "version"),
    these([("one", 1), ("the null one", 3), ("several", 2)], REPLACED, (1, 2, 3), test=1),
)
def test_partitions_of_the_new_rows_go(lake, spark, case, version):
    new, ids = REPLACED[case]
    table = lake.create_table_as_select(
        "db.t", frame(spark, OLD_ROWS), partition_by=["city"], format_version=version
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
    table = lake.create_table_as_select("db.t", frame(spark, OLD_ROWS))
    table.overwrite_partitions(frame(spark, []))
    assert len(rows_of(table)) == 5
    table.overwrite_partitions(frame(spark, OLD_ROWS[:1]))
    assert rows_of(table) == OLD_ROWS[:1]


ODD_TEXTS = (
    "a\x00b", "\u65e5" * 29, "x" * 254, "%" * 100, "", ".", "..", "/", " ", "a", "A",
    "e\u0301", "\u00e9", "\U0001f600" * 12, "\n", "__HIVE_DEFAULT_PARTITION__",
)  # fmt: skip


@pytest.mark.parametrize("layout", ["hive", only_in_check("object-storage")])
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
