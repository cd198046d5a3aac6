"""`apply_changes`: rows by key, in both modes, and the delete files that come of it."""

import datetime
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import frazil
from ci_share import in_circles, one_of_each, only_in_soak
from frazil.changes import ARRIVAL, Batch
from frazil.errors import SchemaMismatchError, UnsupportedError, ValidationError
from frazil.format import types as T
from frazil.format.new_table import new_table_metadata
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import LongType, NestedField
from frazil.spark.upserts.choice import choice_of
from frazil.storage.paths import local_path
from rival_commits import before_the_commit

DDL = "id bigint, name string, part string"
CHANGES = "id bigint, name string, part string, op string, seq int"
MODES = ["equality-deletes", "merge"]


def rows(table):
    """All rows, sorted; NULLs first."""
    found = [tuple(row) for row in table.scan().to_df().collect()]
    return sorted(found, key=lambda row: [(value is not None, value) for value in row])


def changed(table, changes, mode="equality-deletes", ddl=CHANGES, **more):
    """Apply rows of `CHANGES`."""
    df = table.spark.createDataFrame(changes, ddl)
    return table.apply_changes(df, keys="id", op="op", order_by="seq", mode=mode, **more)


@pytest.fixture(params=[only_in_soak(2), 3])
def table_settings(request):
    """Rows of two commits."""
    appends = [[(1, "a", "x"), (2, "b", "y")], [(3, "c", "x"), (4, "d", None)]]
    return {"schema": DDL, "format_version": request.param, "appends": appends}


@pytest.mark.check
@pytest.mark.parametrize("mode", MODES)
def test_inserts_updates_and_deletes_are_one_commit(table, mode):
    before = len(table.metadata.snapshots)
    told = changed(
        table,
        [
            (1, "A", "x", "U", 1),
            (2, None, None, "D", 1),
            (5, "e", "z", "I", 1),
            (9, "", "", "D", 1),
        ],
        mode,
    )
    assert rows(table) == [(1, "A", "x"), (3, "c", "x"), (4, "d", None), (5, "e", "z")]
    assert len(table.metadata.snapshots) == before + 1
    assert (told.mode, told.upserted, told.deleted) == (mode, 2, 2)
    assert table.current_snapshot.summary["frazil.changes.mode"] == mode


@pytest.mark.check
def test_the_target_is_not_read(table):
    """No data file is looked at: none is there."""
    data = Path(local_path(table.location)) / "data"
    data.rename(data.with_name("away"))
    changed(table, [(1, "A", "x", "U", 1)])
    shutil.copytree(data.with_name("away"), data, dirs_exist_ok=True)
    assert rows(table)[0] == (1, "A", "x")


@pytest.mark.check
@pytest.mark.parametrize("order_by", [only_in_soak("seq"), ARRIVAL], ids=["column", "arrival"])
def test_a_sorted_table(lake, order_by):
    """Deletes are unsorted: order 0, which a table that was created sorted does not list."""
    table = lake.create_table("db.sorted", DDL, sort_by=["name desc"])
    table.append(lake.spark.createDataFrame([(1, "a", "x"), (2, "b", "y")], DDL).coalesce(1))
    changes = [(1, "A", "x", "U", 1), (2, None, None, "D", 2), (3, "c", "x", "I", 3)]
    df = lake.spark.createDataFrame(changes, CHANGES).coalesce(1)
    columns = df if order_by == "seq" else df.drop("seq")
    table.apply_changes(columns, keys="id", op="op", order_by=order_by, mode="equality-deletes")
    assert rows(table) == [(1, "A", "x"), (3, "c", "x")]


# -- which deletes -------------------------------------------------------------------------------


def _deletes(table):
    """(equality ids, spec id, partition, rows of the file) of each live equality delete."""
    found = []
    for row in table.inspect.delete_files().iter_rows(named=True):
        keys = pq.read_table(local_path(row["file_path"])).to_pylist()
        found.append((row["equality_ids"], row["spec_id"], row.get("partition"), keys, row))
    return found


