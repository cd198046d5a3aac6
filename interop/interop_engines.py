"""Reading and writing through each engine, with rows as plain Python values.

A reader takes a table and filters and gives, for no filter and then for each, the rows ``(id, v)``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import duckdb_extension_avro
import duckdb_extension_httpfs
import duckdb_extension_iceberg
import pyarrow as pa
from interop_cases import Filter, Row, TypeCase
from pyiceberg import expressions as E
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame
from pyspark.sql.types import GeographyType, GeometryType

from frazil.format.predicates import col

Results = list[list[Row]]

_MICROS_A_SECOND = 1_000_000


# -- values ----------------------------------------------------------------------------------------


def time_of(micros: int) -> time:
    """A time of the day from its microseconds."""
    seconds, micro = divmod(micros, _MICROS_A_SECOND)
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micro)


def micros_of(value: time) -> int:
    """Microseconds of the day."""
    whole = (value.hour * 60 + value.minute) * 60 + value.second
    return whole * _MICROS_A_SECOND + value.microsecond


def _python(iceberg_type: str, value: Any) -> Any:
    """A value that an engine gave, in the form that `interop_cases` states it in."""
    if value is None:
        return None
    match iceberg_type:
        case "time" if isinstance(value, int):
            return time_of(value)
        case "uuid" if isinstance(value, bytes):
            return UUID(bytes=value)
        case "uuid":
            return value if isinstance(value, UUID) else UUID(value)
        case "variant":
            return json.loads(value)
        case _:
            return value


def rows_of_arrow(table: pa.Table, iceberg_type: str) -> list[Row]:
    """The pairs ``(id, v)`` of an Arrow table."""
    values = table.column("v")
    if pa.types.is_timestamp(values.type) and values.type.unit == "ns":
        values = values.cast(pa.int64())
    if pa.types.is_time64(values.type) and values.type.unit == "ns":
        values = values.cast(pa.time64("us"))
    pairs = zip(table.column("id").to_pylist(), values.to_pylist(), strict=True)
    return [(number, _python(iceberg_type, value)) for number, value in pairs]


def nanosecond_text(nanos: int) -> str:
    seconds, rest = divmod(nanos, 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}"


# -- rows to write ---------------------------------------------------------------------------------


def arrow_for_spark(case: TypeCase, rows: Sequence[Row]) -> pa.Table:
    """Rows in the types of Spark's DataFrame: what Spark lacks is an integer or a text."""
    values = [value for _, value in rows]
    match case.type:
        case "time":
            stored = pa.array([None if v is None else micros_of(v) for v in values], pa.int64())
        case "timestamp_ns" | "timestamptz_ns":
            stored = pa.array(values, pa.int64())
        case "uuid":
            stored = pa.array([None if v is None else str(v) for v in values], pa.string())
        case "variant":
            stored = pa.array([None if v is None else json.dumps(v) for v in values], pa.string())
        case "unknown":
            stored = pa.nulls(len(values))
        case _:
            stored = pa.array(values, arrow_type(case.type, for_spark=True))
    return pa.table({"id": pa.array([number for number, _ in rows], pa.int32()), "v": stored})


def _arrow_for_duckdb(case: TypeCase, rows: Sequence[Row]) -> pa.Table:
    """Rows in types that DuckDB takes from Arrow, or casts."""
    if case.type in ("uuid", "variant"):
        return arrow_for_spark(case, rows)
    return arrow_of_table(case, rows)


def arrow_of_table(case: TypeCase, rows: Sequence[Row]) -> pa.Table:
    """Rows in the Arrow types that the Iceberg types are."""
    values = [value for _, value in rows]
    if case.type == "uuid":
        values = [None if value is None else value.bytes for value in values]
    stored = pa.array(values, arrow_type(case.type))
    return pa.table({"id": pa.array([number for number, _ in rows], pa.int32()), "v": stored})


def arrow_type(iceberg_type: str, *, for_spark: bool = False) -> pa.DataType:
    """The Arrow type of an Iceberg primitive type."""
    decimal = re.fullmatch(r"decimal\((\d+), (\d+)\)", iceberg_type)
    if decimal:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    fixed = re.fullmatch(r"fixed\[(\d+)\]", iceberg_type)
    if fixed:
        return pa.binary() if for_spark else pa.binary(int(fixed[1]))
    return {
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "time": pa.time64("us"),
        "timestamp": pa.timestamp("us"),
        "timestamptz": pa.timestamp("us", "UTC"),
        "timestamp_ns": pa.timestamp("ns"),
        "string": pa.string(),
        "uuid": pa.binary(16),
        "binary": pa.binary(),
        # Well-known binary.
        "geometry": pa.binary(),
        "geography": pa.binary(),
    }[iceberg_type.partition("(")[0]]


