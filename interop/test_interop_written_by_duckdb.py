"""What DuckDB writes through a REST catalog, read by Frazil; and turns on one table."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from interop_cases import GEOSPATIAL, PRIMITIVES, TypeCase, in_turn, schema_json, shown_rows
from interop_engines import DuckDB, duckdb_type
from interop_limits import (
    DUCKDB_BINARY_PARTITIONS,
    DUCKDB_CREATES,
    DUCKDB_INSERTS,
    DUCKDB_LOSES,
)
from interop_tables import Engines
from pyspark.sql import DataFrame
from test_interop_turns import Pair, Shared

from ci_share import one_of_each, only_in_soak
from frazil.errors import InvalidManifestError
from frazil.format.schema import Schema
from frazil.spark.lake import Lake

Rows = list[tuple[Any, ...]]


def _as_written(case: TypeCase) -> TypeCase:
    """A type without the specs and filters that tests of their own have."""
    if case.name == "binary":
        return replace(case, specs=(("bucket(4, v)",),))
    return replace(case, filters=()) if case.name == "variant" else case


CASES = {case.name: case for case in (*PRIMITIVES, *GEOSPATIAL) if case.name != "fixed_identity"}
WRITTEN = [
    in_turn(_as_written(case), version, versions=(2, 3))
    for case in CASES.values()
    for version in (2, 3)
    if version in case.versions and case.name not in DUCKDB_CREATES
]
VERSIONS = pytest.mark.parametrize("version", [2, 3])
SPECS = {"unpartitioned": "", "partitioned": "bucket(2, id), truncate(1, v)"}


def _sorted(rows: Iterable[Any]) -> Rows:
    return sorted((tuple(row) for row in rows), key=repr)


def _read(table: Any, **scan: Any) -> Rows:
    return _sorted(table.refresh().scan(**scan).to_df().collect())


def _java(spark: Any, name: str) -> Rows:
    return _sorted(spark.table(f"java_sql.db.{name}").collect())


def _create(duck: DuckDB, name: str, columns: str, version: int, spec: str = "") -> str:
    """A new table of DuckDB's; gives its name in DuckDB."""
    partitioned = f"partitioned by ({spec})" if spec else ""
    options = f"with ('format-version' = '{version}')"
    duck.run(f"create table lake.db.{name} ({columns}) {partitioned} {options}")
    return f"lake.db.{name}"


# -- types and transforms --------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "version"), WRITTEN)
def test_rows_and_filters(
    rest_lake: DuckDB, engines: Engines, case: TypeCase, version: int
) -> None:
    """In its specs, each of which comes with its rows in one commit.

    Where a filter misses rows, another engine misses the same.
    """
    name = f"d{version}_{case.name}"
    table = _create(rest_lake, name, f"id int, v {duckdb_type(case.type)}", version)
    for stage, spec in enumerate(case.stages):
        with rest_lake.transaction():
            if spec:
                rest_lake.run(f"alter table {table} set partitioned by ({', '.join(spec)})")
            rest_lake.insert(table, case, case.rows_of_stage(stage))
    results = engines.read("frazil", name, case, case.filters)
    assert shown_rows(results[0]) == shown_rows(case.rows)
    for wanted, found in zip(case.filters, results[1:], strict=True):
        expected = shown_rows(row for row in case.rows if wanted.keeps(row[1]))
        loss = DUCKDB_LOSES.get((case.name, wanted.op))
        if loss is None:
            assert shown_rows(found) == expected, wanted
            continue
        assert set(shown_rows(found)) < set(expected), f"{wanted} is answered rightly"
        theirs = engines.read(loss.witness, name, case, [wanted])[1]
        assert shown_rows(found) == shown_rows(theirs), wanted


