"""Variants as Arrow: a struct of their two parts, ``metadata`` and ``value``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.errors import UnsupportedError
from frazil.spark.session.tasks import map_batches

_RAW: Final = S.StructType(
    [
        S.StructField("metadata", S.BinaryType(), True),
        S.StructField("value", S.BinaryType(), True),
    ]
)
_RAW_ARROW: Final = pa.struct([pa.field("metadata", pa.binary()), pa.field("value", pa.binary())])


def with_variants_apart(rows: DataFrame) -> DataFrame:
    """The rows with every variant column as a struct of its parts, so that NULLs reach Arrow.

    Raises:
        UnsupportedError: a variant inside of a struct, a list or a map.
    """
    places: list[int] = []
    fields: list[S.StructField] = []
    for place, field in enumerate(rows.schema.fields):
        is_variant = isinstance(field.dataType, S.VariantType)
        if not is_variant and "variant" in field.dataType.simpleString():
            raise UnsupportedError(
                f"the column {field.name!r} holds variants inside of another type; "
                "turn them into text first, with to_json"
            )
        if is_variant:
            places.append(place)
        fields.append(S.StructField(field.name, _RAW if is_variant else field.dataType))
    if not places:
        return rows
    return map_batches(rows, partial(_batches_of_parts, tuple(places)), S.StructType(fields))


def _batches_of_parts(
    places: tuple[int, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays: list[Any] = list(batch.columns)
        for place in places:
            arrays[place] = _parts(arrays[place])
        yield pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _parts(variants: pa.StructArray) -> pa.StructArray:
    names = ("metadata", "value")
    parts = [variants.field(variants.type.get_field_index(name)) for name in names]
    return pa.StructArray.from_arrays(parts, fields=list(_RAW_ARROW), mask=variants.is_null())
