"""Appends: what fits, what is refused, where it goes."""

import threading

import pytest
from pyiceberg.table import StaticTable
from table_rows import SIMPLE, frame, rows_of

from ci_share import one_of_each, only_in_soak
from frazil import types as I
from frazil.errors import (
    ConfigurationError,
    NoSuchRefError,
    SchemaMismatchError,
    ValidationError,
)

ONE = [(1, "a", 0.5)]
TWO = [(2, "b", 1.0)]


@pytest.mark.parametrize("version", [1, only_in_soak(2), 3])
def test_rows_of_several_appends(lake, spark, version):
    table = lake.create_table("db.t", SIMPLE, partition_by=["city"], format_version=version)
    table.append(frame(spark, ONE), snapshot_properties={"job": "first"})
    table.append(frame(spark, TWO))
    table.append(frame(spark, []))
    assert rows_of(table) == [*ONE, *TWO]
    first, second, third = (s.summary for s in table.metadata.snapshots)
    assert first["job"] == "first"
    assert [s["total-records"] for s in (first, second, third)] == ["1", "2", "2"]
    theirs = StaticTable.from_metadata(table.metadata_location).scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["city"], r["x"]) for r in theirs) == [*ONE, *TWO]


FITS = {
    "another order": ("x double, id bigint, city string", [(0.5, 1, "a")], ONE),
    "another case": ("ID bigint, City string, X double", ONE, ONE),
    "narrower": ("id int, city string, x float", ONE, ONE),
    "without optional": ("id bigint", [(1,)], [(1, None, None)]),
    "void": ("id bigint, city void", [(1, None)], [(1, None, None)]),
}


@pytest.mark.parametrize("case", FITS)
def test_rows_that_fit(lake, spark, case):
    schema, given, expected = FITS[case]
    table = lake.create_table("db.t", SIMPLE)
    table.append(frame(spark, given, schema))
    assert rows_of(table) == expected


MISFITS = {
    "missing": ("city string, x double", [("a", 0.5)], ["'id' is missing"]),
    "extra": ("id bigint, more int", [(1, 2)], ["no column 'more'"]),
    "wrong type": ("id bigint, x string", [(1, "a")], ["'x' is double"]),
    "wider": ("id bigint, city string, x decimal(3,1)", [], ["'x' is double"]),
    "null": (SIMPLE.replace(" not null", ""), [*ONE, (None, "b", 1.0)], ["'id' is required"]),
    "several": (
        "city int, more int, other string",
        [(1, 2, "c")],
        ["'id' is missing", "'city' is string", "no column 'more'", "no column 'other'"],
    ),
}


@pytest.mark.parametrize(
    ("case", "write"), one_of_each(MISFITS, ["append", "overwrite", "overwrite_partitions"])
)
def test_rows_that_do_not_fit_leave_nothing(lake, spark, files, case, write):
    schema, rows, says = MISFITS[case]
    table = lake.create_table("db.t", SIMPLE, partition_by=["city"])
    with pytest.raises(SchemaMismatchError) as caught:
        getattr(table, write)(frame(spark, rows, schema))
    assert [part for part in says if part not in str(caught.value)] == []
    assert lake.load_table("db.t").current_snapshot is None
    assert not files() | files(".avro")


def test_case_counts_where_the_session_says_so(lake, spark, session):
    table = lake.create_table("db.t", SIMPLE)
    session(spark__sql__caseSensitive="true")
    with pytest.raises(SchemaMismatchError, match="no column 'ID'"):
        table.append(frame(spark, ONE, "ID bigint, city string, x double"))


def test_write_defaults_fill_missing_columns(lake, spark):
    """Rules 31 to 33: the write default at the time of the write, not what it is later."""
    table = lake.create_table("db.t", SIMPLE, format_version=3)
    table.append(frame(spark, ONE))
    with table.update_schema() as change:
        change.add_column("n", "int", default=7)
    with table.update_schema() as change:
        change.update_column("n", default=8)
    table.append(frame(spark, TWO))
    assert rows_of(table) == [(1, "a", 0.5, 7), (2, "b", 1.0, 8)]