@pytest.mark.interop
@pytest.mark.parametrize("name", DUCKDB_CREATES)
def test_types_that_duckdb_does_not_create(
    rest_lake: DuckDB, sql_lake: Lake, engines: Engines, name: str
) -> None:
    """In Frazil's tables it writes some of them."""
    case = CASES[name]
    with pytest.raises(duckdb.Error, match=DUCKDB_CREATES[name].message):
        _create(rest_lake, "refused", f"v {case.type}", 3)
    sql_lake.create_table(f"db.d_{name}", Schema.from_json(schema_json(case)), format_version=3)
    rows = case.rows_of_stage(0)
    if name in DUCKDB_INSERTS:
        with pytest.raises(duckdb.Error, match=DUCKDB_INSERTS[name].message):
            rest_lake.run(f"insert into lake.db.d_{name} values (1, null)")
        return
    rest_lake.insert(f"lake.db.d_{name}", case, rows)
    assert shown_rows(engines.read("frazil", f"d_{name}", case, ())[0]) == shown_rows(rows)


@pytest.mark.parametrize("spec", ["v", "truncate(2, v)"])
def test_binary_partitions(rest_lake: DuckDB, sql_lake: Lake, spec: str) -> None:
    """DuckDB writes partitions whose bytes are text."""
    name = f"binary_{spec[0]}"
    table = _create(rest_lake, name, "id int, v blob", 2, spec)
    with pytest.raises(duckdb.Error, match=DUCKDB_BINARY_PARTITIONS.message):
        rest_lake.run(rf"insert into {table} values (1, '\x80\x01'::blob)")
    rest_lake.run(f"insert into {table} values (2, 'abc'::blob), (3, null)")
    assert _read(sql_lake.load_table(f"db.{name}")) == [(2, b"abc"), (3, None)]


def test_null_variant(rest_lake: DuckDB, sql_lake: Lake) -> None:
    """DuckDB writes NULL as a variant that holds null, which is not NULL."""
    table = _create(rest_lake, "null_variant", "id int, v variant", 3)
    rest_lake.run(f"insert into {table} values (1, null)")
    assert rest_lake.run(f"select v is null from {table}") == [(True,)]
    ours = sql_lake.load_table("db.null_variant")
    (file,) = ours.inspect.dataframes.data_files().collect()
    stored = pq.read_table(file.file_path).column("v").to_pylist()
    assert [value["value"] for value in stored] == [b"\x00"]
    (row,) = ours.to_df().selectExpr("v is null", "is_variant_null(v)").collect()
    assert tuple(row) == (False, True)


@pytest.mark.interop
def test_version_1(rest_lake: DuckDB, sql_lake: Lake, spark: Any) -> None:
    """DuckDB's snapshots have sequence numbers, which v1 has not."""
    ours = sql_lake.create_table("db.duck_1", "id int", format_version=1)
    ours.append(spark.createDataFrame([(1,)], "id int"))
    with pytest.raises(duckdb.Error, match="Sequence number must be 0 in v1"):
        rest_lake.run("insert into lake.db.duck_1 values (2)")
    with pytest.raises(duckdb.Error, match="Delete from Iceberg V1 tables"):
        rest_lake.run("delete from lake.db.duck_1")
    assert _read(ours) == [(1,)]


# -- nested columns, schemas and specs that change -------------------------------------------------


