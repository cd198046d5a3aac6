"""Partition and sort transforms (SPEC rules 75-89): what they take, give and look like."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.types import (
    DateType,
    DecimalType,
    IcebergType,
    IntegerType,
    UnknownType,
)
from frazil.format.types.forms import form_of
from frazil.format.values import civil, human
from frazil.format.values.decimals import decimal_from_unscaled, unscaled_value
from frazil.format.values.hashing import bucket_hash

_MAX_PARAMETER = 2**31 - 1


class Transform(ABC):
    """A function from a column's value to a partition's or a sort key.

    Values are internal values (docs/architecture.md); null gives null (rule 83). ``str()`` is the
    text in metadata.
    """

    __slots__ = ()
    name: ClassVar[str] = ""
    preserves_order: ClassVar[bool] = False
    """True where a <= b gives apply(a) <= apply(b)."""
    _result: ClassVar[IcebergType | None] = None
    """The type of every result, unless it is the source's."""

    def can_transform(self, source_type: IcebergType) -> bool:
        """True where the transform takes values of the type (rules 77-80, 82)."""
        return self.name in form_of(source_type).transforms

    def result_type(self, source_type: IcebergType) -> IcebergType:
        """The type of the result."""
        self.check(source_type)
        return self._result or source_type

    def result_type_of_dropped_source(self) -> IcebergType:
        """The type of the result where the source column is gone; unknown unless it is fixed."""
        return self._result or UnknownType()

    def apply(self, source_type: IcebergType, value: Any) -> Any:
        """The result for one value of the source type."""
        self.check(source_type)
        return None if value is None else self._apply(source_type, value)

    def check(self, source_type: IcebergType) -> None:
        """Raise ValidationError where the type cannot be transformed."""
        if not self.can_transform(source_type):
            raise ValidationError(f"{self} cannot be applied to a column of type {source_type}")

    def human_string(self, result_type: IcebergType, value: Any) -> str:
        """A result as in partition paths (rules 307, 312): ``2024-01-31-10`` for an hour."""
        return human.human_value(result_type, value)

    def satisfies_order_of(self, other: Transform) -> bool:
        """True where rows in the order of this result are in the order of the other's, too."""
        return self == other

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def _apply(self, source_type: IcebergType, value: Any) -> Any:
        """The result for a value that is not null."""


@dataclass(frozen=True, slots=True)
class IdentityTransform(Transform):
    """The value itself (rule 77)."""

    name: ClassVar[str] = "identity"
    preserves_order: ClassVar[bool] = True

    def satisfies_order_of(self, other: Transform) -> bool:
        return other.preserves_order

    def _apply(self, source_type: IcebergType, value: Any) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class BucketTransform(Transform):
    """The hash of the value modulo ``buckets`` (rules 78, 84)."""

    buckets: int
    name: ClassVar[str] = "bucket"
    _result: ClassVar[IcebergType | None] = IntegerType()

    def __post_init__(self) -> None:
        _check_parameter("the number of buckets", self.buckets)

    def _apply(self, source_type: IcebergType, value: Any) -> int:
        return (bucket_hash(source_type, value) & 0x7FFFFFFF) % self.buckets

    def __str__(self) -> str:
        return f"bucket[{self.buckets}]"


@dataclass(frozen=True, slots=True)
class TruncateTransform(Transform):
    """Numbers rounded down to a multiple of ``width``, prefixes of it (rules 79, 85-88).

    Within ``width`` of the least int or long the result is below that number: it still compares as
    it should, but is no value of the type and has no bytes. (Java's arithmetic wraps around there.)
    """

    width: int
    name: ClassVar[str] = "truncate"
    preserves_order: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_parameter("the width of truncate", self.width)

    def _apply(self, source_type: IcebergType, value: Any) -> Any:
        if form_of(source_type).meaning == "integer":
            return value - value % self.width
        if isinstance(source_type, DecimalType):
            unscaled = unscaled_value(value)
            return decimal_from_unscaled(unscaled - unscaled % self.width, source_type.scale)
        return value[: self.width]

    def __str__(self) -> str:
        return f"truncate[{self.width}]"


@dataclass(frozen=True, slots=True)
class TimeTransform(Transform):
    """The base of year, month, day and hour: units since 1970, rounded down (rules 80, 89)."""

    fineness: ClassVar[int] = 0
    preserves_order: ClassVar[bool] = True
    _result: ClassVar[IcebergType | None] = IntegerType()
    _human: ClassVar[Callable[[int], str]] = staticmethod(str)

    def satisfies_order_of(self, other: Transform) -> bool:
        return isinstance(other, TimeTransform) and other.fineness <= self.fineness

    def human_string(self, result_type: IcebergType, value: Any) -> str:
        return "null" if value is None else type(self)._human(value)


