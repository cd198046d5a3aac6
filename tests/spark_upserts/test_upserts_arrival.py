"""Changes in the order of their arrival, beside a dictionary that takes them one by one."""

import pytest

import frazil
from ci_share import only_in_soak
from frazil.changes import ARRIVAL
from frazil.errors import SchemaMismatchError, ValidationError
from frazil.spark.upserts.arrival_order import ArrivalOrder

DDL = "k {}, n int not null, part string"
MODES = ["equality-deletes", "merge"]


def arriving(spark, ddl, *partitions):
    """Rows of which each list is one partition, in its order."""
    tables = [spark.createDataFrame(rows, ddl).toArrow() for rows in partitions]

    # A union of single partitions would be one partition.
    def read(batches):
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from tables[number].to_batches()

    return spark.range(0, len(tables), 1, len(tables)).mapInArrow(read, ddl)


def apply(table, df, mode="equality-deletes", **more):
    """Apply changes by their arrival."""
    return table.apply_changes(df, keys="k", op="op", order_by=ARRIVAL, mode=mode, **more)


def as_key(value):
    """A key that can be in a dictionary."""
    return bytes(value) if isinstance(value, bytearray) else value


def content(table):
    """The rows by key, each key once."""
    found = [tuple(row) for row in table.scan().to_df().collect()]
    told = {as_key(row[0]): row[1:] for row in found}
    assert len(told) == len(found)
    return told


K = "k int, n int, part string, op string"


@pytest.fixture
def table_settings():
    """An empty table, partitioned by another column than the key."""
    return {"schema": DDL.format("int"), "partition_by": ["part"], "format_version": 3}


@pytest.mark.check
def test_one_key_comes_goes_and_comes_again(table):
    spark = table.spark
    changes = [
        (1, 1, "x", "u"),
        (1, None, None, "d"),
        (1, 2, "y", "u"),
        (2, 1, "x", "u"),
        (2, 2, "x", "u"),
        (3, 1, "z", "u"),
        (3, None, None, "d"),
        (4, None, None, "d"),
    ]
    told = apply(table, arriving(spark, K, changes))
    assert content(table) == {1: (2, "y"), 2: (2, "x")}
    assert (told.upserted, told.deleted) == (2, 2)
    # The file of z, whose row is superseded, is not there; x has one vector.
    assert sorted(table.inspect.data_files()["partition"].struct[0].to_list()) == ["x", "y"]
    told = apply(table, arriving(spark, K, [(1, None, None, "d"), (5, 5, "x", "u")]))
    assert content(table) == {2: (2, "x"), 5: (5, "x")}
    ids = [row[0] for row in table.scan(columns=["_row_id"]).to_df().collect()]
    assert len(set(ids)) == len(ids) == 2
    apply(table, arriving(spark, K, [(2, None, None, "d"), (5, 1, "x", "u"), (5, None, None, "d")]))
    assert content(table) == {}
    before = table.current_snapshot
    assert apply(table, spark.createDataFrame([], K)).mode is None
    assert table.refresh().current_snapshot == before


@pytest.mark.parametrize("mode", [MODES[0], only_in_soak(MODES[1])])
def test_a_key_in_two_partitions_stops_the_batch(table, tmp_path, mode):
    changes = arriving(table.spark, K, [(1, 1, "x", "u"), (2, 1, "x", "u")], [(2, 2, "x", "u")])
    with pytest.raises(ValidationError, match=r"1 keys, as k=2, .*order_by"):
        apply(table, changes, mode)
    assert table.refresh().current_snapshot is None
    assert not list(tmp_path.rglob("*.parquet"))


def test_null_in_a_required_column_leaves_nothing(table, tmp_path):
    changes = arriving(table.spark, K, [(1, None, "x", "d"), (2, None, "x", "u")])
    with pytest.raises(SchemaMismatchError, match="'n' is required and a row has null in it"):
        apply(table, changes)
    assert table.refresh().current_snapshot is None
    assert not list(tmp_path.rglob("*.parquet"))


def test_few_files_are_open_at_once(table, monkeypatch):
    monkeypatch.setattr(ArrivalOrder, "write", _with_most_open(2))
    changes = [(n % 7, n, f"p{n % 3}", "u") for n in range(60)]
    expected = {key: (n, part) for key, n, part, _ in changes}
    spark = table.spark
    small = spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch")
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    try:
        apply(table, arriving(spark, K, changes))
    finally:
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", small)
    assert content(table) == expected
    assert int(table.current_snapshot.summary["added-position-deletes"]) > 0


def _with_most_open(count):
    write = ArrivalOrder.write
    return lambda self, figures, **more: write(self, figures, **more, most_open=count)


def test_arrival_wins_over_the_order_of_a_format(table):
    feed = "k int, n int, part string, _change_type string, _commit_version int"
    rows = [(1, 1, "x", "insert", 9), (1, 2, "x", "update_postimage", 3), (2, 1, "x", "insert", 1)]
    table.apply_changes(
        arriving(table.spark, feed, rows),
        keys="k",
        format=frazil.changes.change_feed(),
        order_by=ARRIVAL,
        mode="equality-deletes",
    )
    assert content(table) == {1: (2, "x"), 2: (1, "x")}


def test_arrival_stands_alone(table):
    with pytest.raises(ValidationError, match="either it or columns"):
        table.apply_changes(
            arriving(table.spark, K, [(1, 1, "x", "u")]), keys="k", order_by=[ARRIVAL, "n"]
        )