@pytest.mark.check
def test_a_delete_file_names_its_keys_with_bounds_and_null_counts(table):
    changed(table, [(1, "A", "x", "U", 1), (None, "n", "x", "I", 1), (40, None, None, "D", 1)])
    [(ids, _, _, keys, row)] = _deletes(table)
    assert ids == [1]
    assert sorted(key["id"] or 0 for key in keys) == [0, 1, 40]
    assert set(keys[0]) == {"id"}
    metrics = row["readable_metrics"]["id"]
    assert (metrics["lower_bound"], metrics["upper_bound"]) == (1, 40)
    assert (metrics["value_count"], metrics["null_value_count"]) == (3, 1)


@pytest.mark.check
@pytest.mark.parametrize(
    "order_by", [(), only_in_soak(frazil.changes.ARRIVAL)], ids=["keys", "arrival"]
)
def test_a_delete_file_has_no_bounds_of_uuids(lake, order_by):
    """Readers that compare them as signed numbers would not apply it."""
    fields = (
        T.NestedField(1, "n", T.LongType(), True),
        T.NestedField(2, "u", T.UUIDType(), True),
    )
    table = lake.create_table("db.u", frazil.Schema(fields))

    def frame(*digits):
        rows = [(n, f"{n}9c3e09a-677c-4bbd-a479-3f349cb785e7") for n in digits]
        return table.spark.createDataFrame(rows, "n bigint, u string").coalesce(1)

    table.append(frame(1, 2))
    table.apply_changes(frame(2, 3), keys=["n", "u"], order_by=order_by, mode="equality-deletes")
    files = table.refresh().inspect.dataframes.files().collect()
    bounds = [(row.content, set(row.lower_bounds), set(row.upper_bounds)) for row in files]
    assert sorted(bounds)[1:] == [(0, {1, 2}, {1, 2}), (2, {1}, {1})]
    assert [row[0] for row in rows(table)] == [1, 2, 3]


@pytest.mark.check
def test_deletes_are_of_the_partitions_that_the_keys_tell(lake):
    table = lake.create_table("db.p", DDL, partition_by=["bucket(4, id)"], format_version=2)
    table.append(lake.spark.range(20).selectExpr("id", "'a' as name", "'x' as part"))
    changed(table, [(i, "new", "x", "U", 1) for i in range(0, 20, 2)])
    found = _deletes(table)
    assert {spec for _, spec, *_ in found} == {table.spec.spec_id}
    assert len({partition["id_bucket"] for _, _, partition, *_ in found}) == len(found) > 1
    assert rows(table) == [(i, "a" if i % 2 else "new", "x") for i in range(20)]


@pytest.mark.check
def test_an_update_of_a_partition_column_deletes_the_old_row(lake):
    table = lake.create_table("db.p", DDL, partition_by=["part"], format_version=2)
    table.append(lake.spark.createDataFrame([(1, "a", "x"), (2, "b", "y")], DDL))
    default = table.spec
    changed(table, [(1, "moved", "y", "U", 1)])
    assert rows(table) == [(1, "moved", "y"), (2, "b", "y")]
    [(_, spec, *_)] = _deletes(table)
    assert table.specs[spec].is_unpartitioned
    assert table.spec == default
    changed(table, [(1, "again", "x", "U", 1)])
    assert len(table.specs) == 2
    assert rows(table) == [(1, "again", "x"), (2, "b", "y")]


def test_an_empty_table_needs_no_deletes(lake):
    table = lake.create_table("db.e", DDL, format_version=2)
    changed(table, [(1, "a", "x", "I", 1), (2, "b", "x", "D", 1)])
    assert rows(table) == [(1, "a", "x")]
    assert _deletes(table) == []


@pytest.mark.check
def test_a_spec_that_another_commit_brings_is_reached(lake):
    """Rows of another spec come between the batch's plan and its commit."""
    table = lake.create_table("db.p", DDL, partition_by=["bucket(2, id)"], format_version=2)
    table.append(lake.spark.createDataFrame([(1, "a", "x")], DDL))
    other = lake.load_table("db.p")

    def between():
        with other.update_spec() as change:
            change.replace_field("id_bucket", "bucket(8, id)")
        other.append(lake.spark.createDataFrame([(7, "theirs", "x")], DDL))

    before_the_commit(table, between)
    changed(table, [(7, "ours", "x", "U", 1)])
    assert rows(table) == [(1, "a", "x"), (7, "ours", "x")]