@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_nested_columns_and_evolution(
    rest_lake: DuckDB, sql_lake: Lake, spark: Any, version: int
) -> None:
    name = f"nested_{version}"
    columns = (
        "id int not null, f float, d decimal(9, 2), gone int, s struct(a int, b varchar), "
        "l struct(x bigint)[], m map(varchar, date[])"
    )
    table = _create(rest_lake, name, columns, version)
    rest_lake.run(
        f"insert into {table} values "
        "(1, 1.5, 14.20, 7, {'a': 1, 'b': 'x'}, [{'x': 1}, null, {'x': null}], "
        "map{'k': [date '2020-01-02', null], 'n': null}), "
        "(2, null, null, null, null, null, null), "
        "(3, -0.0, -0.01, 8, {'a': null, 'b': null}, [], map{})"
    )
    ours = sql_lake.load_table(f"db.{name}")
    entries = {"k": [date(2020, 1, 2), None], "n": None}
    rows: Rows = [
        (1, 1.5, Decimal("14.20"), 7, (1, "x"), [(1,), None, (None,)], entries),
        (2, None, None, None, None, None, None),
        (3, -0.0, Decimal("-0.01"), 8, (None, None), [], {}),
    ]
    assert _read(ours, where="s.a = 1") == rows[:1]
    assert sorted(tuple(row) for row in ours.to_df().collect()) == rows

    for change in (
        "alter id type bigint",
        "alter f type double",
        "alter d type decimal(18, 2)",
        "alter id drop not null",
        "rename m to entries",
        "drop column gone",
        "add column gone varchar",
        "add column s.c double",
        "rename column s.b to text",
        "drop column s.a",
        "set partitioned by (truncate(1, gone), bucket(2, id))",
    ):
        rest_lake.run(f"alter table {table} {change}")
    rest_lake.run(
        f"insert into {table} by name select 5000000000 as id, 1e300 as f, "
        "1234567890.12 as d, {'text': 'y', 'c': 0.5} as s, 'new' as gone"
    )
    rest_lake.run(f"alter table {table} reset partitioned by")
    rest_lake.run(f"insert into {table} (gone) values ('last')")
    expected: Rows = [
        (1, 1.5, Decimal("14.20"), ("x", None), [(1,), None, (None,)], entries, None),
        (2, None, None, None, None, None, None),
        (3, -0.0, Decimal("-0.01"), (None, None), [], {}, None),
        (5_000_000_000, 1e300, Decimal("1234567890.12"), ("y", 0.5), None, None, "new"),
        (None, None, None, None, None, None, "last"),
    ]
    assert _read(ours) == _java(spark, name)
    found = {row.id: tuple(row) for row in ours.refresh().to_df().collect()}
    assert found == {row[0]: row for row in expected}
    assert _read(ours, where="gone = 'new'", columns=["id"]) == [(5_000_000_000,)]
    assert _read(ours, where="gone is null", columns=["id"]) == [(1,), (2,), (3,)]
    assert not ours.spec.fields

    for refused, message in (
        ("alter id set not null", "Cannot change nullable column to non-nullable"),
        ("set partitioned by (s.text)", 'Column "text" not found in schema'),
        ("set sorted by (id)", "Alter table type not supported: SET_SORTED_BY"),
    ):
        with pytest.raises(duckdb.Error, match=message):
            rest_lake.run(f"alter table {table} {refused}")


def test_defaults_and_promoted_dates(rest_lake: DuckDB, sql_lake: Lake) -> None:
    """What v3 brings, in a table that was v2."""
    table = _create(rest_lake, "upgraded", "id int, t date", 2)
    rest_lake.run(f"insert into {table} values (1, date '1969-12-31'), (2, null)")
    with pytest.raises(duckdb.Error, match="non-null DEFAULT values are not supported for <V3"):
        rest_lake.run(f"alter table {table} add column n int default 5")
    for change in (
        "set ('format-version' = 3)",
        "add column n int default 5",
        "alter t type timestamp",
        "alter n set default 6",
    ):
        rest_lake.run(f"alter table {table} {change}")
    rest_lake.run(f"insert into {table} (id) values (3)")
    rest_lake.run(f"insert into {table} values (4, '2020-01-02 03:04:05.000006', null)")
    ours = sql_lake.load_table("db.upgraded")
    assert _read(ours) == [
        (1, datetime(1969, 12, 31), 5),
        (2, None, 5),
        (3, None, 6),
        (4, datetime(2020, 1, 2, 3, 4, 5, 6), None),
    ]
    assert _read(ours, where="n = 5", columns=["id"]) == [(1,), (2,)]
    assert _read(ours, where="t < '1970-01-01'", columns=["id"]) == [(1,)]


# -- deletes ---------------------------------------------------------------------------------------

