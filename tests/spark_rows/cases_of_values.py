"""What is stored: Python values, casts, lossy values, types that Spark lacks, nested columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from uuid import UUID

import pandas as pd
import polars as pl
import pyarrow as pa
from pyspark.sql import Row
from row_case import Bench, Case, refused

from frazil.errors import SchemaMismatchError, ValidationError

KV = "id int, v int"
NOON = dt.time(12)
NOON_MICROS = 43_200_000_000
LOCAL_NOON = int(dt.datetime(2024, 1, 1, 12).timestamp())
NEW_YEAR_NANOS = 1_704_067_200_000_000_000
ID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
NUMBERS = "id int, i int, d decimal(4, 2), a array<int>, n struct<x: int>"
NUMBER_ROWS = [[(1, 1, Decimal("1.00"), [1], (1,)), (2, 2, None, None, None)]]
NESTED = (
    "id int, a array<struct<x: int, y: string>>, m map<string, struct<x: int>>, "
    "s struct<a: struct<b: int, c: int>, d: array<int>>"
)


def _lossy(name: str, column: str, value: object, ansi: str) -> Case:
    return Case(
        name=f"{name}, ANSI {ansi}",
        ddl=NUMBERS,
        rows=NUMBER_ROWS,
        settings={"spark.sql.ansi.enabled": ansi},
        do=lambda b: b.table.update({column: value}, "id = 1"),
        refused=SchemaMismatchError,
        says="does not fit|cannot hold",
    )


def _types_of_others(bench: Bench) -> None:
    """Two clauses for rows, one for new ones: all of them meet in one column."""
    table = bench.table
    source = bench.spark.sql(
        f"select 1 id, timestamp_ntz'2024-01-01 00:00:00' n, timestamp'2024-01-01 00:00:00' z, "
        f"{NOON_MICROS}L t, upper('{ID}') u, X'0A0B' f union all "
        f"select 3, timestamp_ntz'2024-01-01 00:00:00', null, 5L, '{ID}', null"
    )
    (
        table.merge(source, ["id"])
        .when_matched_update_all()
        .when_not_matched_insert({"id": "source.id", "n": "source.n", "t": "source.t"})
        .execute()
    )
    table.update({"n": "7L", "t": NOON, "u": ID, "f": b"zz"}, "id = 2")


def _times(bench: Bench) -> None:
    """Where Spark's own type of times is on, rows have it, and defaults too."""
    table = bench.table
    with table.update_schema() as change:
        change.add_column("w", "time", default=dt.time(1, 2, 3))
    source = bench.spark.sql("select 1 id, time'12:00:00.5' t union all select 3, null")
    (
        table.merge(source, ["id"])
        .when_matched_update({"t": "source.t"})
        .when_not_matched_insert({"id": "source.id", "t": "source.t"})
        .execute()
    )
    table.update({"t": NOON_MICROS}, "id = 2")


def _nested(bench: Bench) -> None:
    """Fields by name, whatever their order; casts below; NULL stays NULL."""
    table = bench.table
    source = bench.spark.sql(
        "select 1 id, array(named_struct('y', 'q', 'x', 5L), null) a, "
        "map('z', named_struct('x', cast(7 as smallint))) m, "
        "named_struct('d', array(9L, null), 'a', named_struct('c', 4, 'b', 3)) s "
        "union all select 3, array(), map(), null"
    )
    table.upsert(source, ["id"])
    table.update(
        {
            "s.a.b": "s.a.b + 1",
            "a": "transform(a, e -> if(e is null, null, named_struct('y', e.y, 'x', e.x + 1)))",
        },
        "exists(a, e -> e.x = 5) or s.a.b = 9",
    )
    table.update({"s.a.c": "id"}, "id = 2")


def _frames(bench: Bench) -> None:
    table = bench.table
    table.upsert(pd.DataFrame({"v": [10, 30], "id": [1, 3]}), "id")
    table.upsert(pl.DataFrame({"id": [4], "v": [40]}), "id")
    table.upsert(pa.table({"id": [5], "v": pa.array([50], pa.uint8())}), "id")
    other = bench.spark.newSession()
    table.upsert(other.createDataFrame([(1, 11)], KV), "id")


