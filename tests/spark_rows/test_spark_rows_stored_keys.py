"""Keys count as the column stores them: what is one row there is one key in a source.

What each column makes of a value is told by plain Spark's store assignment and by the types'
definitions, and is data here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import count
from typing import Any, Final

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from row_case import as_multiset, rows_of, session_with

import frazil
from ci_share import in_circles, only_in_check, only_in_soak
from frazil.changes import ARRIVAL
from frazil.errors import SchemaMismatchError, ValidationError
from frazil.format.schema import Schema
from frazil.format.schema.types_json import parse_type
from frazil.format.types import DateType, NestedField, StringType, StructType, UUIDType
from frazil.spark.abilities import HAS_TIME_TYPE
from frazil.spark.lake import Lake
from frazil.spark.table import Table

_NUMBERS = count()
ID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
NS = 1_704_103_200_000_000_000
"""2024-01-01 10:00."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as its column has it, as a source has it, and as another row of the source has it."""

    column: str
    stored: str
    given: str
    again: str
    changes: bool = False
    """Whether `apply_changes`, which takes what appends take, knows such keys."""

    def __str__(self) -> str:
        return f"{self.column} from {self.given}"

    def fits(self, way: str) -> bool:
        """Whether tables of the way's version have such columns."""
        return "v2" not in way or "_ns" not in self.column


def _keys() -> list[Key]:
    ntz, day = "timestamp_ntz'2024-01-01 10:00:00'", "date'2024-01-01'"
    zoned = "timestamp'2024-01-01 10:00:00'"
    return [
        Key("uuid", ID, f"upper('{ID}')", f"'{ID}'", True),
        Key("date", "2024-01-01", ntz, "timestamp_ntz'2024-01-01 23:59:59.999999'"),
        Key("date", "2024-01-01", zoned, "timestamp'2024-01-01 00:00:00'"),
        Key("timestamp", "2024-01-01 00:00:00", day, day),
        Key("timestamp", "2024-01-01 10:00:00", zoned, zoned),
        Key("timestamptz", "2024-01-01 00:00:00", day, day),
        Key("timestamptz", "2024-01-01 10:00:00", ntz, ntz),
        Key("timestamp_ns", str(NS), ntz, ntz, True),
        Key("timestamptz_ns", str(NS), zoned, zoned, True),
        Key("timestamptz_ns", str(NS), f"{NS}L", f"{NS}L", True),
        Key("time", "36000000000", "36000000000L", "36000000000L", True),
        Key("fixed[2]", "ab", "X'6162'", "X'6162'", True),
        Key("binary", "ab", "X'6162'", "X'6162'", True),
        Key("float", "0.1", "0.1D", "0.1000000001D"),
        Key("float", "1.5", "1.5BD", "1.50BD"),
        Key("float", "1.6777216E7", "16777217", "16777216"),
        Key("float", "NaN", "double('nan')", "-double('nan')"),
        Key("double", "0.10000000149011612", "0.1F", "0.1F"),
        Key("double", "9.007199254740992E15", "9007199254740993L", "9007199254740992L"),
        Key("decimal(9, 1)", "1.3", "1.26D", "1.3D"),
        Key("decimal(9, 1)", "1.3", "1.26BD", "1.250BD"),
        Key("decimal(9, 1)", "7.0", "7L", "7L"),
        Key("decimal(19, 0)", "7", "7L", "7L", True),
        Key("int", "1", "1.2BD", "1.4BD"),
        Key("int", "1", "1.9D", "1.2D"),
        Key("int", "7", "7L", "7L", True),
        Key("long", "7", "7Y", "7Y", True),
        Key("long", "1", "1.9F", "1.2F"),
        Key("string", "7", "7", "7"),
        Key("string", "1.20", "1.20BD", "1.20BD"),
        Key("string", "2024-01-01", day, day),
        Key("string", "true", "true", "true"),
        Key("string", "a", "cast('a' as varchar(3))", "'a'", True),
    ]


KEYS = _keys()
NO_TIMES: Final = {"spark.sql.timeType.enabled": "false", "spark.sql.session.timeZone": "UTC"}
"""Spark's own type for times is off: rows have them as numbers."""


def _upsert(table: Table, source: DataFrame, keys: Sequence[str]) -> Any:
    table.upsert(source, keys)


