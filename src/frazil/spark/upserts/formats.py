"""Formats of changes, as values: `frazil.changes.plain()`, `change_feed()`, `debezium()`, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.errors import UnsupportedError, ValidationError
from frazil.format import types as I
from frazil.format.arguments import one_or_several
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.types.forms import form_of
from frazil.format.types.inside import fields_inside
from frazil.spark.files.row_checks import stop_with_value
from frazil.spark.session.free_names import free_name
from frazil.spark.types import type_to_spark
from frazil.spark.upserts.change_rows import (
    ChangeFormat,
    ChangeRows,
    WantedChanges,
    change_rows,
    column_named,
    is_delete,
    required_column,
)

__all__ = [
    "ChangeFormat",
    "TimeUnit",
    "change_feed",
    "debezium",
    "debezium_flattened",
    "dms",
    "plain",
]

DELETES: Final = ("d", "delete", "deleted")
UPSERTS: Final = ("i", "insert", "u", "update", "upsert", "c", "create", "r", "read", "merge")


def plain(
    op: str | Column | None = None,
    *,
    deletes: str | Sequence[str] = DELETES,
    upserts: str | Sequence[str] = UPSERTS,
) -> ChangeFormat:
    """Return the format of rows with a column that says what happened to them.

    Args:
        op: the column; without one every row is an upsert.
        deletes: its values for deleted rows, in any case.
        upserts: its values for new and changed rows; any other value stops.

    Raises:
        ValidationError: a value stands for both.
    """
    gone = one_or_several(deletes, argument="deletes")
    kept = one_or_several(upserts, argument="upserts")
    both = {each.lower() for each in gone} & {each.lower() for each in kept}
    if both:
        raise ValidationError(f"{sorted(both)} cannot stand for deletes and for upserts")
    return _Plain(op, tuple(gone), tuple(kept))


def change_feed() -> ChangeFormat:
    """Return the format of change feeds of Delta and Iceberg, with `_change_type`.

    Inserts and rows after an update are upserts; deletes and rows before an update are deletes,
    which come first among changes of one commit. Changes are ordered by `_commit_version` or
    `_change_ordinal` unless the user says how.
    """
    return _ChangeFeed()


def debezium_flattened() -> ChangeFormat:
    """Return the format of Debezium's events after its transform `ExtractNewRecordState`.

    A row is deleted where `__deleted` is true or `__op` is d. Columns that begin with two
    underscores are no columns of the table unless it has such.
    """
    return _DebeziumFlattened()


def dms() -> ChangeFormat:
    """Return the format of AWS DMS: `Op` is I, U or D; files of a full load have no `Op`."""
    return _Dms()


@dataclass(frozen=True, slots=True)
class _Plain(ChangeFormat):
    """Rows with a column that names the operation."""

    op: str | Column | None
    deletes: tuple[str, ...]
    upserts: tuple[str, ...]

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        if self.op is None:
            return change_rows(df, wanted, gone=F.lit(False))
        own: list[str] = []
        if isinstance(self.op, str):
            own = [self.op]
            word = required_column(df, self.op, "the changes")
        else:
            word = self.op
        gone = is_delete(word, deletes=self.deletes, upserts=self.upserts)
        return change_rows(df, wanted, gone=gone, own=own)


@dataclass(frozen=True, slots=True)
class _ChangeFeed(ChangeFormat):
    """Rows of Delta's or Iceberg's change feed."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        word = required_column(df, "_change_type", "rows of a change feed")
        gone = is_delete(
            word,
            deletes=("delete", "update_preimage", "update_before"),
            upserts=("insert", "update_postimage", "update_after"),
        )
        found = [column_named(df, name) for name in ("_commit_version", "_change_ordinal")]
        order = [quote_name_always([name]) for name in found if name is not None][:1]
        own = [name for name in df.columns if name.lower() in _OF_FEEDS]
        # Of one commit the row that is there afterwards counts.
        return change_rows(df, wanted, gone=gone, own=own, order=order, last=[(~gone).cast("int")])


_OF_FEEDS: Final = (
    "_change_type",
    "_commit_version",
    "_commit_timestamp",
    "_change_ordinal",
    "_commit_snapshot_id",
)