@pytest.mark.check
def test_rows_that_come_into_an_empty_table_meanwhile_are_deleted(lake):
    table = lake.create_table("db.e", DDL, format_version=2)
    theirs = lake.spark.createDataFrame([(1, "theirs", "x")], DDL)
    before_the_commit(table, lambda: lake.load_table("db.e").append(theirs))
    changed(table, [(1, "ours", "x", "U", 1)])
    assert rows(table) == [(1, "ours", "x")]


# -- keys ----------------------------------------------------------------------------------------


@pytest.mark.check
def test_several_keys_in_any_order(lake):
    table = lake.create_table("db.k", "a int, b string, n int", format_version=2)
    ddl = "a int, b string, n int"
    table.append(lake.spark.createDataFrame([(1, "x", 1), (1, None, 2), (2, "x", 3)], ddl))
    df = lake.spark.createDataFrame([(1, None, 20), (2, "x", 30)], ddl)
    table.apply_changes(df, keys=["b", "a"], mode="equality-deletes")
    assert rows(table) == [(1, None, 20), (1, "x", 1), (2, "x", 30)]
    [(ids, *_)] = _deletes(table)
    assert ids == [1, 2]


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        ("d", ValidationError, "floating-point"),
        ("m", ValidationError, "simple types"),
        ("s.x", UnsupportedError, "inside of another column"),
        ("nope", ValidationError, "nope"),
        (None, ValidationError, "changes need keys"),
        (["id", "id"], ValidationError, "twice"),
    ],
)
def test_keys_that_cannot_be(lake, keys, error, says):
    table = lake.create_table(
        "db.k", "id bigint, d double, m map<string, int>, s struct<x: int>", format_version=2
    )
    with pytest.raises(error, match=says):
        table.apply_changes(table.to_df(), keys=keys)
    assert not table.refresh().metadata.snapshots


@pytest.mark.check
def test_the_schemas_identifier_fields_are_the_keys(lake):
    table = lake.create_table("db.k", "id bigint not null, n int", format_version=2)
    with table.update_schema() as change:
        change.set_identifier_fields("id")
    ddl = "id bigint not null, n int"
    table.append(lake.spark.createDataFrame([(1, 1), (2, 2)], ddl))
    table.apply_changes(lake.spark.createDataFrame([(1, 9)], ddl), mode="equality-deletes")
    assert rows(table) == [(1, 9), (2, 2)]


# -- what is refused -----------------------------------------------------------------------------


NO_SENSE = [
    ([(1, "a", "x", "U", 1), (1, "b", "x", "U", 1)], "order_by orders them alike: id=1"),
    ([(1, "a", "x", "U", 1), (1, "a", "x", "D", 1)], "orders them alike"),
    ([(1, "a", "x", "U", None)], "NULL, for id=1"),
    ([(1, "a", "x", "X", 1)], "operation 'X'"),
    ([(1, "a", "x", None, 1)], "operation NULL"),
]


@pytest.mark.check
@pytest.mark.parametrize(("case", "mode"), one_of_each(NO_SENSE, MODES, without=NO_SENSE[::4]))
def test_changes_that_make_no_sense_stop(table, case, mode):
    changes, says = case
    before = rows(table)
    with pytest.raises(ValidationError, match=says):
        changed(table, changes, mode)
    assert rows(table.refresh()) == before
    assert len(table.metadata.snapshots) == 2


@pytest.mark.check
def test_equal_changes_of_one_place_in_the_order_are_one(table):
    changed(table, [(1, "a", "x", "U", 1), (1, "A", "x", "U", 2), (1, "A", "x", "U", 2)])
    assert rows(table)[0] == (1, "A", "x")


@pytest.mark.check
def test_without_an_order_a_key_comes_once(table):
    df = table.spark.createDataFrame([(1, "A", "x"), (1, "B", "x")], DDL)
    with pytest.raises(ValidationError, match="there is no order_by: id=1"):
        table.apply_changes(df, keys="id")
    table.apply_changes(df.limit(1), keys="id")
    assert len(rows(table)) == 4


