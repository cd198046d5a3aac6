"""Whether a written file holds its columns as the specification wants them stored.

What is compared comes out of a footer that is read anyway: physical types, what they mean, and
field ids at every level.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from frazil.errors import InvalidDataFileError
from frazil.format import types as I
from frazil.format.manifests.avro_schema import decimal_width
from frazil.format.schema import Schema
from frazil.format.types.forms import form_of
from frazil.storage.parquet.field_ids import stored_field_id
from frazil.storage.parquet.metrics import parquet_columns

_INT32_DIGITS: Final = 9
_INT64_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class _Stored:
    """How a column is stored.

    Attributes:
        physical: Parquet's physical type.
        logical: what it means, as the entries of PyArrow's JSON that matter; none for plain values.
        length: of fixed bytes; 0 for others.
    """

    physical: str
    logical: tuple[tuple[str, Any], ...] = ()
    length: int = 0

    def is_column(self, column: pq.ColumnSchema) -> bool:
        """Return whether a file's column is stored so."""
        if column.physical_type != self.physical or (self.length and column.length != self.length):
            return False
        if not self.logical:
            return True
        told = json.loads(column.logical_type.to_json())
        return all(told.get(name) == value for name, value in self.logical)

    def __str__(self) -> str:
        length = f"({self.length})" if self.length else ""
        meaning = ", ".join(
            str(value) if name == "Type" else f"{name}={value}" for name, value in self.logical
        )
        return f"{self.physical}{length}" + (f" as {meaning}" if meaning else "")


class SchemaCheck:
    """Compares the columns of written files with the schema that they were written for.

    Args:
        schema: of the files; unknown columns are in none of them.
    """

    def __init__(self, schema: Schema) -> None:
        self._fields = schema.fields
        # Names may hold dots: two columns may have one path.
        self._leaves: dict[str, list[I.IcebergType]] = {}
        self._variants: list[str] = []
        for path, child, _ in parquet_columns(schema.as_struct()):
            if isinstance(child.field_type, I.VariantType):
                self._variants.append(f"{path}.")
            elif not isinstance(child.field_type, I.UnknownType):
                self._leaves.setdefault(path, []).append(child.field_type)

    def check(self, file: pq.ParquetFile, path: str) -> None:
        """Check one file."""
        columns = dict(zip(file.schema_arrow.names, file.schema_arrow, strict=True))
        problems = [
            *self._of_types(file.metadata.schema),
            *_of_ids(self._fields, columns, ""),
        ]
        if problems:
            raise InvalidDataFileError(
                "the file is not what the table's schema wants, it is not committed: "
                + "; ".join(problems),
                file=path,
            )

    def _of_types(self, columns: pq.ParquetSchema) -> Iterator[str]:
        missing = set(self._leaves)
        for index in range(len(columns)):
            column = columns.column(index)
            missing.discard(column.path)
            known = self._leaves.get(column.path)
            if known is None:
                if not column.path.startswith(tuple(self._variants)):
                    yield f"there is the unexpected column {column.path!r}"
            elif not any(_stored_form(kind).is_column(column) for kind in known):
                length = f"({column.length})" if column.length > 0 else ""
                wanted = " or ".join(f"{kind} is stored as {_stored_form(kind)}" for kind in known)
                yield (
                    f"the column {column.path!r} is {column.physical_type}{length} "
                    f"{column.logical_type}, {wanted}"
                )
        yield from (f"the column {path!r} is missing" for path in sorted(missing))


def _stored_form(iceberg_type: I.IcebergType) -> _Stored:
    match iceberg_type:
        case I.DecimalType(precision=precision, scale=scale):
            meaning = (("Type", "Decimal"), ("precision", precision), ("scale", scale))
            if precision <= _INT32_DIGITS:
                return _Stored("INT32", meaning)
            if precision <= _INT64_DIGITS:
                return _Stored("INT64", meaning)
            return _Stored("FIXED_LEN_BYTE_ARRAY", meaning, decimal_width(precision))
        case I.FixedType(length=length):
            return _Stored("FIXED_LEN_BYTE_ARRAY", length=length)
        case _:
            form = form_of(iceberg_type)
            return _Stored(form.parquet, form.logical, form.length)


def _of_ids(
    fields: Iterable[I.NestedField], found: Mapping[str, pa.Field], above: str
) -> Iterator[str]:
    for child in fields:
        if child.name in found:
            yield from _of_id(child, found[child.name], f"{above}{child.name}")


def _of_id(expected: I.NestedField, found: pa.Field, path: str) -> Iterator[str]:
    field_id = stored_field_id(found)
    if field_id != expected.field_id:
        told = "no field id" if field_id is None else f"the field id {field_id}"
        yield f"the column {path!r} has {told}, not {expected.field_id}"
    kind = found.type
    match expected.field_type:
        case I.StructType(fields=fields) if pa.types.is_struct(kind):
            parts = {kind.field(place).name: kind.field(place) for place in range(kind.num_fields)}
            yield from _of_ids(fields, parts, f"{path}.")
        case I.ListType(element_field=element) if pa.types.is_list(kind):
            yield from _of_id(element, kind.value_field, f"{path}.element")
        case I.MapType(key_field=key, value_field=value) if pa.types.is_map(kind):
            yield from _of_id(key, kind.key_field, f"{path}.key")
            yield from _of_id(value, kind.item_field, f"{path}.value")
        case _:
            pass