@dataclass(frozen=True, slots=True)
class _DebeziumFlattened(ChangeFormat):
    """Rows with `__op` or `__deleted`."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        op, deleted = column_named(df, "__op"), column_named(df, "__deleted")
        if op is None and deleted is None:
            raise ValidationError(
                "flattened events of Debezium have a column '__op' or '__deleted', and these have "
                f"{', '.join(map(repr, df.columns))}; set the transform's add.fields=op, or "
                "delete.tombstone.handling.mode=rewrite"
            )
        gone = F.lit(False)
        if deleted is not None:
            flag = F.col(quote_name_always([deleted])).cast("string")
            gone |= F.coalesce(F.lower(flag) == "true", F.lit(False))
        if op is not None:
            word = F.col(quote_name_always([op]))
            gone |= is_delete(word, deletes=("d",), upserts=("c", "u", "r"))
        own = [name for name in df.columns if name.startswith("__")]
        return change_rows(df, wanted, gone=gone, own=own)


@dataclass(frozen=True, slots=True)
class _Dms(ChangeFormat):
    """Rows with `Op`."""

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        found = column_named(df, "Op")
        if found is None:
            return change_rows(df, wanted, gone=F.lit(False))
        word = F.coalesce(F.col(quote_name_always([found])), F.lit("I"))
        gone = is_delete(word, deletes=("D",), upserts=("I", "U"))
        return change_rows(df, wanted, gone=gone, own=[found])


TimeUnit = Literal["millis", "micros", "nanos"]

_PER_MICRO: Final[Mapping[str, tuple[int, int]]] = {
    "millis": (1000, 1),
    "micros": (1, 1),
    "nanos": (1, 1000),
}
_ROW: Final = "map<string, string>"
_SOURCE: Final = (
    "struct<ts_ms: bigint, ts_us: bigint, ts_ns: bigint, lsn: bigint, txId: bigint, "
    "sequence: string, snapshot: string, file: string, pos: bigint, `row`: bigint, scn: string, "
    "commit_scn: string, change_lsn: string, commit_lsn: string, event_serial_no: bigint>"
)
_EVENT: Final = (
    f"before: {_ROW}, after: {_ROW}, op: string, ts_ms: bigint, ts_us: bigint, ts_ns: bigint, "
    f"source: {_SOURCE}"
)
_FIELDS: Final = ("before", "after", "op", "ts_ms", "ts_us", "ts_ns", "source")
_NAMES: Final = "array<string>"
_UNPARSED: Final = "frazil_unparsed"
_STATED: Final = (
    "schema struct<fields: array<struct<field: string, "
    "fields: array<struct<field: string, type: string, name: string>>>>>"
)
_PLAIN: Final[Mapping[str, I.IcebergType]] = {
    "boolean": I.BooleanType(),
    "int8": I.IntegerType(),
    "int16": I.IntegerType(),
    "int32": I.IntegerType(),
    "int64": I.LongType(),
    "float": I.FloatType(),
    "float32": I.FloatType(),
    "double": I.DoubleType(),
    "float64": I.DoubleType(),
    "string": I.StringType(),
    "bytes": I.BinaryType(),
}
_LOGICAL: Final[Mapping[str, tuple[I.IcebergType, TimeUnit | None]]] = {
    "io.debezium.time.Date": (I.DateType(), None),
    "io.debezium.time.Timestamp": (I.TimestampType(), "millis"),
    "io.debezium.time.MicroTimestamp": (I.TimestampType(), "micros"),
    "io.debezium.time.NanoTimestamp": (I.TimestampType(), "nanos"),
    "io.debezium.time.ZonedTimestamp": (I.TimestamptzType(), None),
}
"""Types of Kafka Connect's schemas, and those that a name tells, with the unit of their numbers."""

_UNAVAILABLE: Final = "__debezium_unavailable_value"
_WHOLE: Final = r"^-?[0-9]+$"
_FRACTION: Final = r"^-?[0-9]*\.[0-9]+([eE][-+]?[0-9]+)?$"


def debezium(value: str = "value", *, times: TimeUnit = "micros") -> ChangeFormat:
    """Return the format of Debezium's JSON events.

    Events may be wrapped in a payload with a schema. Fields of the envelope, as ``ts_ms`` and
    ``source.lsn``, can order changes, and so can other columns of the DataFrame, as Kafka's
    ``offset``. Decimals are text or numbers (``decimal.handling.mode`` string or double).

    Args:
        value: the column of JSON, text or UTF-8 bytes; NULLs in it are passed over.
        times: the unit of times and of timestamps without a zone that are numbers.

    Raises:
        ValidationError: there is no such unit.
    """
    if times not in get_args(TimeUnit):
        raise ValidationError(f"times are in {', '.join(get_args(TimeUnit))}, not in {times!r}")
    return _DebeziumJson(value, times)


