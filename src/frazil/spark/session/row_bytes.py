"""How many bytes rows take where every task gets them all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

_ROW_BYTES: Final = 24
_VALUE_BYTES: Final = 16
"""What a row and each of its values take beside what is in texts, lists and the like."""

_RESULT_SIZE: Final = "spark.driver.maxResultSize"
_UNITS: Final = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


@dataclass(frozen=True, slots=True)
class RowBytes:
    """The bytes of some rows.

    Attributes:
        total: of all of them.
        largest: of the largest one.
    """

    total: int
    largest: int

    @classmethod
    def of(cls, count: int, columns: int, beyond: int, most_beyond: int) -> RowBytes:
        """Add what every row takes to what was measured.

        Args:
            count: how many rows there are.
            columns: how many columns they have.
            beyond: what `bytes_beyond` says of all rows.
            most_beyond: the most that it says of one.
        """
        width = row_bytes(columns)
        return cls(count * width + beyond, width + most_beyond)


def row_bytes(columns: int) -> int:
    """Return the bytes of a row of so many numbers."""
    return _ROW_BYTES + _VALUE_BYTES * columns


def bytes_beyond(values: Sequence[tuple[Column, S.DataType]]) -> Column | None:
    """Return what the values of a row take beyond `row_bytes`; None where they are all numbers."""
    found = [beyond for value, kind in values if (beyond := _bytes_beyond(value, kind)) is not None]
    return reduce(add, found) if found else None


def most_result_bytes(spark: SparkSession) -> int:
    """Return how much one job may bring to the driver, without limit a great number.

    What every task gets comes through the driver.
    """
    text = str(spark.conf.get(_RESULT_SIZE, None) or "1g").strip().lower()
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", text)
    # A number without a unit is bytes, and 0 is no limit.
    size = int(found[1]) << _UNITS.get(found[2], 0) if found else 1 << 30
    return size or 1 << 60


def _bytes_beyond(value: Column, kind: S.DataType) -> Column | None:
    match kind:
        case S.StringType() | S.BinaryType():
            return _bytes_or_zero(F.octet_length(value))
        case S.ArrayType():
            return _of_list(value, kind.elementType)
        case S.MapType():
            keys = _of_list(F.map_keys(value), kind.keyType)
            return keys + _of_list(F.map_values(value), kind.valueType)
        case S.StructType():
            names = [name.lower() for name in kind.names]
            if len(set(names)) < len(names):
                return _bytes_or_zero(F.octet_length(F.to_json(value)))
            whole = F.lit(_VALUE_BYTES * len(names)).cast("bigint")
            parts = [(value.getField(f.name), f.dataType) for f in kind.fields]
            beyond = bytes_beyond(parts)
            return whole if beyond is None else whole + beyond
        case _ if kind.typeName() == "variant":
            return _bytes_or_zero(F.octet_length(F.to_json(value)))
        case _ if kind.typeName() in ("geometry", "geography"):
            return _bytes_or_zero(F.octet_length(F.call_function("st_asbinary", value)))
        case _:
            return None


def _of_list(value: Column, element: S.DataType) -> Column:
    room = _bytes_or_zero(F.size(value) * F.lit(_VALUE_BYTES))
    if isinstance(element, S.StringType):
        return room + _bytes_or_zero(F.octet_length(F.concat_ws("", value)))
    if _bytes_beyond(F.lit(None), element) is None:
        return room

    def total(size: Column, item: Column) -> Column:
        beyond = _bytes_beyond(item, element)
        assert beyond is not None, element
        return size + beyond

    return room + _bytes_or_zero(F.aggregate(value, F.lit(0).cast("bigint"), total))


def _bytes_or_zero(size: Column) -> Column:
    """A size as a long: 0 of NULL, of which Spark may say -1."""
    return F.greatest(F.coalesce(size.cast("bigint"), F.lit(0)), F.lit(0)).cast("bigint")