@dataclass(frozen=True, slots=True)
class YearTransform(TimeTransform):
    """Years since 1970."""

    name: ClassVar[str] = "year"
    fineness: ClassVar[int] = 1
    _human: ClassVar[Callable[[int], str]] = staticmethod(human.human_year)

    def _apply(self, source_type: IcebergType, value: Any) -> int:
        return civil.civil_from_days(_days(source_type, value))[0] - 1970


@dataclass(frozen=True, slots=True)
class MonthTransform(TimeTransform):
    """Months since 1970-01."""

    name: ClassVar[str] = "month"
    fineness: ClassVar[int] = 2
    _human: ClassVar[Callable[[int], str]] = staticmethod(human.human_month)

    def _apply(self, source_type: IcebergType, value: Any) -> int:
        year, month, _ = civil.civil_from_days(_days(source_type, value))
        return (year - 1970) * 12 + month - 1


@dataclass(frozen=True, slots=True)
class DayTransform(TimeTransform):
    """Days since 1970-01-01; the result is a date, which readers also take as int (rule 81)."""

    name: ClassVar[str] = "day"
    fineness: ClassVar[int] = 3
    _result: ClassVar[IcebergType | None] = DateType()
    _human: ClassVar[Callable[[int], str]] = staticmethod(human.human_day)

    def _apply(self, source_type: IcebergType, value: Any) -> int:
        return _days(source_type, value)


@dataclass(frozen=True, slots=True)
class HourTransform(TimeTransform):
    """Hours since 1970-01-01 00:00; timestamps only."""

    name: ClassVar[str] = "hour"
    fineness: ClassVar[int] = 4
    _human: ClassVar[Callable[[int], str]] = staticmethod(human.human_hour)

    def _apply(self, source_type: IcebergType, value: Any) -> int:
        return int(value // (form_of(source_type).units_per_day // 24))


@dataclass(frozen=True, slots=True)
class VoidTransform(Transform):
    """Always null: what is left of a field that v1 dropped (rules 82, 90)."""

    name: ClassVar[str] = "void"

    def can_transform(self, source_type: IcebergType) -> bool:
        return True

    def human_string(self, result_type: IcebergType, value: Any) -> str:
        return "null"

    def _apply(self, source_type: IcebergType, value: Any) -> None:
        return None


@dataclass(frozen=True, slots=True)
class UnknownTransform(Transform):
    """A transform of another writer, kept by its text; never applied (rules 7, 75)."""

    text: str

    def can_transform(self, source_type: IcebergType) -> bool:
        return True

    def result_type(self, source_type: IcebergType) -> IcebergType:
        return UnknownType()

    def apply(self, source_type: IcebergType, value: Any) -> Any:
        # Not even a null's result is known.
        return self._apply(source_type, value)

    def _apply(self, source_type: IcebergType, value: Any) -> Any:
        raise UnsupportedError(f"the transform {self.text!r} is not known; no value can be derived")

    def __str__(self) -> str:
        return self.text


_NAMED: dict[str, Transform] = {
    str(transform): transform
    for transform in (
        IdentityTransform(),
        YearTransform(),
        MonthTransform(),
        DayTransform(),
        HourTransform(),
        VoidTransform(),
    )
}
PARAMETRIC: Final[dict[str, type[BucketTransform] | type[TruncateTransform]]] = {
    each.name: each for each in (BucketTransform, TruncateTransform)
}
"""The transforms that take a number, by their names."""
_WITH_NUMBER = re.compile(r"(bucket|truncate)\s*\[\s*(\d+)\s*\]", re.IGNORECASE)


def parse_transform(text: str) -> Transform:
    """The transform of its text in metadata; one that is not known stays an UnknownTransform."""
    named = _NAMED.get(text.strip().lower())
    if named is not None:
        return named
    match = _WITH_NUMBER.fullmatch(text.strip())
    if match is None:
        return UnknownTransform(text)
    return PARAMETRIC[match[1].lower()](int(match[2]))


def _check_parameter(what: str, parameter: int) -> None:
    if not 0 < parameter <= _MAX_PARAMETER:
        raise ValidationError(f"{what} must be 1 to {_MAX_PARAMETER}, not {parameter}")


def _days(source_type: IcebergType, value: Any) -> int:
    form = form_of(source_type)
    return int(value if form.meaning == "date" else value // form.units_per_day)
