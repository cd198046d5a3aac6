"""Random streams of changes beside a dictionary: the table is the replayed source throughout."""

from __future__ import annotations

import datetime
import decimal
import random
from dataclasses import dataclass, field

import pytest

import frazil
from ci_share import examples, only_in_soak
from frazil.changes import ARRIVAL
from frazil.errors import SchemaMismatchError, ValidationError
from frazil.spark.upserts.arrival_order import ArrivalOrder

KEYS = {
    "int": lambda r: r.randrange(12),
    "string": lambda r: r.choice(["", "a", "b", "ab", "ä", "zz", "a,b"]),
    "date": lambda r: datetime.date(2024, 1, 1) + datetime.timedelta(r.randrange(9)),
    "decimal(20, 2)": lambda r: decimal.Decimal(r.randrange(-5, 5)) / 4,
    "timestamp_ntz": lambda r: datetime.datetime(1969, 12, 31, 23, 59, r.randrange(50, 60), 7),
    "binary": lambda r: bytes([r.randrange(4), 255]),
}
PARTITIONS = (
    [],
    ["part"],
    ["bucket(3, k)"],
    ["truncate(2, part)"],
    ["bucket(2, k)", "part"],
)


@dataclass
class Source:
    """A table of keys and rows, and the changes that were made to it."""

    random: random.Random
    key: object
    columns: list = field(default_factory=lambda: ["n int", "part string"])
    rows: dict = field(default_factory=dict)
    sequence: int = 0

    @property
    def ddl(self):
        """Of the table's columns."""
        return ", ".join(self.columns)

    def value(self, column):
        """A value of a column; NULLs too."""
        if self.random.random() < 0.25:
            return None
        if column.startswith("part "):
            return self.random.choice(["x", "xy", "xyz", "y", ""])
        return self.random.randrange(1000)

    def batch(self):
        """Some changes, in any order, many for some keys."""
        made = []
        for _ in range(self.random.randrange(1, 25)):
            self.sequence += 1
            key = None if self.random.random() < 0.05 else self.key(self.random)
            if self.random.random() < 0.3:
                self.rows.pop(key, None)
                values = [self.value(column) for column in self.columns]
                made.append((key, *values, "d", self.sequence))
            else:
                values = [self.value(column) for column in self.columns]
                self.rows[key] = tuple(values)
                made.append((key, *values, "u", self.sequence))
        self.random.shuffle(made)
        return made

    def add_column(self):
        """A column more; the rows that are there have NULL in it."""
        self.columns.append(f"c{len(self.columns)} bigint")
        self.rows = {key: (*row, None) for key, row in self.rows.items()}


def run(lake, seed, mode, kind, partitions, version, batches):
    """A history of batches; columns and partitions evolve after a third of it and after two."""
    r = random.Random(seed)
    spark = lake.spark
    source = Source(r, KEYS[kind])
    table = lake.create_table(
        "db.m", f"k {kind}, {source.ddl}", partition_by=partitions, format_version=version
    )
    for number in range(batches):
        if number == batches // 3:
            source.add_column()
        if number == 2 * batches // 3:
            with table.update_spec() as change:
                change.add_field("bucket(5, k)", name=f"more{number}")
        changes = source.batch()
        df = spark.createDataFrame(changes, f"k {kind}, {source.ddl}, op string, seq int")
        before = len(table.refresh().metadata.snapshots)
        chosen = r.choice(["equality-deletes", "merge"]) if mode != "equality-deletes" else mode
        # One partition has an order of its own.
        arrives = mode == "arrival"
        table.apply_changes(
            df.coalesce(1).sortWithinPartitions("seq").drop("seq")
            if arrives
            else df.repartition(3),
            keys="k",
            op="op",
            order_by=ARRIVAL if arrives else "seq",
            mode=chosen,
            on_new_columns="add",
        )
        assert len(table.metadata.snapshots) - before <= 1
        assert content(table) == source.rows, (seed, number, chosen)
    assert table.scan().count() == len(source.rows)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_streams_of_changes(lake, seed):
    r = random.Random(seed)
    mode = r.choice(["equality-deletes", "mixed", "arrival"])
    run(lake, seed, mode, r.choice(list(KEYS)), r.choice(PARTITIONS), r.choice([2, 3]), 10)


# Changes in the order of their arrival, beside a dictionary that takes them one by one.


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
