"""The form of a case: a table, its rows, a command, and the rows after it or a refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from frazil.spark.lake import Lake
from frazil.spark.table import Table

WAYS = (("copy-on-write", 2), ("merge-on-read", 3), ("copy-on-write", 3), ("merge-on-read", 2))
"""Each mode with each format version."""

_NUMBERS = count()

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Bench:
    """What a command works with."""

    table: Table
    spark: SparkSession

    def frame(self, ddl: str, *rows: Row) -> DataFrame:
        """Rows as a DataFrame."""
        return self.spark.createDataFrame(list(rows), ddl)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A case.

    Attributes:
        ddl: the table's columns.
        rows: batches, each appended as one file; a text is a query.
        do: the command, or several.
        after: the rows at the end; None where the command is refused.
        refused: the kind of the refusal, which leaves the table as it was; `says` what it states.
        more: columns that DDL has no types for, by name, added behind the others.
        select: what is compared.
        both: whether the case is for both modes; otherwise it is one's turn.
        versions: where it applies.
        in_ci: whether CI takes it, or a soak alone.
    """

    name: str
    ddl: str
    rows: Sequence[Sequence[Row] | str] = ()
    do: Callable[[Bench], object]
    after: Sequence[Row] | None = None
    refused: type[Exception] | None = None
    says: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    partition_by: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    select: Sequence[str] = ("*",)
    both: bool = False
    versions: Sequence[int] = (2, 3)
    in_ci: bool = True

    def made(self, lake: Lake, mode: str, version: int) -> Bench:
        """Return the table with its rows."""
        properties = {f"write.{each}.mode": mode for each in ("delete", "update", "merge")}
        table = lake.create_table(
            f"db.case_{next(_NUMBERS)}",
            self.ddl,
            partition_by=list(self.partition_by),
            format_version=version,
            properties=properties,
        )
        if self.more:
            with table.update_schema() as change:
                for name, kind in self.more.items():
                    change.add_column(name, kind)
        bench = Bench(table, lake.spark)
        for batch in self.rows:
            if isinstance(batch, str):
                table.append(lake.spark.sql(batch))
            else:
                table.append(bench.frame(self.ddl.replace("not null", ""), *batch).coalesce(1))
        return bench


def refused(
    name: str,
    kind: type[Exception],
    says: str,
    do: Callable[[Bench], object],
    *,
    ddl: str = "id int, v int",
    rows: Sequence[Sequence[Row] | str] = (((1, 1),),),
    **more: Any,
) -> Case:
    """Return a case of a command that is refused."""
    return Case(name=name, ddl=ddl, rows=rows, do=do, refused=kind, says=says, **more)


def ways_of(cases: Sequence[Case]) -> Iterator[tuple[Case, str, int, bool]]:
    """Give each case its modes and versions, one in turn: whether CI takes it.

    A case for both modes has the other one in a soak.
    """
    for number, case in enumerate(cases):
        ways = [way for way in WAYS if way[1] in case.versions]
        ways = ways or [(mode, each) for each in case.versions for mode, _ in WAYS[:2]]
        first = ways[number % len(ways)]
        yield (case, *first, case.in_ci)
        if case.both:
            yield next((case, *way, False) for way in ways if way[0] != first[0])


def rows_of(table: Table, select: Sequence[str] = ("*",), **scan: Any) -> Counter[str]:
    """The rows as a multiset of what tells all values apart, NaN and -0.0 too."""
    found = table.scan(**scan).to_df().selectExpr(*select).collect()
    return Counter(repr(_plain(tuple(row))) for row in found)


def as_multiset(rows: Sequence[Row]) -> Counter[str]:
    """Expected rows as `rows_of` gives them."""
    return Counter(repr(_plain(row)) for row in rows)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_plain(each) for each in value)
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return sorted((_plain(key), _plain(each)) for key, each in value.items())
    return bytes(value) if isinstance(value, bytearray) else value


@contextmanager
def session_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for a block."""
    before = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
