"""Merges whose source is too large for every task, beside a dictionary."""

import random

import pytest

from ci_share import one_of_each, these
from frazil.spark.row_level import delete
from frazil.spark.row_level.merging import merged_rows
from frazil.spark.row_level.merging import run as merging
from frazil.spark.row_level.merging.keys import key_filter
from frazil.spark.session import costs

MODES = ["copy-on-write", "merge-on-read"]
CLAUSES = ["update", "delete and insert", "by source"]
TOLD = ["apart", "by a join"]
"""Whether the driver has room for the places of the rows."""
ROWS = 200


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch):
    monkeypatch.setattr(costs, "MATCHED_BYTES", -1)
    monkeypatch.setattr(costs, "FILTERED_ROWS", 0)
    monkeypatch.setattr(key_filter, "_ROWS_A_KEY", 0)


def no_room(monkeypatch):
    for module in (merged_rows, delete):
        monkeypatch.setattr(module, "words_of_places", lambda *args, **more: None)


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


def made(lake, mode, version):
    """Rows of four partitions, of which some are deleted by position."""
    commands = ("delete", "update", "merge")
    table = lake.create_table(
        "db.t",
        "k int, v string, p int, _frazil_pos int",
        partition_by=["p"],
        format_version=version,
        properties={f"write.{each}.mode": mode for each in commands},
    )
    sql = "select int(id) as k, 'old' as v, int(id % 4) as p, 7 as _frazil_pos from range({}, {})"
    table.append(lake.spark.sql(sql.format(0, ROWS // 2)))
    table.append(lake.spark.sql(sql.format(ROWS // 2, ROWS)))
    table.delete("k % 10 = 5")
    return table, {k: ("old", k % 4) for k in range(ROWS) if k % 10 != 5}


def rows_of(table):
    found = [tuple(row) for row in table.scan(columns=["k", "v", "p"]).to_df().collect()]
    told = {row[0]: row[1:] for row in found}
    assert len(told) == len(found)
    return told


def lineage_of(table):
    found = table.scan(columns=["k", "_row_id"]).to_df().collect()
    return {row.k: row["_row_id"] for row in found}


@pytest.mark.parametrize(("mode", "clauses", "told"), one_of_each(MODES, CLAUSES, TOLD))
@pytest.mark.parametrize("version", [3])
def test_each_kind_of_clause(lake, spark, monkeypatch, joined_once, mode, clauses, told, version):
    if told == "by a join":
        no_room(monkeypatch)
    table, rows = made(lake, mode, version)
    ids = lineage_of(table)
    r = random.Random(f"{mode} {clauses}")
    keys = r.sample(range(ROWS + 40), 60)
    source = spark.createDataFrame(
        [(k, f"new{k}", r.randrange(4)) for k in keys], "k int, v string, p int"
    )
    given = {row.k: (row.v, row.p) for row in source.collect()}
    merge = table.merge(source, on="target.k = source.k")
    if clauses == "update":
        merge.when_matched_update({"v": "source.v", "p": "source.p"}).execute()
        rows |= {k: given[k] for k in given if k in rows}
    elif clauses == "delete and insert":
        merge = merge.when_matched_delete(condition="source.p = 0")
        merge = merge.when_matched_update({"v": "source.v"}, condition="source.p = 1")
        merge.when_not_matched_insert({"k": "k", "v": "v", "p": "p"}).execute()
        for k, (v, p) in given.items():
            if k not in rows:
                rows[k] = (v, p)
            elif p == 0:
                del rows[k]
            elif p == 1:
                rows[k] = (v, rows[k][1])
    else:
        merge = merge.when_matched_update({"v": "source.v"})
        merge = merge.when_not_matched_by_source_update({"v": "'left'"}, condition="p = 1")
        merge.when_not_matched_by_source_delete(condition="p = 2").execute()
        for k, (_, p) in list(rows.items()):
            if k in given:
                rows[k] = (given[k][0], p)
            elif p == 1:
                rows[k] = ("left", p)
            elif p == 2:
                del rows[k]
    assert rows_of(table) == rows
    assert joined_once == [True] * (mode == "copy-on-write" and clauses != "by source")
    after = lineage_of(table)
    assert {k: after[k] for k in after if k in ids} == {k: ids[k] for k in after if k in ids}


@pytest.mark.check
@pytest.mark.parametrize(
    ("mode", "told"),
    these([(MODES[0], TOLD[1])], MODES, TOLD),
)
def test_rows_of_a_sub_query(lake, spark, monkeypatch, mode, told):
    if told == "by a join":
        no_room(monkeypatch)
    table, rows = made(lake, mode, 2)
    spark.sql("select int(id * 3) as k from range(0, 50)").createOrReplaceTempView("chosen")
    table.update({"v": "'new'", "p": "p + 10"}, "k in (select k from chosen)")
    rows = {k: ("new", p + 10) if k % 3 == 0 and k < 150 else (v, p) for k, (v, p) in rows.items()}
    assert rows_of(table) == rows
    table.delete("k in (select k + 1 from chosen)")
    rows = {k: row for k, row in rows.items() if k % 3 != 1 or k > 150}
    assert rows_of(table) == rows
    table.overwrite(
        spark.sql("select 1000 as k, 'x' as v, 0 as p, 0 as _frazil_pos"),
        where="k in (select k + 2 from chosen)",
    )
    rows = {k: row for k, row in rows.items() if k % 3 != 2 or k > 150} | {1000: ("x", 0)}
    assert rows_of(table) == rows