def _merge(table: Table, source: DataFrame, keys: Sequence[str]) -> Any:
    merge = table.merge(source, keys).when_matched_update_all()
    merge.when_not_matched_insert_all().execute()


def _changes(table: Table, source: DataFrame, keys: Sequence[str]) -> Any:
    table.apply_changes(source, keys=keys, mode="merge")


def _deletes(table: Table, source: DataFrame, keys: Sequence[str]) -> Any:
    table.apply_changes(source, keys=keys, mode="equality-deletes")


def _arriving(table: Table, source: DataFrame, keys: Sequence[str]) -> Any:
    table.apply_changes(source.coalesce(1), keys=keys, order_by=ARRIVAL, mode="merge")


WAYS: dict[str, tuple[Callable[..., Any], str, int]] = {
    "upsert v2": (_upsert, "copy-on-write", 2),
    "upsert v3": (_upsert, "merge-on-read", 3),
    "merge v3": (_merge, "copy-on-write", 3),
    "merge v2": (_merge, "merge-on-read", 2),
}
CHANGES: dict[str, tuple[Callable[..., Any], str, int]] = {
    "apply_changes": (_changes, "copy-on-write", 3),
    "equality deletes": (_deletes, "copy-on-write", 3),
    "ARRIVAL": (_arriving, "copy-on-write", 3),
}


def _table(lake: Lake, keys: Sequence[Key], mode: str = "copy-on-write", version: int = 3) -> Table:
    kinds = [parse_type(key.column) for key in keys]
    fields = [NestedField(n + 1, f"k{n}", kind) for n, kind in enumerate(kinds)]
    schema = Schema((*fields, NestedField(99, "s", StringType())))
    properties = {"write.merge.mode": mode}
    name = f"db.stored_{next(_NUMBERS)}"
    return lake.create_table(name, schema, format_version=version, properties=properties)


def _source(lake: Lake, keys: Sequence[Key], *rows: tuple[str, str]) -> DataFrame:
    """Rows of keys as they are given, or `again`, each with a text."""
    frames = []
    for which, text in rows:
        values = [getattr(key, which) for key in keys]
        named = ", ".join(f"{value} as k{n}" for n, value in enumerate(values))
        frames.append(lake.spark.sql(f"select {named}, '{text}' as s"))
    return reduce(DataFrame.unionByName, frames)


def _check_stored(table: Table, keys: Sequence[Key], text: str) -> None:
    shown = [f"string(k{n})" for n in range(len(keys))]
    found = table.refresh().to_df().selectExpr(*shown, "s").collect()
    assert len(found) == 1
    assert list(found[0]) == [*(key.stored for key in keys), text]


def _comes_again(lake: Lake, keys: Sequence[Key], way: tuple[Any, str, int], together: str) -> None:
    """A row that comes twice, as it is given and otherwise, is one; two at once are an error."""
    command, mode, version = way
    names = [f"k{n}" for n in range(len(keys))]
    with session_with(lake.spark, NO_TIMES):
        table = _table(lake, keys, mode, version)
        for which, text in (("given", "first"), ("given", "second"), ("again", "third")):
            command(table, _source(lake, keys, (which, text)), names)
            _check_stored(table, keys, text)
        location = table.metadata_location
        with pytest.raises(ValidationError, match=together):
            command(table, _source(lake, keys, ("given", "a"), ("again", "b")), names)
        assert table.refresh().metadata_location == location


def _together(way: str) -> str:
    if way.startswith("upsert"):
        return "2 rows have the keys k0="
    if way.startswith("merge"):
        return "2 rows of the source match one row of the table"
    return "several changes of one key"


@pytest.mark.parametrize(
    "way",
    [only_in_check("upsert v3"), *map(only_in_soak, ("merge v3", "upsert v2", "merge v2"))],
)
def test_keys_of_all_types_at_once_come_again(rows_lake: Lake, way: str) -> None:
    _comes_again(rows_lake, [key for key in KEYS if key.fits(way)], WAYS[way], _together(way))


