"""Copy-on-write merges by one join: rows and figures as SQL means them, nothing left over."""

from pathlib import Path

import pytest

from frazil.errors import ValidationError
from frazil.spark.row_level.merging import run as merging


@pytest.fixture
def joined_once(monkeypatch):
    """Whether each merge was committed by one join."""
    told = []
    original = merging.rewritten_in_one_join

    def tried(*args):
        done = original(*args)
        told.append(done is not None)
        return done

    monkeypatch.setattr(merging, "rewritten_in_one_join", tried)
    return told


def table_of(lake, spark, version=2):
    table = lake.create_table(
        "db.t",
        "k bigint, v string, p int",
        partition_by=["p"],
        format_version=version,
        properties={"write.merge.mode": "copy-on-write"},
    )
    table.append(spark.sql("select id as k, 'old' as v, int(id % 3) as p from range(0, 30)"))
    return table


def data_files(table):
    return sorted(p.name for p in Path(table.location.removeprefix("file:")).rglob("*.parquet"))


def rows_of(table):
    return sorted(tuple(row) for row in table.to_df().collect())


@pytest.mark.check
@pytest.mark.parametrize("version", [2, 3])
def test_each_kind_of_clause(lake, spark, joined_once, version):
    table = table_of(lake, spark, version)
    ids = {}
    if version == 3:
        lineage = table.scan(columns=["k", "_row_id"]).to_df().collect()
        ids = {row.k: row["_row_id"] for row in lineage}
    source = spark.sql(
        "select * from values (0, 'a'), (3, 'gone'), (6, 'kept'), (99, 'new') s(k, v)"
    )
    done = (
        table.merge(source, on="target.k = source.k")
        .when_matched_delete(condition="source.v = 'gone'")
        .when_matched_update({"v": "source.v || target.p"}, condition="source.v <> 'kept'")
        .when_not_matched_insert({"k": "k", "v": "v", "p": "7"})
        .execute()
    )
    assert joined_once == [True]
    expected = [(k, "old", k % 3) for k in range(30) if k not in (0, 3)]
    assert rows_of(table) == sorted([*expected, (0, "a0", 0), (99, "new", 7)])
    figures = (done.rows_updated, done.rows_deleted, done.rows_inserted, done.rows_copied)
    # Only the file of p = 0, which has ten rows, is written anew.
    assert figures == (1, 1, 1, 8)
    assert (done.files_removed, done.files_added) == (1, 2)
    if version == 3:
        after = table.scan(columns=["k", "_row_id"]).to_df().collect()
        kept = {row.k: row["_row_id"] for row in after if row.k != 99}
        assert kept == {k: ids[k] for k in kept}


@pytest.mark.check
def test_two_matches_of_a_row_leave_nothing_behind(lake, spark, joined_once):
    table = table_of(lake, spark)
    before = data_files(table), rows_of(table)
    source = spark.sql("select * from values (1, 'a'), (1, 'b'), (2, 'c'), (50, 'd') s(k, v)")
    merge = table.merge(source, on="target.k = source.k").when_matched_update({"v": "source.v"})
    with pytest.raises(ValidationError, match="2 rows of the source match one row"):
        merge.when_not_matched_insert({"k": "k", "v": "v", "p": "1"}).execute()
    assert joined_once == [False]
    assert (data_files(table), rows_of(table)) == before


def test_two_matches_that_delete_a_row(lake, spark, joined_once):
    table = table_of(lake, spark)
    source = spark.sql("select * from values (1, 'a'), (1, 'b'), (2, 'c') s(k, v)")
    done = table.merge(source, on="target.k = source.k").when_matched_delete().execute()
    assert joined_once == [False]
    assert rows_of(table) == [(k, "old", k % 3) for k in range(30) if k not in (1, 2)]
    assert (done.rows_deleted, done.rows_copied) == (2, 18)


def test_a_match_under_no_clause_keeps_the_files(lake, spark, joined_once):
    table = table_of(lake, spark)
    before = data_files(table)
    source = spark.sql("select * from values (1, 'a'), (60, 'b') s(k, v)")
    done = (
        table.merge(source, on="target.k = source.k")
        .when_matched_update({"v": "'x'"}, condition="target.v = 'other'")
        .execute()
    )
    assert not done.files_added
    assert data_files(table) == before