STEPS: tuple[tuple[str, Iterable[int], dict[int, str | None]], ...] = (
    (
        "insert into {t} select i, chr((97 + i % 3)::int) from range(10) as r(i)",
        (),
        {number: "abc"[number % 3] for number in range(10)},
    ),
    ("delete from {t} where id in (2, 3)", (2, 3), {}),
    # Of a file that has deletes already.
    ("delete from {t} where id = 4", (4,), {}),
    ("update {t} set v = null where id = 5", (), {5: None}),
    (
        "merge into {t} as t using (values (6, 'm'), (77, 'n')) as s(id, v) on t.id = s.id "
        "when matched then update set v = s.v when not matched then insert",
        (),
        {6: "m", 77: "n"},
    ),
    (
        "merge into {t} as t using (values (7, 'm'), (78, 'o')) as s(id, v) on t.id = s.id "
        "when matched then delete when not matched then insert",
        (7,),
        {78: "o"},
    ),
    ("update {t} set id = 105, v = 'z' where id = 5", (5,), {105: "z"}),
    ("delete from {t}", range(1000), {}),
    ("insert into {t} values (1, 'again')", (), {1: "again"}),
)


@pytest.mark.parametrize(("version", "spec"), one_of_each([2, 3], SPECS))
def test_positions_and_vectors(rest_lake: DuckDB, sql_lake: Lake, version: int, spec: str) -> None:
    """Position deletes in v2, deletion vectors in v3, by each statement; in every snapshot."""
    name = f"duck_deletes_{version}_{spec}"
    table = _create(rest_lake, name, "id int, v varchar", version, SPECS[spec])
    ours = sql_lake.load_table(f"db.{name}")
    rows: dict[int, str | None] = {}
    history: dict[int, Rows] = {}
    for statement, gone, added in STEPS:
        rest_lake.run(statement.format(t=table))
        rows = {number: value for number, value in rows.items() if number not in gone} | added
        history[ours.refresh().metadata.snapshots[-1].snapshot_id] = _sorted(rows.items())
    assert len(history) == len(STEPS)
    frames = (
        ours.scan(snapshot_id=number).to_df().selectExpr(f"{number} as snapshot", "id", "v")
        for number in history
    )
    found: dict[int, Rows] = {number: [] for number in history}
    for snapshot, *row in reduce(DataFrame.unionAll, frames).collect():
        found[snapshot].append(tuple(row))
    assert {number: _sorted(rows) for number, rows in found.items()} == history
    written = ours.inspect.dataframes.all_delete_files().select("file_format").distinct().collect()
    assert [row.file_format for row in written] == ["PARQUET" if version == 2 else "PUFFIN"]


@VERSIONS
def test_many_positions(rest_lake: DuckDB, sql_lake: Lake, version: int) -> None:
    """Scattered rows and a range, in a file of many row groups."""
    name = f"many_{version}"
    table = _create(rest_lake, name, "id int, n bigint", version)
    rest_lake.run(f"insert into {table} select i, i % 7 from range(300000) as r(i)")
    rest_lake.run(f"delete from {table} where id % 3 = 0")
    rest_lake.run(f"delete from {table} where id between 50000 and 150000")
    left = [number for number in range(300_000) if number % 3 and not 50_000 <= number <= 150_000]
    ours = sql_lake.load_table(f"db.{name}")
    (row,) = ours.to_df().selectExpr("count(*)", "sum(id)", "sum(n)").collect()
    assert tuple(row) == (len(left), sum(left), sum(number % 7 for number in left))
    edges = _read(ours, where="id > 49997 and id < 150003", columns=["id"])
    assert sorted(edges) == [(49_999,), (150_001,), (150_002,)]


@VERSIONS
def test_deletes_in_an_earlier_spec(
    rest_lake: DuckDB, sql_lake: Lake, spark: Any, version: int
) -> None:
    """DuckDB files the deletes under the current spec, where they are not the data file's.

    In v2 they delete nothing; v3 has a reader refuse them.
    """
    name = f"earlier_{version}"
    table = _create(rest_lake, name, "id int, v varchar", version, "bucket(2, id)")
    rest_lake.run(f"insert into {table} values (1, 'a'), (2, 'b')")
    rest_lake.run(f"alter table {table} set partitioned by (v)")
    rest_lake.run(f"delete from {table} where id = 1")
    ours = sql_lake.load_table(f"db.{name}")
    if version == 2:
        assert _read(ours) == [(1, "a"), (2, "b")] == _java(spark, name)
        return
    with pytest.raises(InvalidManifestError, match="their partitions differ"):
        _read(ours)
    with pytest.raises(Exception, match="Mismatched partition specs"):
        _java(spark, name)


