"""What commands tell of themselves, beside a model of files as lists of rows."""

import pytest

from ci_share import only_in_soak

FILES = {p: [(k, p) for k in range(p, 30, 3)] for p in range(3)}
"""Three files of ten rows, one a partition."""

MODES = ["copy-on-write", "merge-on-read"]


def table_of(lake, spark, mode, version):
    table = lake.create_table(
        "db.figures",
        "k bigint, v string, p int",
        partition_by=["p"],
        format_version=version,
        properties={f"write.{each}.mode": mode for each in ("delete", "update", "merge")},
    )
    rows = [(k, "old", p) for held in FILES.values() for k, p in held]
    table.append(spark.createDataFrame(rows, "k bigint, v string, p int").coalesce(1))
    return table


def told(done):
    return {
        "read": done.rows_read,
        "copied": done.rows_copied,
        "updated": done.rows_updated,
        "deleted": done.rows_deleted,
        "inserted": done.rows_inserted,
        "files": (done.files_read, done.files_skipped, done.files_added, done.files_removed),
        "deletes": (done.deletes_added, done.deletes_removed),
        "why": {each.reason.value: each.files for each in done.skipped},
    }


def expected_of(mode, *, parts, gone=(), new=(), inserted=0):
    """The figures if rows of the files of some partitions are changed.

    Args:
        parts: the partitions that the condition leaves.
        gone, new: the keys of rows that are deleted, and that get new values.
        inserted: how many rows are added, to a partition of their own.
    """
    rewrites = mode == "copy-on-write"
    touched = [p for p in parts if {k for k, _ in FILES[p]} & {*gone, *new}]
    updated = [p for p in parts if {k for k, _ in FILES[p]} & {*new}]
    changed = len(gone) + len(new)
    return {
        "read": sum(len(FILES[p]) for p in parts),
        "copied": sum(len(FILES[p]) for p in touched) - changed if rewrites else 0,
        "updated": len(new),
        "deleted": len(gone),
        "inserted": inserted,
        "files": (
            len(parts),
            3 - len(parts),
            len(touched if rewrites else updated) + bool(inserted),
            len(touched) if rewrites else 0,
        ),
        "deletes": (0 if rewrites else len(touched), 0),
        "why": {"partition value": 3 - len(parts)} if len(parts) < 3 else {},
    }


def summary_of(table, command):
    held = table.current_snapshot.summary
    return {name: text for name, text in held.items() if name.startswith(f"spark.{command}.")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [only_in_soak(2), 3])
def test_figures_are_those_of_the_model(lake, spark, mode, version):
    table = table_of(lake, spark, mode, version)
    first = table.current_snapshot.snapshot_id
    done = table.delete("p = 1 and k < 9")
    expected = expected_of(mode, parts=[1], gone=[1, 4, 7])
    assert told(done) == expected
    assert summary_of(table, "delete") == {
        "spark.delete.num-deleted-rows": "3",
        "spark.delete.num-copied-rows": str(expected["copied"]),
    }
    assert f"{expected['read']} read, 3 deleted" in repr(done)

    table.rollback_to_snapshot(first)
    done = table.update({"v": "'new'"}, "p > 0 and k in (2, 4, 5)")
    expected = expected_of(mode, parts=[1, 2], new=[2, 4, 5])
    assert told(done) == expected
    assert summary_of(table, "update") == {
        "spark.update.num-updated-rows": "3",
        "spark.update.num-copied-rows": str(expected["copied"]),
    }

    table.rollback_to_snapshot(first)
    # A column that both have is the table's under its alias: one partition is read.
    rows = "(0, 'gone', 7), (3, 'new', 7), (90, 'x', 7)"
    source = spark.sql(f"select * from values {rows} s(k, v, p)")
    done = (
        table.merge(source, "target.k = source.k and target.p = 0")
        .when_matched_delete(condition="source.v = 'gone'")
        .when_matched_update({"v": "source.v"})
        .when_not_matched_insert({"k": "k", "v": "v", "p": "9"})
        .execute()
    )
    expected = expected_of(mode, parts=[0], gone=[0], new=[3], inserted=1)
    assert told(done) == expected
    counts = {
        "copied": expected["copied"],
        "updated": 1,
        "deleted": 1,
        "inserted": 1,
        "matched-updated": 1,
        "matched-deleted": 1,
        "not-matched-by-source-updated": 0,
        "not-matched-by-source-deleted": 0,
    }
    assert summary_of(table, "merge-into") == {
        f"spark.merge-into.num-target-rows-{name}": str(count) for name, count in counts.items()
    }


@pytest.mark.check
def test_whole_files_and_inserts_read_no_rows(lake, spark):
    table = table_of(lake, spark, "copy-on-write", 2)
    done = table.delete("p = 2 or k = 1")
    assert (done.rows_read, done.rows_deleted, done.rows_copied) == (20, 11, 9)
    done = table.delete("p = 0")
    assert (done.mode, done.rows_read, done.rows_deleted) == ("metadata", 0, 10)
    done = table.delete("p = 1 and k = 5")
    assert (done.rows_read, done.changes_nothing) == (9, True)
    source = spark.sql("select 99L as k, 'new' as v, 7 as p")
    done = table.upsert(source, keys=["k"])
    assert (done.rows_read, done.rows_inserted) == (0, 1)
    summary = table.current_snapshot.summary
    entries = {name: text for name, text in summary.items() if name.startswith("spark.merge-into")}
    assert len(entries) == 8
    assert entries["spark.merge-into.num-target-rows-inserted"] == "1"
