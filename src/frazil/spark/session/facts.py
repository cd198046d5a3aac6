"""Session settings that reading and writing need, and the only touch of the JVM.

Nothing here is needed for a session to work: over Spark Connect every function takes the way that
uses public settings alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import Condition
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession

from frazil.errors import ConfigurationError
from frazil.spark.abilities import HAS_GEOSPATIAL_TYPES, HAS_TIME_TYPE
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.types import SparkTypeSupport
from frazil.storage.caches import CACHE_SIZES, Caches

_BETWEEN: Final = "\x01"
"""Stands in no setting."""

READ_SETTINGS: Final[Mapping[str, str]] = {
    # Columns of a Parquet file are found by field id, never by name (SPEC rule 52).
    "spark.sql.parquet.fieldId.read.enabled": "true",
    # A file without any id must fail in Spark's reader, not read as NULLs: Frazil reads such files
    # by their names, and this is what notices one that it took for a file with ids.
    "spark.sql.parquet.fieldId.read.ignoreMissing": "false",
    # Tables with deletes are unions, and a query may name one of their columns twice: Spark's
    # optimizer makes one column of the two, and refuses its own plan by this check.
    "spark.sql.analyzer.unionIsResolvedWhenDuplicatesPerChildResolved": "false",
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
"""Settings for the moment of a native write, set around it and restored: Spark's writer takes none
of them as an option. They belong to the session of the rows, whose query the write is."""


def prepare_session(spark: SparkSession) -> None:
    """Set what every DataFrame over an Iceberg table needs when it runs.

    Calling it again costs one look-up a setting. Settings are the session's own: another session
    of the same application keeps its.
    """
    for key, value in READ_SETTINGS.items():
        if spark.conf.get(key, None) != value:
            spark.conf.set(key, value)
    _use_this_python(spark)


def given_settings(spark: SparkSession, names: Sequence[str]) -> tuple[str | None, ...]:
    """Return what the user gave settings that have no default; None for those that are not given.

    A classic session is asked for all that it has at once.
    """
    if is_connect(spark):
        return tuple(spark.conf.get(name, None) for name in names)
    session: Any = spark
    text = str(session._jsparkSession.conf().getAll().mkString(_BETWEEN))
    given = dict(each.partition(" -> ")[::2] for each in text.split(_BETWEEN))
    return tuple(given.get(name) for name in names)


def word_of_setting(spark: SparkSession, name: str, *words: str) -> str:
    """Return what a setting says, in whatever case: one of the words, the first unless it is set.

    Raises:
        ConfigurationError: it says something else.
    """
    word = str(spark.conf.get(name, words[0]) or words[0]).lower()
    if word not in words:
        known = f"{', '.join(words[:-1])} or {words[-1]}"
        raise ConfigurationError(f"{name} is {word!r}: it must be {known}")
    return word


def shuffle_partitions(spark: SparkSession) -> int:
    """Return `spark.sql.shuffle.partitions`: how many tasks a shuffle has at most."""
    return int(spark.conf.get("spark.sql.shuffle.partitions", "200") or 200)


def take_cache_sizes(spark: SparkSession, caches: Caches) -> None:
    """Give caches the sizes that the session's settings state.

    Raises:
        ConfigurationError: one is not a number of bytes.
    """
    names = (size.name for size in CACHE_SIZES.values())
    sizes = {name: spark.conf.get(f"frazil.{name}", None) for name in names}
    caches.resize({name: size for name, size in sizes.items() if size is not None})


def engine_summary(spark: SparkSession) -> dict[str, str]:
    """Return the engine's name and version and the application's id, where Spark tells it."""
    app_id = spark.conf.get("spark.app.id", None)
    ids = {} if not app_id else {"app-id": app_id, "spark.app.id": app_id}
    return {"engine-name": "spark", "engine-version": spark.version, **ids}


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


def application_of(spark: SparkSession) -> Hashable:
    """Return what tells sessions apart whose Python workers may differ."""
    if is_connect(spark):
        return _identity_of(spark)
    context = spark.sparkContext
    return context.applicationId, context.pythonExec


@dataclass(slots=True)
class _Held:
    """A setting while blocks hold it.

    Attributes:
        value: what they need.
        before: what it is restored to.
        holders: how many blocks there are.
    """

    value: str
    before: str | None
    holders: int = 1


class _SharedSettings:
    """Settings of one session that blocks of several threads hold together.

    The first block sets a setting and the last one restores it. A block that needs another value
    waits until nobody holds the setting.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._held: dict[str, _Held] = {}

    @contextmanager
    def hold_settings(self, spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
        with ExitStack() as block:
            with self._changed:
                self._changed.wait_for(lambda: self._are_free(settings))
                for key, value in settings.items():
                    self._hold(spark, key, value)
                    block.callback(self._release, spark, key)
            yield

    def _are_free(self, settings: Mapping[str, str]) -> bool:
        return all(
            key not in self._held or self._held[key].value == value
            for key, value in settings.items()
        )

    def _hold(self, spark: SparkSession, key: str, value: str) -> None:
        current = spark.conf.get(key, None)
        if current != value:
            spark.conf.set(key, value)
        held = self._held.setdefault(key, _Held(value, current, holders=0))
        held.holders += 1
        if current != value:
            # Somebody set it while others held it: that is what stays in the end.
            held.before = current

    def _release(self, spark: SparkSession, key: str) -> None:
        with self._changed:
            held = self._held[key]
            held.holders -= 1
            if held.holders:
                return
            del self._held[key]
            self._changed.notify_all()
            # Whoever set it meanwhile keeps what they set.
            if held.before == held.value or spark.conf.get(key, None) != held.value:
                return
            set_back(spark, key, held.before)


def set_back(spark: SparkSession, key: str, before: str | None) -> None:
    """Give a setting the value that it had before; None where the session had none."""
    if before is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, before)


