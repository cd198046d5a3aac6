"""Session settings that reading and writing need, and the only touch of the JVM.

Nothing here is needed for a session to work: over Spark Connect every function takes the way that
uses public settings alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.spark.types import SparkTypeSupport

READ_SETTINGS: Final[Mapping[str, str]] = {
    # Columns of a Parquet file are found by field id, never by name (SPEC rule 52).
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # A file without any id must fail in Spark's reader, not read as NULLs: Frazil reads such files
    # by their names, and this is what notices one that it took for a file with ids.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
}
"""Settings that a lazily evaluated DataFrame needs when it runs: they stay set."""

WRITE_SETTINGS: Final[Mapping[str, str]] = {
    # Iceberg forbids INT96 (SPEC rule 258), which is Spark's default for timestamps.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Three-level lists and decimals in int32 and int64 (SPEC rules 256 and 257).
    "spark.sql.parquet.writeLegacyFormat": "false",
    # Days and instants before 1582 keep their proleptic Gregorian meaning.
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""Settings for the moment of a native write: they are set around it and restored."""


def prepare_session(spark: SparkSession) -> None:
    """Set what every DataFrame over an Iceberg table needs when it runs.

    Calling it again costs one look-up a setting. Settings are the session's own: another session
    of the same application keeps its.
    """
    for key, value in READ_SETTINGS.items():
        if spark.conf.get(key, None) != value:
            spark.conf.set(key, value)
    _use_this_python(spark)


def _use_this_python(spark: SparkSession) -> None:
    """Let Python workers of a local session be this Python, where nobody chose one.

    Spark's default is the ``python3`` of the path, which has no Frazil when a program is run by
    the Python of an environment that is not activated.
    """
    if is_connect(spark) or "PYSPARK_PYTHON" in os.environ:
        return
    context = spark.sparkContext
    if (context.master or "").startswith("local") and context.pythonExec == "python3":
        context.pythonExec = sys.executable


@contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for the block and restore what was there, also when the block fails."""
    before = {key: spark.conf.get(key, None) for key in settings}
    changed = [key for key, value in settings.items() if before[key] != value]
    try:
        for key in changed:
            spark.conf.set(key, settings[key])
        yield
    finally:
        for key in changed:
            value = before[key]
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)


def select_with_metadata(
    df: DataFrame, columns: Sequence[tuple[str, str]], metadata: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Columns under new names and with metadata: ``df.select(df[a].alias(b, metadata=…), …)``.

    PySpark makes thirty calls to the JVM for each such column; a classic session does it in three.

    Args:
        df: the rows.
        columns: pairs of a column's name, quoted for Spark, and its new name.
        metadata: of each of them.
    """
    try:
        jvm: Any = None if is_connect(df.sparkSession) else df.sparkSession._jvm
        source: Any = df._jdf if jvm is not None else None
    except AttributeError:
        jvm = source = None
    if jvm is None or source is None:
        named = zip(columns, metadata, strict=True)
        return df.select(*(df[old].alias(new, metadata=dict(about)) for (old, new), about in named))
    from_json = getattr(jvm, "org.apache.spark.sql.types.Metadata").fromJson
    make_column: Any = Column
    return df.select(
        *(
            make_column(getattr(source.col(old), "as")(new, from_json(json.dumps(dict(about)))))
            for (old, new), about in zip(columns, metadata, strict=True)
        )
    )


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server instead of a JVM beside it."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether column names are matched with their case (``spark.sql.caseSensitive``)."""
    return _is_on(spark, "spark.sql.caseSensitive")


def time_zone_of(spark: SparkSession) -> str:
    """The zone of timestamps that are written without one (``spark.sql.session.timeZone``)."""
    return str(spark.conf.get("spark.sql.session.timeZone", "UTC"))


def type_support(spark: SparkSession) -> SparkTypeSupport:
    """Which of Spark's newer types the session has switched on."""
    return SparkTypeSupport(
        time=_is_on(spark, "spark.sql.timeType.enabled"),
        geospatial=_is_on(spark, "spark.sql.geospatial.enabled"),
    )


def _is_on(spark: SparkSession, key: str) -> bool:
    return str(spark.conf.get(key, "false")).lower() == "true"