def spark_rows(spark: Any, case: TypeCase, rows: Sequence[Row]) -> DataFrame:
    """Rows as a DataFrame."""
    value = {"variant": "parse_json(v)", "timestamp": "cast(v as timestamp_ntz)"}.get(
        case.type, "v"
    )
    df = spark.createDataFrame(arrow_for_spark(case, rows)).coalesce(1)
    return df.selectExpr("id", f"{value} as v")


def spark_rows_for_java(spark: Any, case: TypeCase, rows: Sequence[Row]) -> DataFrame:
    """Rows as a DataFrame of the types that the Java runtime asks for."""
    value = {"geometry": "st_setsrid(st_geomfromwkb(v), 4326)", "geography": "st_geogfromwkb(v)"}
    df = spark_rows(spark, case, rows)
    return df.selectExpr("id", f"{value.get(case.type, 'v')} as v")


# -- Frazil ----------------------------------------------------------------------------------------


def read_with_frazil(table: Any, case: TypeCase, filters: Sequence[Filter]) -> Results:
    """Through `Table.scan`: every other filter as text, the rest as expressions."""
    frames = [table.to_df()]
    for number, wanted in enumerate(filters):
        as_text = number % 2 or case.type.endswith("_ns")
        where = _frazil_text(case.type, wanted) if as_text else _frazil_expression(wanted)
        frames.append(table.scan(where=where).to_df())
    return _collected(frames, case)


def _frazil_text(iceberg_type: str, wanted: Filter) -> str:
    match wanted.op:
        case "is nan":
            return "isnan(v)"
        case "is null":
            return "v is null"
        case op:
            value = wanted.value
            if iceberg_type.endswith("_ns"):
                value = nanosecond_text(value)
            return f"v {op} {_plain_literal(value)}"


def _plain_literal(value: Any) -> str:
    match value:
        case bool() | int() | Decimal():
            return str(value).lower()
        case float():
            return f"{value!r}D"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime() | date() | time():
            return f"'{value.isoformat()}'"
        case _:
            return f"'{value}'"


def _frazil_expression(wanted: Filter) -> Any:
    column = col("v")
    match wanted.op:
        case "=":
            return column == wanted.value
        case "<":
            return column < wanted.value
        case ">=":
            return column >= wanted.value
        case "is nan":
            return column.is_nan()
        case _:
            return column.is_null()


def _collected(frames: Sequence[DataFrame], case: TypeCase) -> Results:
    """All queries in one Spark job, told apart by a number."""
    numbered = []
    for number, frame in enumerate(frames):
        # The Java runtime gives Spark's geometries, Frazil well-known binary unless asked.
        is_geospatial = isinstance(frame.schema["v"].dataType, GeometryType | GeographyType)
        value = (
            "to_json(v)" if case.type == "variant" else "st_asbinary(v)" if is_geospatial else "v"
        )
        numbered.append(frame.selectExpr(f"{number} as query", "id", f"{value} as v"))
    table = reduce(DataFrame.unionAll, numbered).toArrow()
    numbers = table.column("query").to_pylist()
    results: Results = [[] for _ in frames]
    for number, row in zip(numbers, rows_of_arrow(table, case.type), strict=True):
        results[number].append(row)
    return results


# -- the Java runtime ------------------------------------------------------------------------------


def read_with_java(spark: Any, name: str, case: TypeCase, filters: Sequence[Filter]) -> Results:
    """Through Spark SQL on the Java runtime's catalog."""
    frames = [spark.table(name)]
    frames.extend(spark.table(name).where(spark_condition(case.type, item)) for item in filters)
    return _collected(frames, case)


def spark_condition(iceberg_type: str, wanted: Filter, column: str = "v") -> str:
    """A filter in Spark's SQL."""
    match wanted.op:
        case "is null":
            return f"{column} is null"
        case "is nan":
            return f"isnan({column})"
        case op:
            return f"{column} {op} {_spark_literal(iceberg_type, wanted.value)}"


def _spark_literal(iceberg_type: str, value: Any) -> str:
    match iceberg_type:
        case "boolean" | "int":
            return str(value).lower()
        case "long":
            return f"{value}L"
        case "float" | "double":
            return f"cast('{value!r}' as {iceberg_type})"
        case "date":
            return f"date'{value.isoformat()}'"
        case "timestamp":
            return f"timestamp_ntz'{value.isoformat(sep=' ')}'"
        case "timestamptz":
            return f"timestamp'{value.isoformat(sep=' ')}'"
        case "string" | "uuid":
            return f"'{value}'"
        case text if text.startswith("decimal"):
            return f"cast('{value}' as {text})"
        case _:
            return f"X'{value.hex()}'"


# -- PyIceberg -------------------------------------------------------------------------------------