INSERT = "insert into {t} (id, v) values (9, 'b')"
DELETE = "delete from {t} where id = 1"
REFUSED = {
    "files of no spec": ([], "v", DELETE, "entries without partition info"),
    "a field of two specs": (["bucket(2, id)"], "v", DELETE, 'duplicate name "id_bucket"'),
    "void": (["void(id)"], None, DELETE, "Cannot use this transform type"),
    "nested source": (["s.x"], None, INSERT, "source column with id 5 not found"),
    "no Avro name": (["truncate(1, `a b`)"], None, INSERT, "Invalid Avro identifier"),
    "copy-on-write": ([], None, DELETE, "only supports merge-on-read"),
    "two actions": (
        [],
        None,
        "merge into {t} as t using (values (1)) as s(id) on t.id = s.id "
        "when matched and t.v is null then delete when matched then update set v = 'c'",
        "only supports a single UPDATE/DELETE action",
    ),
}
"""Frazil's tables by spec, a field added after the first row, and what DuckDB does not do to it."""


@pytest.mark.parametrize("case", REFUSED)
def test_refused_changes(rest_lake: DuckDB, sql_lake: Lake, spark: Any, case: str) -> None:
    """What DuckDB does not write leaves the table as it was."""
    spec, added, statement, message = REFUSED[case]
    name = "refused_" + case.replace(" ", "_").replace("-", "_")
    mode = "copy-on-write" if case == "copy-on-write" else "merge-on-read"
    ours = sql_lake.create_table(
        f"db.{name}",
        "id int, v string, s struct<x: int>, `a b` string",
        partition_by=spec,
        properties={"write.delete.mode": mode, "format-version": "2"},
    )
    ours.append(spark.sql("select 1 as id, 'a' as v, named_struct('x', 1) as s, 'c' as `a b`"))
    if added is not None:
        with ours.update_spec() as change:
            change.add_field(added)
    with pytest.raises(duckdb.Error, match=message):
        rest_lake.run(statement.format(t=f"lake.db.{name}"))
    assert _read(ours) == [(1, "a", (1,), "c")]


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, only_in_soak(3)])
def test_turns(rest_lake: DuckDB, sql_lake: Lake, spark: Any, version: int) -> None:
    """A table of Frazil's that three engines write, each on what the others left."""
    name = f"duck_turns_{version}"
    ours = sql_lake.create_table(
        f"db.{name}", "id int, v string", partition_by=["bucket(3, id)"], format_version=version
    )
    shared = Shared(spark, ours, f"java_sql.db.{name}")
    theirs = f"lake.db.{name}"

    def check(*rows: Pair) -> None:
        assert _read(ours, columns=["id", "v"]) == _sorted(rows)
        assert _sorted(rest_lake.run(f"select id, v from {theirs}")) == _sorted(rows)

    ours.append(shared.frame((1, "a"), (2, None)))
    rest_lake.run(f"insert into {theirs} values (3, 'c'), (4, null)")
    shared.java("insert into {t} values (5, 'e')")
    ours.refresh().append(shared.frame((6, "f")))
    check((1, "a"), (2, None), (3, "c"), (4, None), (5, "e"), (6, "f"))
    rest_lake.run(f"delete from {theirs} where id in (1, 3, 5)")
    # Frazil rewrites files that carry deletes; deleted rows must not come back.
    ours.refresh().overwrite(shared.frame((7, "g")), where="id = 2")
    check((4, None), (6, "f"), (7, "g"))
    rest_lake.run(f"update {theirs} set v = 'd' where id = 4")
    shared.java("delete from {t} where id = 6")
    check((4, "d"), (7, "g"))

    with ours.refresh().update_schema() as schema:
        schema.add_column("extra", "long")
        schema.rename_column("v", "w")
    rest_lake.run(f"insert into {theirs} (extra, id, w) values (80, 8, 'h')")
    with ours.refresh().update_schema() as schema:
        schema.rename_column("w", "v")
    check((4, "d"), (7, "g"), (8, "h"))
    assert _read(ours, where="extra = 80") == [(8, "h", 80)]
    shared.check((4, "d"), (7, "g"), (8, "h"))
    if version == 3:
        shared.check_metadata_tables()
    ours.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1)
    check((4, "d"), (7, "g"), (8, "h"))


