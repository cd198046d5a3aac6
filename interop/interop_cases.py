"""The types, transforms and rows of the matrix, as plain Python data.

Values are what Python itself has for them: dates, decimals, UUIDs, bytes; nanoseconds are integers.
Nothing here comes from Frazil: rows and the results of filters are worked out by Python alone.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

Row = tuple[int, Any]


@dataclass(frozen=True, slots=True)
class Filter:
    """One predicate on the column ``v``: ``=``, ``<``, ``>=``, ``is null`` or ``is nan``."""

    op: str
    value: Any = None

    def keeps(self, value: Any) -> bool:
        """Whether SQL keeps a row of this value."""
        if self.op == "is null":
            return value is None
        if value is None:
            return False
        if self.op == "is nan":
            return isinstance(value, float) and math.isnan(value)
        tests: dict[str, Callable[[Any, Any], bool]] = {
            "=": lambda a, b: a == b,
            "<": lambda a, b: a < b,
            ">=": lambda a, b: a >= b,
        }
        return tests[self.op](_ordered(value), _ordered(self.value))


def _ordered(value: Any) -> Any:
    # UTF-8's order, which is that of code points; and UUIDs by their bytes.
    if isinstance(value, str):
        return value.encode()
    return value.bytes if isinstance(value, UUID) else value


@dataclass(frozen=True, slots=True)
class TypeCase:
    """One Iceberg type: its values and how a table of it may be partitioned.

    Attributes:
        name: for test ids and table names.
        type: the type's JSON form.
        values: without the NULL that every append also holds.
        filters: predicates on ``v``.
        specs: the partition specs that the table goes through, after an unpartitioned start.
        versions: the format versions that have the type.
    """

    name: str
    type: str
    values: tuple[Any, ...]
    filters: tuple[Filter, ...]
    specs: tuple[tuple[str, ...], ...] = ()
    versions: tuple[int, ...] = (1, 2, 3)

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """The specs in which rows are appended, the unpartitioned one first."""
        return ((), *self.specs)

    def rows_of_stage(self, stage: int) -> list[Row]:
        """The rows that are appended in one spec: every value, and NULL."""
        return [(stage * 100 + i, value) for i, value in enumerate((*self.values, None))]

    def rows_to_stage(self, count: int) -> list[Row]:
        """The rows after the first stages."""
        return [row for stage in range(count) for row in self.rows_of_stage(stage)]

    @property
    def rows(self) -> list[Row]:
        """All rows after every stage."""
        return self.rows_to_stage(len(self.stages))


def shown(value: Any) -> str:
    """A value as text that is equal for equal values, and tells -0.0 from 0.0 and 1.0 from 1."""
    match value:
        case None:
            return "NULL"
        case bool() | int() | float():
            return repr(value)
        case Decimal():
            return format(value, "f")
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat()
        case date() | time():
            return value.isoformat()
        case str() | UUID():
            return json.dumps(str(value), ensure_ascii=False)
        case bytes() | bytearray():
            return bytes(value).hex()
        case dict():
            return "{" + ", ".join(f"{key}: {shown(item)}" for key, item in value.items()) + "}"
        case list() if value and isinstance(value[0], tuple):
            entries = sorted(f"{shown(key)} -> {shown(item)}" for key, item in value)
            return "map(" + ", ".join(entries) + ")"
        case list():
            return "[" + ", ".join(shown(item) for item in value) + "]"
        case _:
            raise TypeError(f"{value!r} of {type(value).__name__} has no canonical text")


def shown_rows(rows: Iterable[Row]) -> list[tuple[int, str]]:
    """Rows as sorted comparable pairs."""
    return sorted((number, shown(value)) for number, value in rows)


def utc(*parts: int) -> datetime:
    """An instant."""
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc]


def _nanoseconds(*parts: int, nanos: int) -> int:
    return (utc(*parts) - utc(1970, 1, 1)) // timedelta(microseconds=1) * 1000 + nanos


_INSTANTS = (
    (1500, 2, 28, 1, 2, 3, 4),
    (1969, 12, 31, 23, 59, 59, 999999),
    (1970, 1, 1, 0, 0, 0, 0),
    (2017, 11, 16, 22, 31, 8, 1),
    (2017, 11, 16, 22, 59, 59, 999999),
    (9999, 12, 31, 23, 59, 59, 999999),
)
_NANOS = (
    _nanoseconds(1700, 2, 28, 1, 2, 3, nanos=5),
    -1,
    0,
    _nanoseconds(2017, 11, 16, 22, 31, 8, nanos=1001),
    _nanoseconds(2017, 11, 16, 22, 31, 8, nanos=1999),
    _nanoseconds(2262, 4, 1, 0, 0, 0, nanos=7),
)
_TIME_SPECS = (
    ("v",),
    ("bucket(4, v)", "year(v)"),
    ("month(v)",),
    ("day(v)",),
    ("hour(v)",),
)
_UUID = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
_NULL = Filter("is null")
# Truncation rounds down, so the smallest values are those whose truncated value still fits.
_NUMBERED = (("v",), ("bucket(4, v)", "truncate(10, v)"))

PRIMITIVES: tuple[TypeCase, ...] = (
    TypeCase("boolean", "boolean", (True, False), (Filter("=", True), _NULL), (("v",),)),
    TypeCase(
        "int",
        "int",
        (-(2**31) + 8, -1, 0, 7, 34, 2**31 - 1),
        (Filter("=", 34), Filter(">=", 7), Filter("<", 0), _NULL),
        _NUMBERED,
    ),
    TypeCase(
        "long",
        "long",
        (-(2**63) + 8, -10, 0, 34, 2**40 + 1, 2**63 - 1),
        (Filter("=", 2**40 + 1), Filter(">=", 34), Filter("<", -9), _NULL),
        _NUMBERED,
    ),
    TypeCase(
        "float",
        "float",
        (-math.inf, -1.5, -0.0, 0.25, 3.5, math.nan),
        (Filter("=", 3.5), Filter("<", 0.25), Filter("is nan"), _NULL),
        (("v",),),
    ),
    TypeCase(
        "double",
        "double",
        (-1.5, 0.0, -0.0, 0.1, 1e308, math.inf, math.nan),
        (Filter("=", 0.1), Filter("<", 0.1), Filter("is nan"), _NULL),
        (("v",),),
    ),
    *(
        TypeCase(
            f"decimal_{precision}_{scale}",
            f"decimal({precision}, {scale})",
            tuple(Decimal(text) for text in texts),
            (Filter("=", Decimal(texts[3])), Filter(">=", Decimal(texts[2])), _NULL),
            _NUMBERED,
        )
        for precision, scale, texts in (
            (9, 2, ("-9999999.90", "-0.01", "0.00", "14.20", "9999999.99")),
            (
                18,
                4,
                ("-99999999999999.9990", "-10.6500", "0.0000", "14.2001", "99999999999999.9999"),
            ),
            (
                38,
                10,
                (
                    "-9999999999999999999999999999.9999999990",
                    "-0.0000000001",
                    "0.0000000000",
                    "12345678901234567890.0123456789",
                    "9999999999999999999999999999.9999999999",
                ),
            ),
        )
    ),
    TypeCase(
        "date",
        "date",
        (
            date(1, 1, 1),
            date(1582, 10, 4),
            date(1969, 12, 31),
            date(1970, 1, 1),
            date(2017, 11, 16),
            date(9999, 12, 31),
        ),
        (Filter("=", date(1969, 12, 31)), Filter(">=", date(1970, 1, 1)), _NULL),
        _TIME_SPECS[:4],
    ),
    TypeCase(
        "time",
        "time",
        (time(0), time(22, 31, 8), time(22, 31, 8, 123456), time(23, 59, 59, 999999)),
        (Filter("=", time(22, 31, 8, 123456)), Filter("<", time(22, 31, 8, 1)), _NULL),
        (("v",), ("bucket(4, v)",)),
    ),
    TypeCase(
        "timestamp",
        "timestamp",
        tuple(datetime(*parts) for parts in _INSTANTS),
        (
            Filter("=", datetime(2017, 11, 16, 22, 31, 8, 1)),
            Filter("<", datetime(1970, 1, 1)),
            Filter(">=", datetime(2017, 11, 16, 22, 59, 59, 999999)),
            _NULL,
        ),
        _TIME_SPECS,
    ),
    TypeCase(
        "timestamptz",
        "timestamptz",
        tuple(utc(*parts) for parts in _INSTANTS),
        (
            Filter("=", utc(1969, 12, 31, 23, 59, 59, 999999)),
            Filter("<", utc(1970, 1, 1)),
            Filter(">=", utc(2017, 11, 16, 22, 31, 8, 1)),
            _NULL,
        ),
        _TIME_SPECS,
    ),
    TypeCase(
        "string",
        "string",
        (
            "",
            "iceberg",
            "icé",
            "ñandú=50%/a b?",
            "日本語テキスト",
            "ﬀ",
            "😀😀😀😀",
            "a much longer text than sixteen characters",
            "\U0010ffff" * 20,
        ),
        (Filter("=", "日本語テキスト"), Filter(">=", "ﬀ"), Filter("<", "iceberg"), _NULL),
        (("v",), ("bucket(4, v)", "truncate(3, v)")),
    ),
    TypeCase(
        "uuid",
        "uuid",
        (
            UUID(int=0),
            UUID("7fffffff-ffff-ffff-ffff-ffffffffffff"),
            UUID("80000000-0000-0000-8000-000000000000"),
            _UUID,
            UUID(int=2**128 - 1),
        ),
        (Filter("=", _UUID), Filter(">=", UUID("80000000-0000-0000-8000-000000000000")), _NULL),
        (("v",), ("bucket(4, v)",)),
    ),
    *(
        TypeCase(
            name,
            "fixed[5]",
            (b"\x00" * 5, b"abcde", b"\x80abcd", b"\xff" * 5),
            (Filter("=", b"abcde"), Filter(">=", b"\x80abcd"), _NULL),
            ((transform,),),
        )
        for name, transform in (("fixed", "bucket(4, v)"), ("fixed_identity", "v"))
    ),
    TypeCase(
        "binary",
        "binary",
        (b"", b"\x00", b"abc", b"\x80\x01", b"\xff" * 20),
        (Filter("=", b"abc"), Filter(">=", b"\x80"), _NULL),
        (("v",), ("bucket(4, v)", "truncate(2, v)")),
    ),
    *(
        TypeCase(
            name,
            name,
            _NANOS,
            (Filter("=", _NANOS[3]), Filter("<", 0), Filter(">=", _NANOS[4]), _NULL),
            _TIME_SPECS,
            (3,),
        )
        for name in ("timestamp_ns", "timestamptz_ns")
    ),
    TypeCase("unknown", "unknown", (), (_NULL,), (), (3,)),
    TypeCase(
        "variant",
        "variant",
        ({"a": 1, "b": [1, "x", None]}, "text", 12, True, [], {"n": {"m": 1.5}}),
        (_NULL,),
        (),
        (3,),
    ),
)


def _point(x: float, y: float) -> bytes:
    """A point in little-endian well-known binary."""
    return struct.pack("<BIdd", 1, 1, x, y)


GEOSPATIAL: tuple[TypeCase, ...] = tuple(
    TypeCase(name, type_text, (_point(1, 2), _point(-3.5, 4)), (_NULL,), (), (3,))
    for name, type_text in (
        ("geometry", "geometry"),
        ("geography", "geography"),
        ("geometry_3857", "geometry(srid:3857)"),
    )
)

MATRIX: tuple[tuple[TypeCase, int], ...] = tuple(
    (case, version) for case in (*PRIMITIVES, *GEOSPATIAL) for version in case.versions
)
_PLACES = {case.name: place for place, case in enumerate((*PRIMITIVES, *GEOSPATIAL))}


def version_in_ci(case: TypeCase, versions: Iterable[int] = (1, 2, 3)) -> int:
    """The version in which `make interop` takes a type, of those: turn about. A soak takes all."""
    possible = [version for version in versions if version in case.versions]
    return possible[_PLACES[case.name] % len(possible)]


def in_turn(case: TypeCase, version: int, *more: str, versions: Iterable[int] = (1, 2, 3)) -> Any:
    """The parameters of a test; CI takes one type of three, each in one version's turn."""
    name = "-".join((case.name, f"v{version}", *more))
    is_in_turn = version == version_in_ci(case, versions)
    marks = [pytest.mark.interop] if is_in_turn else [pytest.mark.soak]
    if is_in_turn and _PLACES[case.name] // 3 % 3 == 0:
        marks = []
    return pytest.param(case, version, *more, id=name, marks=marks)


def schema_json(case: TypeCase) -> dict[str, Any]:
    """The Iceberg schema of a table of one type: ``id int, v <type>``."""
    return {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "required": False, "type": "int"},
            {"id": 2, "name": "v", "required": False, "type": case.type},
        ],
    }