@pytest.mark.check
def test_a_required_column_of_a_new_row_must_be_there(lake):
    table = lake.create_table("db.r", "id bigint not null, n int not null", format_version=2)
    ddl = "id bigint, n int, op string"
    table.apply_changes(
        lake.spark.createDataFrame([(1, 1, "i"), (2, None, "d")], ddl), keys="id", op="op"
    )
    for mode in MODES:
        bad = lake.spark.createDataFrame([(1, None, "u")], ddl)
        with pytest.raises(ValidationError, match="'n'"):
            table.apply_changes(bad, keys="id", op="op", mode=mode)
    assert rows(table.refresh()) == [(1, 1)]


@pytest.mark.check
def test_a_table_of_version_1_is_merged(lake):
    table = lake.create_table("db.one", DDL, format_version=1)
    table.append(lake.spark.createDataFrame([(1, "a", "x"), (2, "b", "y")], DDL))
    with pytest.raises(UnsupportedError, match="version 1"):
        changed(table, [(1, "A", "x", "U", 1)])
    told = changed(table, [(1, "A", "x", "U", 1), (2, None, None, "D", 1)], "auto")
    assert (told.mode, told.reason) == ("merge", "the table is of format version 1")
    assert rows(table) == [(1, "A", "x")]


# -- new columns ---------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize("mode", [only_in_soak(MODES[0]), MODES[1]])
def test_new_columns_stop_unless_they_are_asked_for(table, mode):
    ddl = f"{CHANGES}, extra int"
    new = [(1, "A", "x", "U", 1, 7)]
    evolves = "write.spark.auto-schema-evolution.enabled"
    for more in ({}, {"on_new_columns": "add"}):
        with pytest.raises(SchemaMismatchError, match="no column 'extra'"):
            changed(table, new, mode, ddl, **more)
        table.set_properties({evolves: "false"})
    table.set_properties({evolves: "true"})
    snapshots = len(table.metadata.snapshots)
    changed(table, new, mode, ddl)
    assert rows(table)[:2] == [(1, "A", "x", 7), (2, "b", "y", None)]
    assert len(table.metadata.snapshots) == snapshots + 1


def test_a_wider_type_widens_the_column(lake):
    table = lake.create_table("db.w", "id bigint, n int", format_version=2)
    table.append(lake.spark.createDataFrame([(1, 1)], "id bigint, n int"))
    df = lake.spark.createDataFrame([(2, 1 << 40)], "id bigint, n bigint")
    table.apply_changes(df, keys="id", on_new_columns="add", mode="equality-deletes")
    assert rows(table) == [(1, 1), (2, 1 << 40)]


# -- once ----------------------------------------------------------------------------------------


@pytest.mark.check
def test_a_batch_is_known_after_its_snapshot_has_expired(table):
    changed(table, [(1, "A", "x", "U", 1)], batch=Batch("q", 1))
    changed(table, [(1, "later", "x", "U", 1)])
    table.maintenance.expire_snapshots(older_than=datetime.datetime.now(), retain_last=1)
    assert len(table.metadata.snapshots) == 1
    for number in (1, 0):
        assert changed(table, [(1, "A", "x", "U", 1)], batch=Batch("q", number)).was_applied


def test_a_batch_without_changes_is_known_too(table):
    changed(table, [], batch=Batch("q", 0))
    assert changed(table, [(1, "A", "x", "U", 1)], batch=Batch("q", 0)).was_applied


@pytest.mark.check
def test_two_that_apply_one_batch_apply_it_once(table, lake):
    """Another driver commits the same batch between this one's write and its commit."""
    other = lake.load_table("db.t")
    once = [(8, "once", "x", "I", 1)]
    before_the_commit(table, lambda: changed(other, once, batch=Batch("q", 0)))
    assert changed(table, [(8, "once", "x", "I", 1)], batch=Batch("q", 0)).was_applied
    assert len(table.refresh().metadata.snapshots) == 3
    assert [row for row in rows(table) if row[0] == 8] == [(8, "once", "x")]
    known = {file["file_path"] for file in table.inspect.all_files().iter_rows(named=True)}
    written = {
        f"{table.location}/{path}" for path in _written_below(local_path(table.location), "data")
    }
    assert {local_path(path) for path in written} == {local_path(path) for path in known}