@dataclass(frozen=True, slots=True)
class _DebeziumJson(ChangeFormat):
    """A column of JSON.

    Values are parsed by the table's types, every one of them: JSON does not tell a number of
    microseconds from one of milliseconds, and a value that does not fit must stop, not become NULL.
    """

    value: str
    times: TimeUnit

    def read(self, df: DataFrame, wanted: WantedChanges) -> ChangeRows:
        text = required_column(df, self.value, "Debezium's events").cast("string")
        event, change = (free_name(name, df.columns) for name in ("_frazil_event", "_frazil_one"))
        kept = [name for name in df.columns if name.lower() != self.value.lower()]
        # Fields of the envelope stand beside the DataFrame's own columns, which win.
        taken = {name.lower() for name in kept}
        fields = [name for name in ("ts_ms", "ts_us", "ts_ns", "source") if name not in taken]
        events = df.where(text.isNotNull()).withColumn(event, _event(text))
        events = events.where(~F.coalesce(F.col(event)["op"] == "m", F.lit(False)))
        events = events.withColumn(change, F.explode(_changes(F.col(event), wanted)))
        row = F.col(change)["row"]
        values = {
            field.name: self._value(row, field)
            for field in wanted.schema.fields
            if not isinstance(field.field_type, I.UnknownType)
        }
        unknown = F.array_except(
            F.map_keys(row), F.array(*(F.lit(name) for name in values), F.lit("")).cast(_NAMES)
        )
        problem = F.concat(
            F.lit("an event of Debezium has the fields "),
            F.array_join(unknown, ", "),
            F.lit(", which the table lacks: add such columns first, with update_schema()"),
        )
        gone = F.when(F.size(unknown) > 0, stop_with_value(problem).cast("boolean")).otherwise(
            F.col(change)["gone"]
        )
        flags = free_name("_frazil_is_gone", [*df.columns, *values])
        # Where the DataFrame has a column of the table's name, the event's row has the value.
        others = [
            F.col(quote_name_always([name]))
            for name in kept
            if name.lower() not in {each.lower() for each in values}
        ]
        parts = [F.col(event)[name].alias(name) for name in fields if name not in values]
        rows = events.select(
            *others,
            *parts,
            *(column.alias(name) for name, column in values.items()),
            gone.alias(flags),
        )
        own = [name for name in rows.columns if name not in values]
        return change_rows(rows, wanted, gone=F.col(flags), own=own)

    def stated_columns(self, df: DataFrame) -> Mapping[str, tuple[I.IcebergType, ...]]:
        """Return the fields of rows whose types the events' own schemas tell.

        A field is left out of which an event states a type that depends on the connector's settings
        in another way than these are told here, and so are structs, lists and maps.
        """
        text = required_column(df, self.value, "Debezium's events").cast("string")
        schemas = df.select(
            F.monotonically_increasing_id().alias("event"),
            F.from_json(text, _STATED)["schema"]["fields"].alias("sides"),
        )
        sides = schemas.select("event", F.explode("sides").alias("side"))
        sides = sides.where("side.field = 'after'")
        fields = sides.select("event", F.posexplode("side.fields").alias("place", "f"))
        known = fields.groupBy("f.field", "f.type", "f.name")
        first = known.agg(F.min(F.struct("event", "place")).alias("first")).orderBy("first")
        found: dict[str, tuple[I.IcebergType, ...]] = {}
        untold: set[str] = set()
        for field, kind, name in first.select("field", "type", "name").collect():
            made = self._stated_type(kind, name)
            if made is None:
                untold.add(field)
            elif field:
                found[field] = (*found.get(field, ()), made)
        return {field: kinds for field, kinds in found.items() if field not in untold}

    def _stated_type(self, kind: str | None, name: str | None) -> I.IcebergType | None:
        """Return the type of a field by its type and its name in Kafka Connect's schema."""
        if name is not None and name in _LOGICAL:
            made, unit = _LOGICAL[name]
            return made if unit in (None, self.times) else None
        if name is not None and not name.startswith("io.debezium.data."):
            return None
        return _PLAIN.get(kind or "")

    def _value(self, row: Column, field: I.NestedField) -> Column:
        raw = row[field.name]
        made = self._convert(raw, field)
        problem = F.concat(
            F.lit(f"an event of Debezium has for the column {field.name!r} ({field.field_type}) "),
            F.concat(F.lit("the value '"), F.substring(raw, 1, 80), F.lit("', which is none: ")),
            F.when(
                raw == _UNAVAILABLE,
                F.lit("the source left it out; set REPLICA IDENTITY FULL for its table"),
            ).otherwise(F.lit("look at the connector's handling of such values")),
        )
        fails = raw.isNotNull() & (made.isNull() | (raw == _UNAVAILABLE))
        return F.when(fails, stop_with_value(problem).cast(_type_name(field))).otherwise(made)

    def _convert(self, raw: Column, field: I.NestedField) -> Column:
        whole = raw.rlike(_WHOLE)
        number = F.when(whole, raw).try_cast("bigint")
        times, by = _PER_MICRO[self.times]
        micros = F.call_function("div", number * times, F.lit(by).cast("bigint"))
        if isinstance(field.field_type, I.DecimalType):
            # Bytes as base64 may look like a number, but have no point.
            exact = raw.rlike(_FRACTION if field.field_type.scale else _WHOLE)
            return F.when(exact, raw).try_cast(_type_name(field))
        form = form_of(field.field_type)
        match form.meaning:
            case "date":
                days = F.date_from_unix_date(number.try_cast("int"))
                return F.when(whole, days).otherwise(raw.try_cast("date"))
            case "timestamp" if form.unit == 1:
                return number
            case "timestamp" if not form.zoned:
                return F.when(whole, _ntz(micros)).otherwise(raw.try_cast("timestamp_ntz"))
            case "timestamp":
                return F.when(whole, F.timestamp_micros(micros)).otherwise(
                    raw.try_cast("timestamp")
                )
            case "time":
                return micros
            case "string" | "uuid":
                return raw
            case "binary" | "fixed":
                return F.unbase64(raw)
            case "boolean" | "integer" | "floating":
                return raw.try_cast(_type_name(field))
            case "nested" if _is_plain(field.field_type):
                return F.from_json(raw, _type_name(field), {"mode": "FAILFAST"})
            case _:
                raise UnsupportedError(
                    f"the column {field.name!r} is {field.field_type}, which is not read from "
                    "Debezium's JSON; make a DataFrame of typed columns and use "
                    "frazil.changes.plain()"
                )