CASES = (
    _lossy("a long that no int is", "i", "3000000000L", "true"),
    _lossy("a long in an array", "a", "array(1, 3000000000L)", "false"),
    _lossy("text for a number", "i", "'7'", "false"),
    Case(
        name="values that fit are cast",
        ddl="id int, i int, d double, t string, ts timestamp_ntz, x decimal(10, 3)",
        rows=[[(1, 0, None, None, None, None), (2, 0, None, None, None, None)]],
        do=lambda b: b.table.update(
            {"i": "7L", "d": Decimal("1.5"), "t": 12, "ts": dt.date(2024, 1, 2), "x": "1.25D"},
            "id = 1",
        ),
        after=[
            (1, 7, 1.5, "12", dt.datetime(2024, 1, 2), Decimal("1.250")),
            (2, 0, None, None, None, None),
        ],
    ),
    Case(
        name="A datetime without a zone is local time, or what clocks show where a column has none",
        ddl="id int, a timestamp_ntz, b timestamp, c timestamp, l array<timestamp>, "
        "s struct<t: timestamp>",
        settings={"spark.sql.session.timeZone": "America/New_York"},
        rows=[[(1, None, None, None, None, None)]],
        do=lambda b: b.table.update(
            {
                "a": dt.datetime(2024, 1, 1, 12, 0, 0, 5),
                "b": dt.datetime(2024, 1, 1, 12),
                "c": dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC),
                "l": [dt.datetime(2024, 1, 1, 12), None],
                "s": Row(t=dt.datetime(2024, 1, 1, 12)),
            }
        ),
        select=(
            *("id", "string(a)", "unix_seconds(b)", "unix_seconds(c)"),
            *("unix_seconds(l[0])", "unix_seconds(s.t)"),
        ),
        # Python's own reading, which is PySpark's too.
        after=[
            (1, "2024-01-01 12:00:00.000005", LOCAL_NOON, 1_704_110_400, LOCAL_NOON, LOCAL_NOON)
        ],
        both=True,
    ),
    Case(
        name="Python's decimals, bytes, lists and mappings",
        ddl="id int, d decimal(38, 10), b binary, a array<int>, m map<string, int>, n double",
        rows=[[(1, None, None, None, None, None)]],
        do=lambda b: b.table.update(
            {
                "d": Decimal("1234567890123456789.0000000001"),
                "b": b"a\x00",
                "a": [1, None],
                "m": {"k": 2},
                "n": float("-inf"),
            }
        ),
        after=[
            (
                1,
                Decimal("1234567890123456789.0000000001"),
                b"a\x00",
                [1, None],
                {"k": 2},
                float("-inf"),
            )
        ],
    ),
    refused(
        "a Python value that Spark has not",
        ValidationError,
        "is no value that Spark knows",
        lambda b: b.table.update({"v": object()}),
    ),
    Case(
        name="nanoseconds, times, uuids and fixed",
        ddl="id int",
        more={
            "n": "timestamp_ns",
            "z": "timestamptz_ns",
            "t": "time",
            "u": "uuid",
            "f": "fixed[2]",
        },
        rows=[
            f"select 1 id, 1L n, 2L z, 3L t, '{ID}' u, X'0102' f union all "
            f"select 2, 1234567890123456789L, null, 4L, null, X'0103'"
        ],
        do=_types_of_others,
        after=[
            (1, NEW_YEAR_NANOS, NEW_YEAR_NANOS, NOON_MICROS, str(ID), b"\x0a\x0b"),
            (2, 7, None, NOON_MICROS, str(ID), b"zz"),
            (3, NEW_YEAR_NANOS, None, 5, None, None),
        ],
        versions=(3,),
        both=True,
    ),
    Case(
        name="a time that nanoseconds do not reach",
        ddl="id int",
        more={"n": "timestamp_ns"},
        settings={"spark.sql.ansi.enabled": "false"},
        rows=["select 1 id, 1L n"],
        do=lambda b: b.table.update({"n": "timestamp_ntz'2400-01-01 00:00:00'"}),
        refused=SchemaMismatchError,
        says="nanoseconds since 1970",
        versions=(3,),
    ),
    Case(
        name="times as Spark's own type",
        ddl="id int",
        more={"t": "time"},
        settings={"spark.sql.timeType.enabled": "true"},
        rows=["select 1 id, time'00:00:00' t union all select 2, null"],
        do=_times,
        after=[
            (1, dt.time(12, 0, 0, 500_000), dt.time(1, 2, 3)),
            (2, NOON, dt.time(1, 2, 3)),
            (3, None, dt.time(1, 2, 3)),
        ],
        versions=(3,),
    ),
    Case(
        name="arrays and maps of structs, fields of fields",
        ddl=NESTED,
        rows=[[(1, [(1, "a")], {"k": (1,)}, ((1, 2), [1])), (2, None, None, None)]],
        do=_nested,
        after=[
            (1, [(6, "q"), None], {"z": (7,)}, ((4, 4), [9, None])),
            (2, None, None, ((None, 2), None)),
            (3, [], {}, None),
        ],
    ),
    Case(
        name="sources of pandas, Polars, Arrow and another session",
        ddl=KV,
        rows=[[(1, 1), (2, 2)]],
        do=_frames,
        after=[(1, 11), (2, 2), (3, 30), (4, 40), (5, 50)],
    ),
    refused(
        "NULL into a required column",
        SchemaMismatchError,
        "'id' is required",
        lambda b: b.table.update({"id": "nullif(id, 2)"}),
        ddl="id int not null, v int",
        rows=[[(1, 1), (2, 2)]],
    ),
    refused(
        "an insert without a required column",
        ValidationError,
        "'id' gets no value",
        lambda b: (
            b.table.merge(b.frame(KV, (2, 2)), ["id"])
            .when_not_matched_insert({"v": "source.v"})
            .execute()
        ),
        ddl="id int not null, v int",
    ),
    refused(
        "an aggregate as a value",
        ValidationError,
        r"sum\(v\)",
        lambda b: b.table.update({"v": "sum(v)"}),
    ),
    refused(
        "a value for the field of a list's elements",
        ValidationError,
        "give the whole list or map",
        lambda b: b.table.update({"a.element.x": "2"}),
        ddl="id int, a array<struct<x: int>>",
        rows=[[(1, [(1,)])]],
    ),
    refused(
        "a value that names the row id",
        ValidationError,
        "_row_id",
        lambda b: b.table.update({"v": "_row_id"}),
        versions=(3,),
    ),
    refused(
        "a value that cannot be parsed",
        ValidationError,
        "v +",
        lambda b: b.table.update({"v": "v +"}),
    ),
)