@pytest.mark.check
@pytest.mark.parametrize("way", [only_in_soak(way) for way in CHANGES])
def test_keys_of_changes_come_again(rows_lake: Lake, way: str) -> None:
    keys = [key for key in KEYS if key.changes]
    if way == "ARRIVAL":
        # There the later row counts.
        _, mode, version = CHANGES[way]
        table = _table(rows_lake, keys, mode, version)
        names = [f"k{n}" for n in range(len(keys))]
        with session_with(rows_lake.spark, NO_TIMES):
            for rows in ([("given", "first")], [("given", "second"), ("again", "third")]):
                _arriving(table, _source(rows_lake, keys, *rows), names)
            assert table.refresh().to_df().select("s").collect() == [("third",)]
        return
    _comes_again(rows_lake, keys, CHANGES[way], _together(way))


@pytest.mark.parametrize(
    ("column", "given", "says"),
    in_circles(
        [
            ("uuid", f"'{{{ID}}}'", "'k0' is no uuid"),
            ("fixed[2]", "X'61'", "'k0' has not exactly 2 bytes"),
            only_in_soak("fixed[2]", "'ab'", "fixed.2. and cannot hold Spark's string"),
            ("binary", "'ab'", "binary and cannot hold string"),
            ("time", "86400000000L", "no microsecond of a day"),
            ("timestamp_ns", "timestamp_ntz'3000-01-01 00:00:00'", "nanoseconds since 1970"),
            ("int", "3000000000L", "does not fit into the column 'k0', which is int"),
            only_in_soak("int", "double('nan')", "does not fit into the column 'k0'"),
            ("decimal(3, 1)", "100BD", "does not fit into the column 'k0'"),
            only_in_soak("int", "'7'", "'k0' is int and cannot hold string"),
        ],
        test=1,
    ),
)
def test_keys_that_a_column_cannot_hold_are_refused(
    rows_lake: Lake, column: str, given: str, says: str
) -> None:
    """Also where no row of the source would be written."""
    key = Key(column, "", given, given)
    table = _table(rows_lake, [key])
    with session_with(rows_lake.spark, NO_TIMES):
        source = _source(rows_lake, [key], ("given", "a"))
        with pytest.raises(SchemaMismatchError, match=says):
            table.upsert(source, "k0")
        with pytest.raises(SchemaMismatchError, match=says):
            table.merge(source, ["k0"]).when_matched_delete().execute()
    assert table.refresh().current_snapshot is None


@pytest.mark.check
def test_clauses_have_keys_as_they_are_given(rows_lake: Lake) -> None:
    spark = rows_lake.spark
    table = rows_lake.create_table(f"db.given_{next(_NUMBERS)}", "day date, hour int, s string")
    table.append(spark.sql("select date'2024-01-01' day, 0 hour, 'old' s"))
    source = spark.sql(
        "select timestamp_ntz'2024-01-01 10:30:00' day, 'a' s union all "
        "select timestamp_ntz'2024-01-02 11:30:00', 'b' union all "
        "select timestamp_ntz'2024-01-03 12:30:00', 'c'"
    )
    (
        table.merge(source, ["day"])
        .when_matched_update({"hour": "hour(source.day)"}, condition="hour(source.day) = 10")
        .when_not_matched_insert(
            {"day": "source.day", "hour": "hour(source.day)", "s": "source.s"},
            condition="hour(source.day) = 11",
        )
        .execute()
    )
    assert rows_of(table, ["string(day)", "hour", "s"]) == as_multiset(
        [("2024-01-01", 10, "old"), ("2024-01-02", 11, "b")]
    )
    again = source.where("s = 'a'").selectExpr("day", "7 as hour", "s")
    merge = table.merge(again.union(again), ["day"]).when_matched_update_all()
    with pytest.raises(ValidationError, match=r"One of them: day=.*30\), hour=7, s='a'\. Leave"):
        merge.execute()


def test_keys_within_structs_and_their_structs(rows_lake: Lake) -> None:
    kind = StructType((NestedField(2, "u", UUIDType()), NestedField(3, "d", DateType())))
    schema = Schema((NestedField(1, "s", kind), NestedField(4, "v", StringType())))
    upper = f"upper('{ID}') as u, timestamp_ntz'2024-01-01 10:00:00' as d"
    for keys in (["s"], ["s.u", "s.d"], ["s.D"]):
        table = rows_lake.create_table(f"db.nested_{next(_NUMBERS)}", schema)
        for value in ("first", "second"):
            # The fields in another order, and a NULL.
            source = rows_lake.spark.sql(
                f"select named_struct('d', d, 'u', u) as s, '{value}' as v from (select {upper}) "
                "union all select null, 'none'"
            )
            table.upsert(source, keys, null_keys="equal")
        found = rows_of(table, ["s.u", "string(s.d)", "v"])
        assert found == as_multiset([(ID, "2024-01-01", "second"), (None, None, "none")])