_SHARED: Final[dict[Hashable, _SharedSettings]] = {}


@contextmanager
def temporary_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set session settings for the block and restore what was there, also when the block fails.

    Blocks of several threads share what they set alike: it is restored when the last one ends.
    One thread must not ask for another value of a setting within such a block.
    """
    shared = _SHARED.setdefault(_identity_of(spark), _SharedSettings())
    with shared.hold_settings(spark, settings):
        yield


def _identity_of(spark: SparkSession) -> Hashable:
    """What tells a session from others of this process, whichever objects stand for it."""
    if is_connect(spark):
        return str(spark.session_id)  # type: ignore[attr-defined]
    session: Any = getattr(spark, "_jsparkSession", None)
    # Unless the JVM is there to ask, sessions share: what is set is then restored later.
    return None if session is None else int(session.hashCode())


def select_with_metadata(
    df: DataFrame, columns: Sequence[tuple[str, str]], metadata: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """Columns under new names and with metadata: ``df.select(df[a].alias(b, metadata=…), …)``.

    PySpark makes thirty calls to the JVM for each such column; a classic session does it in three.

    Args:
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


def has_many_cores(spark: SparkSession, times: int) -> bool:
    """Return whether executors have more than so many times the cores of this machine."""
    if is_connect(spark):
        return True
    return spark.sparkContext.defaultParallelism > times * (os.cpu_count() or 1)


def is_connect(spark: SparkSession) -> bool:
    """Whether the session talks to a Spark Connect server instead of a JVM beside it."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_stopped(spark: SparkSession) -> bool:
    """Whether the session was stopped, or the JVM beside it is gone."""
    if is_connect(spark):
        return bool(spark.is_stopped)  # type: ignore[attr-defined]
    context: Any = spark.sparkContext
    try:
        return context._jsc is None or bool(context._jsc.sc().isStopped())
    except Exception:
        # No answer is one: py4j raises what its connection to the JVM raises.
        return True


def sources_of_query(spark: SparkSession, query_id: str) -> tuple[str, ...] | None:
    """What a running streaming query reads, as Spark shows it: ``FileSource[<folder>]`` for files.

    None where Spark does not tell: over Spark Connect, and of a query that has ended.
    """
    if is_connect(spark):
        return None
    try:
        query: Any = spark.streams.get(query_id)
        leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
        return tuple(str(leaves.apply(place).toString()) for place in range(leaves.size()))
    except Exception:
        # It has ended, or this Spark keeps its plan elsewhere.
        return None


def checkpoint_of_query(spark: SparkSession, query_id: str) -> str | None:
    """The folder of a running streaming query's checkpoint, also of one that Spark chose.

    None where Spark does not tell: over Spark Connect, and of a query that has ended.
    """
    if is_connect(spark):
        return None
    try:
        query: Any = spark.streams.get(query_id)
        return str(query._jsq.streamingQuery().resolvedCheckpointRoot())
    except Exception:
        # It has ended, or this Spark keeps it elsewhere.
        return None


def is_temporary_view(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of a temporary view of the session."""
    if not is_connect(spark):
        session: Any = spark
        try:
            # Spark's public way looks for a table first, and takes twenty times as long.
            views = session._jsparkSession.sessionState().catalog()
            return bool(views.getRawTempView(name).isDefined())
        except Py4JError:  # This Spark keeps them elsewhere.
            pass
    try:
        return bool(spark.catalog.tableExists(name)) and spark.catalog.getTable(name).isTemporary
    except PySparkException:  # What Spark cannot look up is none of its views.
        return False


def is_case_sensitive(spark: SparkSession) -> bool:
    """Whether column names are matched with their case (``spark.sql.caseSensitive``)."""
    return is_set(spark, "spark.sql.caseSensitive", "true")


def time_zone_of(spark: SparkSession) -> str:
    """The zone of timestamps that are written without one (``spark.sql.session.timeZone``)."""
    # A default given here would hide Spark's own, which is the zone of its JVM.
    return str(spark.conf.get("spark.sql.session.timeZone"))


def type_support(spark: SparkSession) -> SparkTypeSupport:
    """Which of Spark's newer types the session has switched on."""
    return SparkTypeSupport(
        time=HAS_TIME_TYPE and is_set(spark, "spark.sql.timeType.enabled", "true"),
        geospatial=HAS_GEOSPATIAL_TYPES and is_set(spark, "spark.sql.geospatial.enabled", "true"),
    )


def is_set(spark: SparkSession, key: str, value: str) -> bool:
    """Return whether a setting has a value, given in small letters."""
    try:
        # A default given here would hide Spark's own.
        return str(spark.conf.get(key)).lower() == value
    except PySparkException:
        # This Spark has no such setting.
        return False