def test_row_lineage(rest_lake: DuckDB, sql_lake: Lake, spark: Any) -> None:
    """A row that DuckDB updates keeps its id."""
    ours = sql_lake.create_table("db.duck_lineage", "id int, v string", format_version=3)
    ours.append(spark.createDataFrame([(1, "a"), (2, "b")], "id int, v string").coalesce(1))
    rest_lake.run("insert into lake.db.duck_lineage values (3, 'c')")
    rest_lake.run("update lake.db.duck_lineage set v = 'z' where id in (1, 3)")
    rest_lake.run("insert into lake.db.duck_lineage values (4, 'd')")
    columns = ["id", "_row_id", "_last_updated_sequence_number"]
    rows = _read(ours, columns=columns)
    (next_id,) = {row[1] for row in rows if row[0] == 4}
    assert rows == [(1, 0, 3), (2, 1, 1), (3, 2, 3), (4, next_id, 4)]
    # The update has two rows in a file of its own, whose ids are taken though unused.
    assert next_id == 5
    query = f"select {', '.join(columns)} from "
    assert rows == _sorted(spark.sql(query + "java_sql.db.duck_lineage").collect())
    assert rows == _sorted(rest_lake.run(query + "lake.db.duck_lineage"))


def test_transactions(rest_lake: DuckDB, sql_lake: Lake, spark: Any) -> None:
    """Several statements and tables in one commit; one that another writer forestalls is lost."""
    one = _create(rest_lake, "one", "id int", 3)
    two = _create(rest_lake, "two", "id int", 2)
    ours = sql_lake.load_table("db.one")

    def change() -> None:
        rest_lake.run(f"insert into {one} values (1), (2), (3)")
        rest_lake.run(f"delete from {one} where id = 2")
        rest_lake.run(f"insert into {two} values (4)")
        assert _read(ours) == []

    with suppress(InterruptedError), rest_lake.transaction():
        change()
        raise InterruptedError
    assert _read(ours) == []
    with rest_lake.transaction():
        change()
    assert _read(ours) == [(1,), (3,)]
    assert _read(sql_lake.load_table("db.two")) == [(4,)]

    forestalled = pytest.raises(duckdb.Error, match="branch main has changed")
    with forestalled, rest_lake.transaction():
        rest_lake.run(f"delete from {one} where id = 1")
        ours.append(spark.createDataFrame([(5,)], "id int"))
    assert _read(ours) == [(1,), (3,), (5,)]


def test_names(rest_lake: DuckDB, sql_lake: Lake, warehouse: Path) -> None:
    """Tables that DuckDB renames and drops."""
    old = _create(rest_lake, "old_name", "id int", 2)
    rest_lake.run(f"insert into {old} values (1)")
    rest_lake.run(f"alter table {old} rename to new_name")
    rest_lake.run("insert into lake.db.new_name values (2)")
    assert not sql_lake.table_exists("db.old_name")
    assert _read(sql_lake.load_table("db.new_name")) == [(1,), (2,)]
    rest_lake.run("drop table lake.db.new_name")
    assert not sql_lake.table_exists("db.new_name")
    # A staged table has no folder yet, and DuckDB makes none in a file system.
    with pytest.raises(duckdb.Error, match=f"Cannot open file.*{warehouse}.*No such file"):
        rest_lake.run("create table lake.db.selected as select 1 as id")