def test_branches(lake, spark):
    table = lake.create_table("db.t", SIMPLE)
    table.append(frame(spark, ONE))
    table.create_branch("audit")
    table.append(frame(spark, TWO), branch="audit")
    assert rows_of(table) == ONE
    assert rows_of(table.scan(ref="audit")) == [*ONE, *TWO]
    table.fast_forward("main", "audit")
    assert rows_of(table) == [*ONE, *TWO]
    table.overwrite(frame(spark, ONE), where="id = 2", branch="audit")
    assert rows_of(table.scan(ref="audit")) == [*ONE, *ONE]
    table.overwrite_partitions(frame(spark, TWO), branch="audit")
    assert rows_of(table.scan(ref="audit")) == TWO
    assert rows_of(table) == [*ONE, *TWO]


def test_a_branch_that_is_not_there_or_a_tag(lake, spark, files):
    table = lake.create_table_as_select("db.t", frame(spark, ONE))
    table.create_tag("v1")
    before = files()
    for write in (table.append, table.overwrite, table.overwrite_partitions):
        with pytest.raises(NoSuchRefError, match="nope"):
            write(frame(spark, TWO), branch="nope")
        with pytest.raises(ValidationError, match="tag"):
            write(frame(spark, TWO), branch="v1")
    assert files() == before
    assert rows_of(lake.load_table("db.t")) == ONE


def test_bad_options_are_found_before_rows_are_written(lake, spark, files):
    table = lake.create_table("db.t", SIMPLE)
    with pytest.raises(ConfigurationError, match="no write options"):
        table.append(frame(spark, ONE), options={"nope": "1"})
    with pytest.raises(ValidationError, match="operation"):
        table.append(frame(spark, ONE), snapshot_properties={"operation": "x"})
    assert not files() | files(".avro")


def test_a_staged_write_is_published(lake, spark, session):
    table = lake.create_table("db.t", SIMPLE, properties={"write.wap.enabled": "true"})
    table.append(frame(spark, ONE))
    session(spark__wap__id="job-7")
    table.append(frame(spark, TWO))
    assert rows_of(table) == ONE
    staged = table.metadata.snapshots[-1]
    assert staged.summary["wap.id"] == "job-7"
    assert rows_of(table.scan(snapshot_id=staged.snapshot_id)) == [*ONE, *TWO]
    table.publish_changes("job-7")
    assert rows_of(table) == [*ONE, *TWO]
    with pytest.raises(ValidationError, match="job-7"):
        table.append(frame(spark, TWO), branch="audit")
    session(spark__wap__branch="audit")
    with pytest.raises(ValidationError, match="set one"):
        table.append(frame(spark, TWO))


def test_a_session_that_works_on_a_branch(lake, spark, session):
    """Reads and writes go to the branch, which the first write makes."""
    table = lake.create_table("db.t", SIMPLE, properties={"write.wap.enabled": "true"})
    table.append(frame(spark, ONE))
    first = table.current_snapshot.snapshot_id
    session(spark__wap__branch="audit")
    assert rows_of(table) == ONE
    table.overwrite(frame(spark, TWO), where="id = 1")
    table.append(frame(spark, ONE))
    assert rows_of(table) == [*ONE, *TWO]
    assert rows_of(table.scan(ref="main")) == ONE
    assert table.scan(snapshot_id=first).count() == len(ONE)
    assert set(table.metadata.refs) == {"main", "audit"}
    with pytest.raises(ValidationError, match="audit"):
        table.append(frame(spark, ONE), branch="other")
    table.set_properties({"write.wap.enabled": "false"})
    assert rows_of(table) == ONE


def test_many_writers(lake, spark):
    """Appends never conflict: the slower one is made again from the newer metadata."""
    table = lake.create_table("db.t", SIMPLE, properties={"commit.retry.num-retries": "20"})
    failures = []

    def work(number):
        try:
            lake.load_table("db.t").append(frame(spark, [(number, "w", 0.0)]))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [row[0] for row in rows_of(table.refresh())] == [0, 1, 2, 3]


def test_progress(lake, spark):
    seen = []
    table = lake.create_table("db.t", SIMPLE)
    table.append(frame(spark, ONE), on_progress=lambda p: seen.append((p.stage, p.records)))
    assert seen[0] == ("writing", 0)
    assert seen[-1] == ("done", 1)


def test_a_struct_with_defaults_inside(lake, spark):
    table = lake.create_table("db.t", "id int, s struct<a: int, b: array<int>>", format_version=3)
    with table.update_schema() as change:
        change.add_column("s.c", I.StringType())
    table.append(frame(spark, [(1, (2, [3, None]))], "id int, s struct<a: int, b: array<int>>"))
    ((one, s),) = rows_of(table)
    assert (one, tuple(s)) == (1, (2, [3, None], None))