def pyiceberg_catalog(warehouse: Path) -> SqlCatalog:
    """PyIceberg's catalog on the database that Frazil and the Java runtime use."""
    uri = f"sqlite:///{warehouse / 'catalog.db'}"
    return SqlCatalog("java_sql", uri=uri, warehouse=f"file://{warehouse}")


def read_with_pyiceberg(metadata: str, case: TypeCase, filters: Sequence[Filter]) -> Results:
    """Through PyIceberg, from the metadata file."""
    table = StaticTable.from_metadata(metadata)
    conditions = [E.AlwaysTrue(), *(_pyiceberg_expression(case.type, item) for item in filters)]
    return [
        rows_of_arrow(table.scan(row_filter=condition).to_arrow(), case.type)
        for condition in conditions
    ]


def _pyiceberg_expression(iceberg_type: str, wanted: Filter) -> Any:
    value = wanted.value
    if iceberg_type in ("timestamp", "timestamptz", "date", "time") and value is not None:
        value = value.isoformat()
    if iceberg_type.endswith("_ns") and value is not None:
        value = nanosecond_text(value) + ("+00:00" if "tz" in iceberg_type else "")
    match wanted.op:
        case "=":
            return E.EqualTo("v", value)
        case "<":
            return E.LessThan("v", value)
        case ">=":
            return E.GreaterThanOrEqual("v", value)
        case "is nan":
            return E.IsNaN("v")
        case _:
            return E.IsNull("v")


# -- DuckDB ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DuckDB:
    """A connection with the Iceberg extension, and the one to reach a REST catalog."""

    connection: duckdb.DuckDBPyConnection

    @classmethod
    def started(cls) -> DuckDB:
        """DuckDB with the extensions of the packages beside it; nothing is downloaded."""
        connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        for module, name in (
            (duckdb_extension_avro, "avro"),
            (duckdb_extension_httpfs, "httpfs"),
            (duckdb_extension_iceberg, "iceberg"),
        ):
            folder = Path(next(iter(module.__path__))) / "extensions" / f"v{duckdb.__version__}"
            connection.execute(f"LOAD '{folder / name}.duckdb_extension'")
        connection.execute("SET TimeZone = 'UTC'")
        return cls(connection)

    def query(self, text: str) -> pa.Table:
        """The result of a query."""
        return self.connection.execute(text).to_arrow_table()

    def attach(self, name: str, address: str) -> None:
        """Make a REST catalog's tables readable and writable under a name."""
        options = f"type iceberg, endpoint '{address}', authorization_type 'none'"
        self.connection.execute(f"attach '' as {name} ({options})")

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows that a statement gives."""
        return self.connection.execute(statement).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is run inside in one commit, or nothing where it fails."""
        self.run("begin")
        try:
            yield
        except BaseException:
            self.run("rollback")
            raise
        self.run("commit")

    def insert(self, table: str, case: TypeCase, rows: Sequence[Row]) -> None:
        """Append rows ``(id, v)``."""
        values = {
            "geometry": "st_geomfromwkb(v)",
            "uuid": "v::uuid",
            "variant": "v::json::variant",
        }
        self.connection.register("new_rows", _arrow_for_duckdb(case, rows))
        value = values.get(case.type.partition("(")[0], "v")
        self.connection.execute(f"insert into {table} select id, {value} from new_rows")

    def read(self, metadata: str, case: TypeCase, filters: Sequence[Filter]) -> Results:
        """Through ``iceberg_scan`` of the metadata file."""
        source = f"iceberg_scan('{metadata.removeprefix('file://')}')"
        conditions = ["true", *(_duckdb_condition(case.type, item) for item in filters)]
        value = "v::json as v" if case.type == "variant" else "v"
        return [
            rows_of_arrow(
                self.query(f"select id, {value} from {source} where {condition}"), case.type
            )
            for condition in conditions
        ]


def duckdb_type(iceberg_type: str) -> str:
    """The name that DuckDB has, or would have, for an Iceberg primitive type."""
    names = {"long": "bigint", "string": "varchar", "binary": "blob"}
    return names.get(iceberg_type, iceberg_type)


def _duckdb_condition(iceberg_type: str, wanted: Filter) -> str:
    match wanted.op:
        case "is null":
            return "v is null"
        case "is nan":
            return "isnan(v)"
        case op:
            return f"v {op} {_duckdb_literal(iceberg_type, wanted.value)}"


def _duckdb_literal(iceberg_type: str, value: Any) -> str:
    if isinstance(value, bytes):
        escaped = "".join(f"\\x{byte:02X}" for byte in value)
        return f"'{escaped}'::blob"
    if iceberg_type.endswith("_ns"):
        return f"'{nanosecond_text(value)}'::timestamp_ns"
    return f"'{value}'::{duckdb_type(iceberg_type)}"