def _written_below(folder, name):
    root = Path(folder)
    return [str(path.relative_to(root)) for path in (root / name).rglob("*.parquet")]


# -- modes and branches --------------------------------------------------------------------------


@pytest.mark.check
def test_auto_says_why(lake):
    table = lake.create_table("db.a", "id bigint, n bigint", format_version=2)
    spark = lake.spark
    table.append(spark.range(200_000).selectExpr("id", "id as n"))

    def told(count):
        made = table.apply_changes(spark.range(count).selectExpr("id", "-id as n"), keys="id")
        summary = table.current_snapshot.summary
        assert summary["frazil.changes.mode-reason"] == made.reason
        return made.mode, made.reason

    assert told(100) == (
        "equality-deletes",
        "100 changes and 0 equality deletes are few beside 200000 rows",
    )
    mode, reason = told(50_000)
    assert mode == "merge"
    assert reason.startswith("50000 changes are much beside")
    assert table.scan("n >= 0").count() == 150_001


@pytest.mark.parametrize(
    ("more", "says"),
    in_circles(
        [
            ({"mode": "fast"}, "no mode 'fast'"),
            ({"op": "op", "format": frazil.changes.dms()}, "either op or a format"),
            ({"format": "dms"}, "format is one of frazil.changes"),
            ({"on_new_columns": "drop"}, "'fail' or 'add'"),
            ({"order_by": [1]}, "order_by is columns"),
            ({"order_by": "nope"}, "no column to order them by as nope"),
        ],
        test=1,
    ),
)
def test_arguments_that_make_no_sense(table, more, says):
    with pytest.raises(ValidationError, match=says):
        table.apply_changes(table.to_df(), keys="id", **more)


# How `mode="auto"` chooses, by the counts that the snapshot before states.


SCHEMA = Schema((NestedField(1, "id", LongType()),))


def table_of(version=2, **properties):
    return new_table_metadata(
        SCHEMA, location="file:///nowhere", format_version=version, properties=properties
    )


def holding(rows=None, deletes=None):
    totals = {"total-records": rows, "total-equality-deletes": deletes}
    stated = {name: str(count) for name, count in totals.items() if count is not None}
    return Snapshot(
        snapshot_id=1, timestamp_ms=0, sequence_number=1, manifest_list="x", summary=stated
    )


@pytest.mark.parametrize(
    ("head", "changes", "mode", "says"),
    [
        (None, 5, "merge", "the table's 0 rows are few"),
        (holding(100_000, 0), 1, "merge", "the table's 100000 rows are few"),
        (holding(100_001, 0), 1, "equality-deletes", "1 changes and 0 equality deletes are few"),
        (holding(100_001), 1, "equality-deletes", "1 changes and 0 equality deletes are few"),
        (holding(), 1, "equality-deletes", "does not state its rows"),
        (holding(1_000_000, 0), 100_000, "merge", "100000 changes are much beside"),
        (holding(1_000_000, 0), 99_999, "equality-deletes", "99999 changes and 0 equality"),
        (holding(1_000_000, 99_999), 1, "equality-deletes", "and 99999 equality deletes are few"),
        (holding(1_000_000, 99_999), 2, "merge", "100001 equality deletes would be much"),
    ],
)
def test_each_branch_and_its_edge(head, changes, mode, says):
    found = choice_of("auto", table_of(), head, changes)
    assert found.mode == mode
    assert says in found.reason


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        (table_of(1), "format version 1"),
        (table_of(**{"write.delete.format.default": "avro"}), "are to be avro"),
        (table_of(**{"write.format.default": "orc"}), "are to be orc"),
    ],
)
def test_a_table_without_equality_deletes(metadata, says):
    large = holding(1_000_000, 0)
    found = choice_of("auto", metadata, large, 1)
    assert (found.mode, says in found.reason) == ("merge", True)
    assert choice_of("merge", metadata, large, 1).reason == "asked for"
    with pytest.raises(UnsupportedError, match=says):
        choice_of("equality-deletes", metadata, large, 1)
