"""Copy-on-write leaves rows to the task that reads them where files stay as few and as whole."""

import pytest

from ci_share import in_circles, only_in_soak
from frazil.spark.row_level.command import Command

ROWS = [(k, "old", k % 3) for k in range(30)]


def update(spark, table):
    """A value is new, the partition is not."""
    table.update({"v": "'new'"}, "k % 6 = 0 and k < 20")
    return [(k, "new" if k % 6 == 0 and k < 20 else v, p) for k, v, p in ROWS]


def update_of_the_partition(spark, table):
    table.update({"p": "p + 1"}, "k % 2 = 0")
    return [(k, v, p + 1 if k % 2 == 0 else p) for k, v, p in ROWS]


def update_by_a_query(spark, table):
    spark.range(5).selectExpr("id as other").createOrReplaceTempView("others")
    table.update({"v": "(select string(max(other)) from others where other = target.k)"}, "k < 9")
    return [(k, (str(k) if k < 5 else None) if k < 9 else v, p) for k, v, p in ROWS]


def delete(spark, table):
    table.delete("k % 6 = 0")
    return [row for row in ROWS if row[0] % 6]


def merged(spark, table, text):
    source = spark.sql(f"select * from values {text} s(k, v, p)")
    merge = table.merge(source, on="target.k = source.k")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def merge(spark, table):
    merged(spark, table, "(0L, 'new', 0), (4L, 'new', 1)")
    return [(k, "new" if k in (0, 4) else v, p) for k, v, p in ROWS]


def merge_into_another_partition(spark, table):
    merged(spark, table, "(0L, 'new', 0), (4L, 'new', 2)")
    return [(k, "new" if k in (0, 4) else v, 2 if k == 4 else p) for k, v, p in ROWS]


def merge_of_a_new_row(spark, table):
    merged(spark, table, "(0L, 'new', 0), (99L, 'new', 0)")
    return [*((k, "new" if k == 0 else v, p) for k, v, p in ROWS), (99, "new", 0)]


STAY = (update, delete, merge)
MOVE = (
    update_of_the_partition,
    update_by_a_query,
    merge_into_another_partition,
    merge_of_a_new_row,
)
MODES = {f"write.{each}.mode": "copy-on-write" for each in ("delete", "update", "merge")}


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


def table_of(lake, spark, *, files=1, **properties):
    table = lake.create_table(
        "db.t", "k bigint, v string, p int", partition_by=["p"], properties=MODES | properties
    )
    for part in range(files):
        rows = spark.createDataFrame(ROWS[part * 10 :][: 30 // files], "k bigint, v string, p int")
        table.append(rows)
    return table


def rows_of(table):
    return sorted((tuple(row) for row in table.to_df().collect()), key=repr)


@pytest.mark.parametrize("change", in_circles([update, only_in_soak(delete), merge, *MOVE], test=1))
def test_rows_stay_where_their_partition_does(lake, spark, moves, change):
    table = table_of(lake, spark)
    assert rows_of(table) == sorted(ROWS, key=repr)
    expected = change(spark, table)
    assert rows_of(table) == sorted(expected, key=repr)
    assert moves == ["stay" if change in STAY else None]
    # A file a partition, and one more where a row joins a partition whose file is not touched.
    joins_another = change is merge_into_another_partition
    assert len(table.inspect.files()) == len({p for _, _, p in expected}) + joins_another


@pytest.mark.check
def test_small_files_of_a_partition_are_joined(lake, spark, moves):
    table = table_of(lake, spark, files=3)
    expected = delete(spark, table)
    assert rows_of(table) == sorted(expected, key=repr)
    # Nine files before; the three of p = 0 became one.
    assert (moves, len(table.inspect.files())) == ([None], 7)


def test_a_distribution_that_was_asked_for_is_kept(lake, spark, moves):
    table = table_of(lake, spark, **{"write.distribution-mode": "hash"})
    assert rows_of(table) == sorted(ROWS, key=repr)
    expected = update(spark, table)
    assert (moves, rows_of(table)) == ([None], sorted(expected, key=repr))
