"""Short calls and the names that users of PyIceberg, PySpark and SQL type first."""

import pytest

from frazil.errors import NoSuchRefError, ValidationError


@pytest.fixture
def numbers(lake, spark):
    """Ids 0 to 9, then 10 to 14; `start` tags the first append, `side` has 99 besides."""
    table = lake.create_table_as_select("db.numbers", spark.range(10))
    table.create_tag("start")
    table.create_branch("side")
    table.append(spark.range(10, 15))
    table.append(spark.range(99, 100), branch="side")
    return table


def ids(df):
    return sorted(row.id for row in df.collect())


def test_a_predicate_may_come_first(numbers):
    assert ids(numbers.scan("id > 12").to_df()) == [13, 14]


def test_a_limit_gives_so_many_rows_that_match(numbers):
    scan = numbers.scan("id >= 8", limit=3)
    for found in (ids(scan.to_df()), scan.to_arrow()["id"].to_pylist(), list(scan.to_pandas().id)):
        assert len(set(found)) == 3
        assert set(found) <= set(range(8, 15))
    assert scan.count() == 3
    assert repr(scan).endswith("where id >= 8L, limit 3)")
    assert numbers.scan("id >= 8", limit=6).count() == 6
    assert numbers.scan("id >= 8", limit=100).count() == 7
    assert numbers.scan(limit=4).count() == 4
    assert numbers.scan(limit=0).count() == 0
    assert ids(numbers.scan(limit=0).to_df()) == []
    assert ids(numbers.scan(limit=15).to_df()) == list(range(15))
    assert numbers.incremental("start", limit=2).to_df().count() == 2


def test_a_limited_scan_has_no_aggregates(numbers):
    with pytest.raises(ValidationError, match="any 3 of its rows"):
        numbers.scan(limit=3).aggregate("max(id)")


def test_a_limit_that_is_no_number_of_rows_is_refused(numbers):
    for limit in (-1, True, 2.5, "3", 2**31):
        with pytest.raises(ValidationError, match="give a number of rows"):
            numbers.scan(limit=limit)


def test_rows_of_a_limited_scan_can_be_written(lake, numbers):
    made = lake.create_table_as_select("db.some", numbers.scan(limit=6))
    assert made.count() == 6


def test_a_table_counts_and_shows_its_rows(numbers, capsys):
    assert numbers.count() == 15
    numbers.show(2, truncate=False)
    numbers.show(1, vertical=True)
    printed = capsys.readouterr().out
    assert "only showing top 2 rows" in printed
    assert "-RECORD 0" in printed


def test_changes_start_and_end_at_tags_branches_and_ids(numbers):
    first, last = (s.snapshot_id for s in numbers.metadata.snapshots[:2])
    after = list(range(10, 15))
    assert ids(numbers.incremental("start").to_df()) == after
    assert ids(numbers.incremental(first, last).to_df()) == after
    assert ids(numbers.incremental(str(first)).to_df()) == after
    assert ids(numbers.incremental(from_snapshot_id=first).to_df()) == after
    assert ids(numbers.incremental("start", "side").to_df()) == [99]
    assert ids(numbers.incremental(None, "start").to_df()) == list(range(10))
    assert ids(numbers.changes("start", "side")) == [99]
    assert ids(numbers.net_changes("start", "main")) == after
    for name in ("begin", "²", ""):
        with pytest.raises(NoSuchRefError, match=f"no branch or tag '{name}'"):
            numbers.incremental(name)
    with pytest.raises(ValidationError, match="from_snapshot_id is True"):
        numbers.changes(True)
    with pytest.raises(ValidationError, match="to_snapshot_id is 'start'"):
        numbers.changes(to_snapshot_id="start")
    with pytest.raises(ValidationError, match="'start' or from_snapshot_id=1, not both"):
        numbers.changes("start", from_snapshot_id=1)
    with pytest.raises(ValidationError, match="not an ancestor"):
        numbers.incremental("side")


def test_a_range_is_read_with_a_tags_schema_or_the_table_s_for_a_branch(numbers):
    with numbers.update_schema() as change:
        change.add_column("note", "string")
    for read in (
        lambda end: numbers.incremental(None, end).to_df(),
        lambda end: numbers.changes(None, end).drop("_change_type", "_change_ordinal")
        .drop("_commit_snapshot_id"),
    ):  # fmt: skip
        assert read("start").columns == ["id"]
        assert read("side").columns == ["id", "note"]


def test_a_tag_that_is_called_like_a_snapshot_s_id_gives_way_to_the_snapshot(numbers):
    first, last = (s.snapshot_id for s in numbers.metadata.snapshots[:2])
    numbers.create_tag(str(first), snapshot_id=last)
    numbers.create_tag("2024", snapshot_id=last)
    assert numbers.incremental(str(first)).count() == 5
    assert numbers.incremental("2024").count() == 0


def test_a_lake_lists_the_tables_of_all_namespaces(lake):
    lake.create_namespace("db.deep")
    for name in ("db.b", "db.deep.a"):
        lake.create_table(name, "id bigint")
    assert lake.list_tables() == [("db", "b"), ("db", "deep", "a")]
    assert lake.list_tables("db") == [("db", "b")]
