"""The Java library through the gateway: its catalogs, its tables, its own records.

It has types that Spark lacks; its records are the way to write and to read them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Any

from interop_cases import Filter, Row, TypeCase
from interop_engines import Results, nanosecond_text


def java_table(spark: Any, name: str) -> Any:
    """The Java runtime's table object of a table in one of its catalogs."""
    util = spark._jvm.org.apache.iceberg.spark.Spark3Util
    return util.loadIcebergTable(spark._jsparkSession, name)


def java_catalog(spark: Any, name: str) -> Any:
    """The Java library's catalog behind one of Spark's catalogs."""
    util = spark._jvm.org.apache.iceberg.spark.Spark3Util
    return util.loadIcebergCatalog(spark._jsparkSession, name)


def read_with_java_records(
    spark: Any, name: str, case: TypeCase, filters: Sequence[Filter]
) -> Results:
    """Through the Java library's own reader of records, for types that Spark does not have."""
    jvm = spark._jvm
    table = java_table(spark, name)
    results: Results = []
    for wanted in (None, *filters):
        builder = jvm.org.apache.iceberg.data.IcebergGenerics.read(table)
        if wanted is not None:
            text = json.dumps(_java_filter(case.type, wanted))
            builder = builder.where(
                jvm.org.apache.iceberg.expressions.ExpressionParser.fromJson(text, table.schema())
            )
        records = builder.build().iterator()
        rows: list[Row] = []
        while records.hasNext():
            record = records.next()
            value = record.get(1)
            rows.append((record.get(0), _from_java(case.type, value)))
        results.append(rows)
    return results


def append_java_records(table: Any, spark: Any, case: TypeCase, rows: Sequence[Row]) -> None:
    """Append rows as the Java library's own records: one file for each partition, one commit."""
    jvm = spark._jvm
    iceberg = jvm.org.apache.iceberg
    key = iceberg.PartitionKey(table.spec(), table.schema())
    view = iceberg.data.InternalRecordWrapper(table.schema().asStruct())
    parts: dict[str, list[Any]] = {}
    keys: dict[str, Any] = {}
    for number, value in rows:
        record = iceberg.data.GenericRecord.create(table.schema())
        record.set(0, number)
        record.set(1, _to_java(jvm, case.type, value))
        key.partition(view.wrap(record))
        parts.setdefault(key.toString(), []).append(record)
        keys.setdefault(key.toString(), key.copy())
    parquet = iceberg.FileFormat.PARQUET
    files = iceberg.io.OutputFileFactory.builderFor(table, 1, 1).format(parquet).build()
    loader = table.getClass().getClassLoader()
    record_class = loader.loadClass("org.apache.iceberg.data.Record")
    append = table.newAppend()
    for name, records in parts.items():
        place = files.newOutputFile(table.spec(), keys[name])
        builder = iceberg.formats.FormatModelRegistry.dataWriteBuilder(parquet, record_class, place)
        builder = builder.schema(table.schema()).spec(table.spec()).partition(keys[name])
        writer = builder.build()
        for record in records:
            writer.write(record)
        writer.close()
        append.appendFile(writer.toDataFile())
    append.commit()


def _to_java(jvm: Any, iceberg_type: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, bytes):
        return jvm.java.nio.ByteBuffer.wrap(value)
    if isinstance(value, time):
        return jvm.java.time.LocalTime.parse(value.isoformat())
    text = nanosecond_text(value)
    if "tz" in iceberg_type:
        return jvm.java.time.OffsetDateTime.parse(text + "+00:00")
    return jvm.java.time.LocalDateTime.parse(text)


def _java_filter(iceberg_type: str, wanted: Filter) -> dict[str, Any]:
    if wanted.op in ("is null", "is nan"):
        return {"type": wanted.op.replace(" ", "-"), "term": "v"}
    value = wanted.value
    if iceberg_type.endswith("_ns"):
        value = nanosecond_text(value) + ("+00:00" if "tz" in iceberg_type else "")
    else:
        value = value.isoformat()
    kind = {"=": "eq", "<": "lt", ">=": "gt-eq"}[wanted.op]
    # The library's own evaluation of rows sorts NULL before every value.
    return {
        "type": "and",
        "left": {"type": "not-null", "term": "v"},
        "right": {"type": kind, "term": "v", "value": value},
    }


def _from_java(iceberg_type: str, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, int):
        return value
    if iceberg_type.startswith(("geometry", "geography")):
        return bytes(value.array())
    text = str(value.toString())
    if iceberg_type == "time":
        return time.fromisoformat(text)
    parts = re.fullmatch(r"(-?\d+)-(\d+)-(\d+)T(\d+):(\d+)(?::(\d+)(?:\.(\d+))?)?Z?", text)
    assert parts is not None, text
    whole = datetime(*(int(part or 0) for part in parts.groups()[:6]), tzinfo=UTC)
    days_and_seconds = whole - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = days_and_seconds.days * 86_400 + days_and_seconds.seconds
    return seconds * 10**9 + int((parts[7] or "").ljust(9, "0"))
