"""Columns that a merge with schema evolution adds to the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import types as S

from frazil.errors import FrazilError
from frazil.format import types as I
from frazil.format.evolution.promotion import can_promote
from frazil.format.predicates.columns import split_name
from frazil.format.schema import Schema
from frazil.spark.row_level.assignments import value_of
from frazil.spark.row_level.merging.clauses.clause import Do, When
from frazil.spark.types import primitive_from_spark, query_schema_from_spark

if TYPE_CHECKING:
    from frazil.spark.row_level.merging.merge import Merge


def new_columns(merge: Merge, schema: Schema, *, case_sensitive: bool) -> Schema:
    """Return the columns and fields that the source has and the table lacks, or has narrower.

    A clause for all columns takes every column of the source; others those that they name. What the
    table has already is required as it is there.
    """
    key = str if case_sensitive else str.lower
    given = {key(field.name): field for field in merge.source.schema.fields}
    known = {key(field.name): field for field in schema.fields}
    wanted: dict[str, S.DataType] = {}

    def want(name: str, kind: S.DataType | None) -> None:
        if kind is not None:
            old = wanted.get(key(name))
            wanted[key(name)] = kind if old is None else _united(old, kind, key)

    names = {name: field.name for name, field in given.items()}
    names.update({name: field.name for name, field in known.items()})
    for clause in merge.clauses:
        if clause.do is Do.DELETE:
            continue
        if clause.values is None:
            for field in given.values():
                want(field.name, field.dataType)
            continue
        for name, value in clause.values.items():
            parts = split_name(str(name))
            if len(parts) > 1 and key(parts[0]) == key(merge.target_name):
                parts = parts[1:]
            top = key(parts[0])
            names.setdefault(top, parts[0])
            if len(parts) == 1 and top in given and top not in known:
                want(parts[0], given[top].dataType)
            elif clause.when is not When.BY_SOURCE:
                want(parts[0], _nested(parts[1:], _type_of(merge, value)))
    fields = []
    for name, kind in wanted.items():
        missing = _missing(kind, known[name].field_type, key) if name in known else kind
        if missing is not None and not isinstance(missing, S.NullType):
            fields.append(S.StructField(names[name], missing))
    added = query_schema_from_spark(S.StructType(fields))
    return Schema(_required_as_in(schema.fields, added.fields))


def _united(one: S.DataType, other: S.DataType, key: Callable[[str], str]) -> S.DataType:
    """A type with the fields of two; of parts that both have the first counts."""
    if not (isinstance(one, S.StructType) and isinstance(other, S.StructType)):
        return one
    fields = {key(field.name): field for field in one.fields}
    for field in other.fields:
        old = fields.get(key(field.name))
        kind = field.dataType if old is None else _united(old.dataType, field.dataType, key)
        fields[key(field.name)] = S.StructField(field.name if old is None else old.name, kind)
    return S.StructType(list(fields.values()))


def _nested(names: Sequence[str], kind: S.DataType | None) -> S.DataType | None:
    """A struct that holds a field at the end of a path."""
    if kind is None or not names:
        return kind
    below = _nested(names[1:], kind)
    assert below is not None
    return S.StructType([S.StructField(names[0], below)])


def _required_as_in(
    old: Sequence[I.NestedField], new: Sequence[I.NestedField]
) -> tuple[I.NestedField, ...]:
    known = {field.name: field for field in old}
    return tuple(
        replace(
            field,
            required=known[field.name].required,
            field_type=_type_required_as_in(known[field.name].field_type, field.field_type),
        )
        if field.name in known
        else field
        for field in new
    )


def _type_required_as_in(old: I.IcebergType, new: I.IcebergType) -> I.IcebergType:
    match old, new:
        case I.StructType(), I.StructType():
            return I.StructType(_required_as_in(old.fields, new.fields))
        case I.ListType(), I.ListType():
            element = _type_required_as_in(old.element_type, new.element_type)
            return replace(new, element_type=element, element_required=old.element_required)
        case I.MapType(), I.MapType():
            value = _type_required_as_in(old.value_type, new.value_type)
            return replace(new, value_type=value, value_required=old.value_required)
        case _:
            return new


def _missing(
    source: S.DataType, target: I.IcebergType, key: Callable[[str], str]
) -> S.DataType | None:
    """The part of a type that the table's type lacks or has narrower; None where it has all."""
    match source, target:
        case S.StructType(), I.StructType():
            known = {key(field.name): field for field in target.fields}
            fields = []
            for field in source.fields:
                old = known.get(key(field.name))
                if old is None:
                    if not isinstance(field.dataType, S.NullType):
                        fields.append(S.StructField(field.name, field.dataType))
                    continue
                part = _missing(field.dataType, old.field_type, key)
                if part is not None:
                    fields.append(S.StructField(old.name, part))
            return S.StructType(fields) if fields else None
        case S.ArrayType(), I.ListType():
            part = _missing(source.elementType, target.element_type, key)
            return None if part is None else S.ArrayType(part)
        case S.MapType(), I.MapType():
            part = _missing(source.valueType, target.value_type, key)
            return None if part is None else S.MapType(source.keyType, part)
        case _:
            wider = primitive_from_spark(source)
            # Of a longer kind of number, not of another kind.
            is_wider = wider is not None and can_promote(target, wider, 2)
            return source if is_wider else None


def _type_of(merge: Merge, value: object) -> S.DataType | None:
    """The type of a value that only the source's columns make up."""
    try:
        scope = merge.source.alias(merge.source_name)
        return scope.select(value_of(value).alias("value")).schema.fields[0].dataType
    except (FrazilError, PySparkException):
        return None