def _ntz(micros: Column) -> Column:
    """A time without a zone from its microseconds, whatever the session's zone."""
    seconds = (micros.cast("decimal(20, 0)") / F.lit(1_000_000)).cast("decimal(18, 6)")
    zero = F.lit(0)
    return F.expr("timestamp_ntz'1970-01-01 00:00:00'") + F.make_dt_interval(
        zero, zero, zero, seconds
    )


def _type_name(field: I.NestedField) -> str:
    return type_to_spark(field.field_type).simpleString()


def _is_plain(iceberg_type: I.IcebergType) -> bool:
    if iceberg_type.is_nested:
        return all(_is_plain(field.field_type) for field in fields_inside(iceberg_type))
    plain = (I.BooleanType, I.IntegerType, I.LongType, I.FloatType, I.DoubleType, I.StringType)
    return isinstance(iceberg_type, plain)


def _event(text: Column) -> Column:
    """The event of a text; texts that are none stop."""
    parsed = F.from_json(
        text,
        f"struct<payload: struct<{_EVENT}>, {_EVENT}, {_UNPARSED}: string>",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _UNPARSED},
    )
    flat = F.struct(*(parsed[name].alias(name) for name in _FIELDS))
    event = F.coalesce(parsed["payload"], flat)
    ops = ("c", "u", "r", "d", "m")
    problem = F.concat(
        F.lit("a text is no event of a change by Debezium: op is "),
        F.coalesce(event["op"], F.lit("missing")),
        F.lit(" in '"),
        F.substring(text, 1, 200),
        F.lit("'"),
    )
    bad = parsed[_UNPARSED].isNotNull() | ~F.coalesce(event["op"].isin(*ops), F.lit(False))
    stop = stop_with_value(problem).cast(f"struct<{_EVENT}>")
    return F.when(bad, stop).otherwise(event)


def _changes(event: Column, wanted: WantedChanges) -> Column:
    """The changes of an event: an update of a key deletes the row of the old one as well."""
    before, after = event["before"], event["after"]
    keys = wanted.keys.names
    moved = F.lit(False)
    for name in keys:
        moved |= F.map_contains_key(before, name) & ~before[name].eqNullSafe(after[name])
    without = F.concat(
        F.lit("an event of Debezium tells no key "),
        F.lit(", ".join(keys)),
        F.lit(" of its row: publish them with the source's table (REPLICA IDENTITY, primary key)"),
    )
    kind = f"struct<gone: boolean, row: {_ROW}>"

    def one(gone: bool, row: Column) -> Column:
        complete = row.isNotNull()
        for name in keys:
            complete &= F.map_contains_key(row, name)
        found = F.struct(F.lit(gone).alias("gone"), row.alias("row")).cast(kind)
        return F.when(F.coalesce(complete, F.lit(False)), found).otherwise(
            stop_with_value(without).cast(kind)
        )

    is_moved = (event["op"] == "u") & before.isNotNull() & F.coalesce(moved, F.lit(False))
    return (
        F.when(event["op"] == "d", F.array(one(True, before)))
        .when(is_moved, F.array(one(True, before), one(False, after)))
        .otherwise(F.array(one(False, after)))
    )
