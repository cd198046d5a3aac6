"""Random streams of changes beside a dictionary: the table is the replayed source throughout."""

from __future__ import annotations

import datetime
import decimal
import random
from dataclasses import dataclass, field

import pytest

from ci_share import examples
from frazil.changes import ARRIVAL

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


def _key(value):
    return bytes(value) if isinstance(value, bytearray) else value


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
        found = [tuple(row) for row in table.scan().to_df().collect()]
        told = {_key(row[0]): row[1:] for row in found}
        assert len(told) == len(found), (seed, number, chosen)
        assert told == source.rows, (seed, number, chosen)
    assert table.scan().count() == len(source.rows)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(examples(40)))
def test_random_streams_of_changes(lake, seed):
    r = random.Random(seed)
    mode = r.choice(["equality-deletes", "mixed", "arrival"])
    run(lake, seed, mode, r.choice(list(KEYS)), r.choice(PARTITIONS), r.choice([2, 3]), 10)
