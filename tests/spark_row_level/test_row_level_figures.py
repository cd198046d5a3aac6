"""What commands tell of themselves, beside a model of files as lists of rows."""

import pytest

from ci_share import in_circles, only_in_soak
from frazil.spark.row_level.command import Command

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


@pytest.mark.parametrize("mode", in_circles(MODES, test=1))
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


# Copy-on-write leaves rows to the task that reads them where files stay as few and as whole.


THIRTY = [(k, "old", k % 3) for k in range(30)]


def updated(spark, table):
    """A value is new, the partition is not."""
    table.update({"v": "'new'"}, "k % 6 = 0 and k < 20")
    return [(k, "new" if k % 6 == 0 and k < 20 else v, p) for k, v, p in THIRTY]


def update_of_the_partition(spark, table):
    table.update({"p": "p + 1"}, "k % 2 = 0")
    return [(k, v, p + 1 if k % 2 == 0 else p) for k, v, p in THIRTY]


def update_by_a_query(spark, table):
    spark.range(5).selectExpr("id as other").createOrReplaceTempView("others")
    table.update({"v": "(select string(max(other)) from others where other = target.k)"}, "k < 9")
    return [(k, (str(k) if k < 5 else None) if k < 9 else v, p) for k, v, p in THIRTY]


def deleted(spark, table):
    table.delete("k % 6 = 0")
    return [row for row in THIRTY if row[0] % 6]


def merged_by(spark, table, text):
    source = spark.sql(f"select * from values {text} s(k, v, p)")
    merged_rows = table.merge(source, on="target.k = source.k")
    merged_rows.when_matched_update_all().when_not_matched_insert_all().execute()


def merged_rows(spark, table):
    merged_by(spark, table, "(0L, 'new', 0), (4L, 'new', 1)")
    return [(k, "new" if k in (0, 4) else v, p) for k, v, p in THIRTY]


def merge_into_another_partition(spark, table):
    merged_by(spark, table, "(0L, 'new', 0), (4L, 'new', 2)")
    return [(k, "new" if k in (0, 4) else v, 2 if k == 4 else p) for k, v, p in THIRTY]


def merge_of_a_new_row(spark, table):
    merged_by(spark, table, "(0L, 'new', 0), (99L, 'new', 0)")
    return [*((k, "new" if k == 0 else v, p) for k, v, p in THIRTY), (99, "new", 0)]


STAY = (updated, deleted, merged_rows)
MOVE = (
    update_of_the_partition,
    update_by_a_query,
    merge_into_another_partition,
    merge_of_a_new_row,
)
COPIES = {f"write.{each}.mode": "copy-on-write" for each in ("delete", "update", "merge")}


@pytest.fixture
def moves(monkeypatch):
    """How each write placed its rows; None as any write does."""
    told = []
    original = Command.write_files

    def write(*args, placement, **options):
        told.append(None if placement is None else placement.moves)
        return original(*args, placement=placement, **options)

    monkeypatch.setattr(Command, "write_files", write)
    return told


def table_of_copies(lake, spark, *, files=1, **properties):
    table = lake.create_table(
        "db.t", "k bigint, v string, p int", partition_by=["p"], properties=COPIES | properties
    )
    for part in range(files):
        rows = spark.createDataFrame(
            THIRTY[part * 10 :][: 30 // files], "k bigint, v string, p int"
        )
        table.append(rows)
    return table


def rows_of(table):
    return sorted((tuple(row) for row in table.to_df().collect()), key=repr)


@pytest.mark.parametrize(
    "change", in_circles([updated, only_in_soak(deleted), merged_rows, *MOVE], test=1)
)
def test_rows_stay_where_their_partition_does(lake, spark, moves, change):
    table = table_of_copies(lake, spark)
    assert rows_of(table) == sorted(THIRTY, key=repr)
    expected = change(spark, table)
    assert rows_of(table) == sorted(expected, key=repr)
    assert moves == ["stay" if change in STAY else None]
    # A file a partition, and one more where a row joins a partition whose file is not touched.
    joins_another = change is merge_into_another_partition
    assert len(table.inspect.files()) == len({p for _, _, p in expected}) + joins_another


@pytest.mark.check
def test_small_files_of_a_partition_are_joined(lake, spark, moves):
    table = table_of_copies(lake, spark, files=3)
    expected = deleted(spark, table)
    assert rows_of(table) == sorted(expected, key=repr)
    # Nine files before; the three of p = 0 became one.
    assert (moves, len(table.inspect.files())) == ([None], 7)


def test_a_distribution_that_was_asked_for_is_kept(lake, spark, moves):
    table = table_of_copies(lake, spark, **{"write.distribution-mode": "hash"})
    assert rows_of(table) == sorted(THIRTY, key=repr)
    expected = updated(spark, table)
    assert (moves, rows_of(table)) == ([None], sorted(expected, key=repr))
