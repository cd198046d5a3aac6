"""Reads the real tables of other engines and compares with their known rows.

    python tests/conformance/run.py [--fixtures FOLDER] [name ...]

For each table: right, refused (a typed error) or wrong; exits with 1 if any is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql import SparkSession

from frazil.catalog.static import StaticCatalog
from frazil.errors import FrazilError
from frazil.format import types as I
from frazil.spark.scan import Scan
from frazil.spark.session.facts import type_support
from frazil.spark.types import type_to_spark
from frazil.storage.moved import MovedFileIO

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT.parent / "shared" / "fixtures"

Verdict = Literal["right", "refused", "wrong"]


@dataclass(frozen=True)
class Expected:
    """One line of EXPECTED.jsonl."""

    table: str
    path: str
    metadata: str | None
    location: str | None
    count: int | None
    rows: list[list[Any]] | None
    source: str


@dataclass(frozen=True)
class Outcome:
    """What reading one table gave."""

    table: str
    verdict: Verdict
    detail: str = ""


def expectations(fixtures: Path) -> list[Expected]:
    """Every table of the fixtures."""
    lines = (fixtures / "EXPECTED.jsonl").read_text().splitlines()
    names = Expected.__dataclass_fields__
    return [Expected(**{name: json.loads(line).get(name) for name in names}) for line in lines]


# The expected rows are PyIceberg's alone, which turns a NULL map in a struct into an empty one. The
# footers of its two ORC files count 4 and 1 maps that are there: those of rows 1, 2, 3, 5 and 8. In
# the two other rows that have the struct the map is NULL.
NULL_MAPS = {"impala_complextypestbl_iceberg_orc": ("g", frozenset({4, 7}))}


def moved_prefixes(fixtures: Path, case: Expected, location: str) -> dict[str, str]:
    """Old path prefixes to where the files lie here."""
    base = f"file://{fixtures}"
    moved = {
        "data/persistent/": f"{base}/duckdb/",
        "file://data/persistent/": f"{base}/duckdb/",
        "lineitem_iceberg/": f"{base}/duckdb/iceberg/lineitem_iceberg/",
        "./lineitem_iceberg/": f"{base}/duckdb/iceberg/lineitem_iceberg/",
        "lineitem_iceberg_gz/": f"{base}/{case.path}/",
        "./lineitem_iceberg_gz/": f"{base}/{case.path}/",
    }
    for root in ("/test-warehouse/", "hdfs://localhost:20500/test-warehouse/"):
        moved[f"{root}iceberg_test/"] = f"{base}/impala/iceberg_test/"
    plain = location.removeprefix("hdfs://localhost:20500").rstrip("/")
    for old in (plain, f"hdfs://localhost:20500{plain}"):
        moved[f"{old}/"] = f"{base}/{case.path}/"
    return moved


def scan_of(spark: SparkSession, fixtures: Path, case: Expected, **options: Any) -> Scan:
    """The scan of a fixture table as it is now."""
    folder = f"file://{fixtures}/{case.path}"
    place = f"{folder}/metadata/{case.metadata}" if case.metadata else folder
    catalog = StaticCatalog(place)
    metadata = catalog.load_table(catalog.identifier).metadata
    io = MovedFileIO(moved_prefixes(fixtures, case, metadata.location))
    return Scan(spark, metadata, io, name=case.table, **options)


def check(spark: SparkSession, fixtures: Path, case: Expected) -> Outcome:
    """Read one table through the public path and compare."""
    try:
        scan = scan_of(spark, fixtures, case)
        types = [field.dataType.simpleString() for field in scan.to_df().schema]
        table = scan.to_arrow()
    except FrazilError as error:
        return Outcome(case.table, "refused", f"{type(error).__name__}: {error}")
    support = type_support(spark)
    fields = scan.projection.fields
    wanted = [type_to_spark(f.field_type, support=support).simpleString() for f in fields]
    if types != wanted:
        return Outcome(case.table, "wrong", f"types {types}, expected {wanted}")
    if case.count is None:
        return Outcome(case.table, "right", f"{table.num_rows} rows, nothing to compare with")
    if table.num_rows != case.count or scan.count() != case.count:
        return Outcome(case.table, "wrong", f"{table.num_rows} rows, expected {case.count}")
    if case.rows is None:
        return Outcome(case.table, "right", f"{case.count} rows")
    got = sorted(plain_rows(scan, table), key=_order)
    expected = sorted(case.rows, key=_order)
    if case.table in NULL_MAPS:
        expected = [_with_null_map(row, *NULL_MAPS[case.table]) for row in expected]
    for mine, theirs in zip(got, expected, strict=True):
        if not same(mine, theirs):
            return Outcome(case.table, "wrong", f"row {mine}, expected {theirs}")
    return Outcome(case.table, "right", f"{case.count} rows, all values")


def plain_rows(scan: Scan, table: pa.Table) -> Iterator[list[Any]]:
    """The rows in the form of EXPECTED.jsonl."""
    fields = scan.projection.fields
    columns = [
        [_plain(value, field.field_type) for value in column.to_pylist()]
        for field, column in zip(fields, table.columns, strict=True)
    ]
    return (list(row) for row in zip(*columns, strict=True))


def same(mine: Any, theirs: Any) -> bool:
    """Whether two plain values are equal; floats to the digits that were written down."""
    if isinstance(mine, float) and isinstance(theirs, int | float):
        return math.isclose(mine, theirs, rel_tol=1e-5) or (math.isnan(mine) and math.isnan(theirs))
    if isinstance(mine, list) and isinstance(theirs, list):
        return len(mine) == len(theirs) and all(map(same, mine, theirs))
    if isinstance(mine, list) and isinstance(theirs, dict):
        return same(mine, [list(pair) for pair in theirs.items()])
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(same(mine[k], theirs[k]) for k in mine)
    return bool(mine == theirs)


def _plain(value: Any, kind: I.IcebergType) -> Any:
    if value is None:
        return None
    match kind:
        case I.StructType(fields=fields):
            return {field.name: _plain(value[field.name], field.field_type) for field in fields}
        case I.ListType(element_type=element):
            return [_plain(item, element) for item in value]
        case I.MapType(key_type=key, value_type=held):
            return [[_plain(k, key), _plain(v, held)] for k, v in value]
        case I.TimestampNanoType() | I.TimestamptzNanoType():
            moment = datetime(1970, 1, 1) + timedelta(microseconds=value // 1000)
            return moment.isoformat()
        case I.TimeType() if isinstance(value, int):
            return (datetime(1970, 1, 1) + timedelta(microseconds=value)).time().isoformat()
        case I.TimestamptzType():
            return value.astimezone(UTC).isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(part, I.BinaryType()) for name, part in value.items()}
    return value


def _with_null_map(row: list[Any], name: str, ids: frozenset[int]) -> list[Any]:
    if row[0] not in ids:
        return row
    return [{**value, name: None} if isinstance(value, dict) else value for value in row]


def _order(row: Sequence[Any]) -> str:
    return json.dumps(
        [round(value, 4) if isinstance(value, float) else value for value in row],
        sort_keys=True,
        default=str,
    )


def main() -> int:
    """Check the tables that are named, or all; print one line each and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fixtures", type=Path, default=FIXTURES)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    totals = {"right": 0, "refused": 0, "wrong": 0}
    for case in expectations(options.fixtures):
        if options.names and case.table not in options.names:
            continue
        outcome = check(spark, options.fixtures, case)
        totals[outcome.verdict] += 1
        sys.stdout.write(f"{outcome.verdict:8} {outcome.table:48} {outcome.detail[:200]}\n")
        sys.stdout.flush()
    sys.stdout.write(", ".join(f"{name} {count}" for name, count in totals.items()) + "\n")
    spark.stop()
    return 1 if totals["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