@pytest.mark.skipif(not HAS_TIME_TYPE, reason="this Spark has no type of times")
def test_keys_of_spark_s_own_times(rows_lake: Lake) -> None:
    key = Key("time", "10:00:00", "time'10:00:00'", "time'10:00:00'")
    with session_with(rows_lake.spark, {"spark.sql.timeType.enabled": "true"}):
        table = _table(rows_lake, [key])
        source = _source(rows_lake, [key], ("given", "first")).withColumn(
            "k0", F.col("k0").cast("time(0)")
        )
        for command in (_upsert, _changes, _merge, _deletes, _upsert):
            command(table, source, ["k0"])
            _check_stored(table, [key], "first")


def test_days_out_of_pandas(rows_lake: Lake) -> None:
    table = rows_lake.create_table(f"db.pandas_{next(_NUMBERS)}", "day date, n int")
    for first in (1, 3):
        days = pd.to_datetime(["2024-01-01 10:00", "2024-01-02 11:00"])
        table.upsert(pd.DataFrame({"day": days, "n": [first, first + 1]}), "day")
    rows = [("2024-01-01", 3), ("2024-01-02", 4)]
    assert rows_of(table, ["string(day)", "n"]) == as_multiset(rows)


@pytest.mark.check
@pytest.mark.parametrize("mode", ["copy-on-write", only_in_soak("merge-on-read")])
def test_null_keys_are_distinct_or_equal(rows_lake: Lake, mode: str) -> None:
    """As UNIQUE NULLS DISTINCT and NULLS NOT DISTINCT of SQL."""
    ddl = "k int, d date, s string"
    table = rows_lake.create_table(
        f"db.nulls_{next(_NUMBERS)}", ddl, properties={"write.merge.mode": mode}
    )

    def source(text: str) -> DataFrame:
        return rows_lake.spark.sql(
            f"select cast(null as bigint) k, timestamp_ntz'2024-01-01 10:00:00' d, '{text}' s "
            f"union all select 1, null, '{text}' union all select 1, timestamp_ntz'2024-01-01', "
            f"'{text}'"
        )

    table.upsert(source("a"), ["k", "d"])
    table.upsert(source("b"), ["k", "d"])
    assert table.to_df().groupBy("s").count().orderBy("s").collect() == [("a", 2), ("b", 3)]
    table.delete("s = 'a'")
    table.upsert(source("c"), ["k", "d"], null_keys="equal")
    assert table.to_df().groupBy("s").count().collect() == [("c", 3)]
    days = source("d").withColumn("d", F.col("d").cast("date"))
    table.apply_changes(days, keys=["k", "d"])
    assert table.refresh().to_df().groupBy("s").count().collect() == [("d", 3)]
    twice = source("e").union(source("f")).where("d is null")
    with pytest.raises(ValidationError, match="2 rows have the keys k=1, d=None"):
        table.upsert(twice, ["k", "d"], null_keys="equal")
    with pytest.raises(ValidationError, match="'distinct' or 'equal', not 'same'"):
        table.upsert(twice, ["k", "d"], null_keys="same")  # type: ignore[arg-type]


def test_a_key_of_the_other_zero_beside_a_stored_one_is_the_same(rows_lake: Lake) -> None:
    """Spark tells the scan what it infers from the join, and Parquet tells the zeros apart."""
    fields = (
        frazil.NestedField(1, "a", frazil.types.FixedType(2)),
        frazil.NestedField(2, "b", frazil.types.FloatType()),
        frazil.NestedField(3, "n", frazil.types.IntegerType()),
    )
    table = rows_lake.create_table("db.other_zero", frazil.Schema(fields))
    for n, zero in enumerate(("0.0", "-0.0")):
        rows = rows_lake.spark.sql(f"select X'6162' as a, float({zero}) as b, {n} as n")
        table.upsert(rows, keys=["a", "b"])
    assert [row.n for row in table.to_df().collect()] == [1]
