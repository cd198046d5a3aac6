"""Metadata tables that executors decode are equal to those that are made beside the session."""

from dataclasses import replace

import pytest

from ci_share import only_in_soak
from frazil.format.manifests import ManifestContent, ManifestFile
from frazil.format.snapshots import Snapshot
from frazil.spark.abilities import HAS_ARROW_FUNCTIONS
from frazil.spark.metadata_frames.placed_rows import agrees_with_list, counts_in_list
from frazil.spark.session import costs

TABLES = (
    "manifests", "all_manifests", "entries", "all_entries", "files", "data_files", "delete_files",
    "all_files", "all_data_files", "all_delete_files", "partitions", "position_deletes",
)  # fmt: skip


@pytest.fixture
def executors(monkeypatch):
    """Nothing is small enough for the driver."""

    def switch():
        for limit in ("DECODED_BYTES", "DECODED_MANIFESTS", "LISTED_SNAPSHOTS", "PLANNED_BYTES"):
            monkeypatch.setattr(costs, limit, 0)

    return switch


def made(lake, spark, name, partition_by, version):
    """Appends, a removed file, an evolved spec, a column of every kind of bound."""
    ddl = (
        "id bigint not null, city string, f float, m decimal(9,2), d date, t timestamp_ntz, "
        "z timestamp, y binary, st struct<a: int>, l array<int>, mp map<string, int>"
    )
    rows = spark.sql(
        """select id, if(id % 3 = 0, null, concat('c', id % 3)) city, float(id) f,
        cast(id as decimal(9,2)) m, date'2024-01-02' d,
        timestamp_ntz'2024-01-02 03:04:05.678901' t, timestamp'2024-01-02 03:04:05Z' z, X'00ff' y,
        named_struct('a', 3) st, array(1, 2) l, map('k', 1) mp from range(9)"""
    ).coalesce(1)
    table = lake.create_table(name, ddl, partition_by=partition_by, format_version=version)
    table.append(rows)
    table.append(rows)
    table.overwrite(rows.where("id = 1"), where="city = 'c1'")
    with table.update_spec() as change:
        change.add_field("bucket(4, id)")
    table.append(rows)
    return table


def shown(df):
    """Rows as text, in an order of their own."""
    return sorted(repr(row) for row in df.collect())


@pytest.mark.check
@pytest.mark.parametrize(
    ("partition_by", "version"), [only_in_soak((), 1), (("city", "days(t)"), 2)]
)
def test_both_roads_give_equal_frames(lake, spark, executors, partition_by, version):
    table = made(lake, spark, "db.t", partition_by, version)
    beside = {name: getattr(table.inspect.dataframes, name)() for name in TABLES}
    executors()
    for name, expected in beside.items():
        found = getattr(table.inspect.dataframes, name)()
        assert found.schema == expected.schema, name
        assert shown(found) == shown(expected), name


@pytest.mark.skipif(not HAS_ARROW_FUNCTIONS, reason="its functions get no arrays of Arrow")
def test_a_count_starts_no_python(lake, spark, executors, capsys):
    """Of a snapshot that removed a file, which is an entry and no file of it."""
    table = made(lake, spark, "db.t", ("city",), 2)
    here, removed = table.inspect.dataframes, table.metadata.snapshots[2].snapshot_id
    before = {
        name: shown(getattr(here, name)(snapshot_id=removed)) for name in ("files", "entries")
    }
    assert len(before["files"]) < len(before["entries"])
    executors()
    for name, expected in before.items():
        rows = getattr(here, name)(snapshot_id=removed)
        assert rows.count() == len(expected)
        rows.groupBy().count().explain()
        plan = capsys.readouterr().out
        assert "Python" not in plan
        assert "InArrow" not in plan
        file = "data_file." if name == "entries" else ""
        rows.agg({f"{file}record_count": "sum"}).explain()
        assert "ArrowEvalPython" in capsys.readouterr().out
        assert shown(rows) == expected


def test_counts_that_the_list_contradicts_are_no_rows():
    """A list's counts are believed where the snapshot's own totals say the same."""
    data = ManifestFile(
        manifest_path="m", manifest_length=1, added_files_count=2, existing_files_count=1
    )
    deletes = replace(data, content=ManifestContent.DELETES, added_files_count=1)
    deletes = replace(deletes, existing_files_count=0)
    assert counts_in_list([data, deletes], "files") == [3, 1]
    assert counts_in_list([data], "entries") is None, "no count of deleted entries"
    for summary, agrees in (
        ({}, True),
        ({"total-data-files": "3", "total-delete-files": "1"}, True),
        ({"total-data-files": "2"}, False),
        ({"total-delete-files": "0"}, False),
    ):
        snapshot = Snapshot(snapshot_id=1, timestamp_ms=1, summary=summary)
        assert agrees_with_list(snapshot, [data, deletes]) is agrees


@pytest.mark.check
def test_a_moment_on_the_executors(lake, spark, executors):
    table = made(lake, spark, "db.t", ("city",), 2)
    first = table.metadata.snapshots[0].snapshot_id
    executors()
    assert table.files(snapshot_id=first).count() == 3
    assert table.partitions(snapshot_id=first).count() == 3


def test_tables_without_snapshots(lake, executors):
    table = lake.create_table("db.t", "id bigint, city string", partition_by=["city"])
    executors()
    for name in TABLES:
        assert getattr(table.inspect.dataframes, name)().count() == 0, name


@pytest.mark.skipif(not HAS_ARROW_FUNCTIONS, reason="its functions get no arrays of Arrow")
@pytest.mark.check
@pytest.mark.parametrize("name", ["all_files", "all_entries"])
def test_what_is_made_of_maps_is_left_out_where_nobody_asks(lake, spark, executors, capsys, name):
    """A function that decodes the maps of entries is no part of a count."""
    table = made(lake, spark, "db.t", ("city",), 2)
    executors()
    rows = getattr(table.inspect.dataframes, name)()
    file = "data_file." if name == "all_entries" else ""
    for asked, decodes in (
        (rows.groupBy().count(), False),
        (rows.where(f"{file}record_count > 0").select(f"{file}file_path"), False),
        (rows.select(f"{file}value_counts"), True),
        (rows.select("readable_metrics.id.lower_bound"), True),
    ):
        asked.explain()
        assert ("ArrowEvalPython" in capsys.readouterr().out) is decodes


def test_nothing_is_collected(lake, spark, executors, capsys):
    """The plan of a large table is made of tasks, which executors turn into rows."""
    table = made(lake, spark, "db.t", ("city",), 2)
    executors()
    for name in ("all_files", "partitions", "all_manifests"):
        getattr(table.inspect.dataframes, name)().explain()
        plan = capsys.readouterr().out
        assert "MapInArrow" in plan, name
        assert ".parquet" not in plan, name
