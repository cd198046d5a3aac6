"""Appends: what fits, what is refused, where it goes."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.table import StaticTable
from table_rows import SIMPLE, frame, rows_of

from ci_share import in_circles, one_of_each, only_in_check, only_in_soak
from frazil import ChangeResult
from frazil import types as I
from frazil.errors import (
    ConfigurationError,
    NoSuchRefError,
    SchemaMismatchError,
    ValidationError,
)

ONE = [(1, "a", 0.5)]
TWO = [(2, "b", 1.0)]


@pytest.mark.parametrize("version", [only_in_check(1), only_in_soak(2), 3])
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


def test_a_struct_with_defaults_inside(lake, spark):
    table = lake.create_table("db.t", "id int, s struct<a: int, b: array<int>>", format_version=3)
    with table.update_schema() as change:
        change.add_column("s.c", I.StringType())
    table.append(frame(spark, [(1, (2, [3, None]))], "id int, s struct<a: int, b: array<int>>"))
    ((one, s),) = rows_of(table)
    assert (one, tuple(s)) == (1, (2, [3, None], None))


# What appends and overwrites return: the rows and files that came and went.


@pytest.fixture
def days(lake, spark):
    """Three files of ten rows: ids 0 to 9 on day 0, 10 to 19 on day 1, 20 to 29 on day 2."""
    table = lake.create_table("db.days", "id bigint, day int", partition_by="day")
    table.append(spark.range(30).selectExpr("id", "int(id / 10) as day").coalesce(1))
    return table


def more_rows(spark, count, day=1):
    return spark.range(100, 100 + count).selectExpr("id", f"{day} as day").coalesce(1)


def counts(result: ChangeResult) -> tuple[int | None, ...]:
    return (
        result.rows_inserted,
        result.rows_deleted,
        result.rows_copied,
        result.files_added,
        result.files_removed,
    )


def test_an_append_tells_what_came(days, spark):
    before = days.current_snapshot.snapshot_id
    result = days.append(more_rows(spark, 4))
    assert (result.command, result.snapshot_id) == ("append", before)
    assert counts(result) == (4, 0, 0, 1, 0)
    assert repr(result).startswith("APPEND\n  rows   4 inserted")
    assert not result.changes_nothing


@pytest.mark.parametrize(
    ("where", "mode", "expected"),
    in_circles(
        [
            pytest.param(None, "metadata", (4, 30, 0, 1, 3), id="everything"),
            pytest.param("day = 1", "metadata", (4, 10, 0, 1, 1), id="whole files"),
            # A file that metadata says to match in part is written anew, its rows not looked at.
            pytest.param(
                "id >= 25", "copy-on-write", (None, None, None, 2, 1), id="parts of files"
            ),
            pytest.param("id % 10 = 3", "copy-on-write", (4, 3, 27, 4, 3), id="what Spark finds"),
        ],
        test=1,
    ),
)
def test_an_overwrite_tells_what_came_and_went(days, spark, where, mode, expected):
    result = days.overwrite(more_rows(spark, 4), where=where)
    assert (result.command, result.mode) == ("overwrite", mode)
    files = days.files().count()
    assert counts(result)[:3] == expected[:3]
    assert result.files_removed == expected[4]
    assert files == 3 + result.files_added - result.files_removed


def test_an_overwrite_of_partitions_tells_what_came_and_went(days, spark):
    result = days.overwrite_partitions(more_rows(spark, 4))
    assert counts(result) == (4, 10, 0, 1, 1)
    assert days.overwrite_partitions(more_rows(spark, 4).where("false")).changes_nothing


@pytest.mark.check
def test_rows_that_only_a_look_would_tell_are_not_counted(days, spark):
    days.set_properties({"write.delete.mode": "merge-on-read"})
    days.delete("id in (11, 21)")
    assert days.overwrite_partitions(more_rows(spark, 4)).rows_deleted is None
    assert "some deleted" in repr(days.overwrite(more_rows(spark, 4), where="day = 2"))


# What may be appended: frames of other libraries, tables and scans.


OF_FRAMES = [(1, "a", 0.5), (2, None, None)]
COLUMNS = {"id": [1, 2], "city": ["a", None], "x": [0.5, None]}
FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "arrow": lambda: pa.table(COLUMNS),
}


@pytest.fixture
def table_settings():
    return {"schema": SIMPLE.replace(" not null", "")}


@pytest.mark.parametrize("kind", in_circles(FRAMES, test=1))
def test_frames_of_other_libraries_are_rows(table, kind):
    table.append(FRAMES[kind]())
    table.overwrite(FRAMES[kind](), where="id = 1")
    table.overwrite_partitions(FRAMES[kind]())
    with table.transaction() as tx:
        tx.overwrite(FRAMES[kind]())
    assert rows_of(table) == rows_of(
        frame(table.spark, OF_FRAMES, "id long, city string, x double")
    )


def test_tables_are_made_of_them(lake):
    made = lake.create_table_as_select("db.new", pd.DataFrame(COLUMNS))
    assert rows_of(made) == rows_of(lake.load_table("db.new").replace_as_select(FRAMES["arrow"]()))
    assert made.refresh().scan().count() == 2


def test_tables_and_scans_are_rows(lake, table):
    table.append(FRAMES["arrow"]())
    other = lake.create_table("db.other", SIMPLE.replace(" not null", ""))
    other.append(table)
    other.append(table.scan(where="id = 1"))
    assert [row[0] for row in rows_of(other)] == [1, 1, 2]


UNFIT = {
    "python objects": pl.DataFrame({"id": pl.Series([b"ab"], dtype=pl.Object)}),
    "wide integers": pl.DataFrame({"id": pl.Series([1], dtype=pl.Int128)}),
    "a name twice": pd.DataFrame([[1, 2]], columns=["id", "id"]),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_spark_cannot_hold_is_a_typed_error(lake, table, kind):
    with pytest.raises(ValidationError):
        table.append(UNFIT[kind])
    with pytest.raises(ValidationError):
        lake.create_table_as_select("db.unfit", UNFIT[kind])
    assert table.refresh().metadata.snapshots == ()
    assert not lake.table_exists("db.unfit")


def test_a_frame_without_columns_is_no_table(lake):
    with pytest.raises(ValidationError, match="column"):
        lake.create_table_as_select("db.empty", pd.DataFrame())
    assert not lake.table_exists("db.empty")
