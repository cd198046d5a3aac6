"""Columns that a merge with schema evolution adds to the table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import types as S

from frazil.format import types as I
from frazil.format.predicates.columns import split_name
from frazil.format.schema import Schema
from frazil.spark.row_level.assignments import value_of
from frazil.spark.row_level.clauses import Clause, Do, When
from frazil.spark.types import query_schema_from_spark

if TYPE_CHECKING:
    from frazil.spark.row_level.merge import Merge


def new_columns(merge: Merge, schema: Schema, *, case_sensitive: bool) -> Schema:
    """Return the columns and fields that the source has and the table lacks.

    A clause for all columns takes every column of the source; others those that they name.
    """
    key = str if case_sensitive else str.lower
    given = {key(field.name): field for field in merge.source.schema.fields}
    known = {key(field.name): field for field in schema.fields}
    wanted: dict[str, S.StructField] = {}
    for clause in merge.clauses:
        if clause.do is Do.DELETE:
            continue
        if clause.values is None:
            wanted.update(given)
            continue
        for name, value in clause.values.items():
            parts = split_name(str(name))
            if len(parts) > 1 and key(parts[0]) == key(merge.target_name):
                parts = parts[1:]
            top = key(parts[0])
            if top in given:
                wanted.setdefault(top, given[top])
            elif top not in known and len(parts) == 1 and clause.when is not When.BY_SOURCE:
                kind = _type_of(merge, clause, value)
                if kind is not None:
                    wanted.setdefault(top, S.StructField(parts[0], kind))
    fields = []
    for name, field in wanted.items():
        if name in known:
            missing = _missing(field.dataType, known[name].field_type, key)
            if missing is not None:
                fields.append(S.StructField(known[name].name, missing))
        elif not isinstance(field.dataType, S.NullType):
            fields.append(S.StructField(field.name, field.dataType))
    return query_schema_from_spark(S.StructType(fields))


def _missing(
    source: S.DataType, target: I.IcebergType, key: Callable[[str], str]
) -> S.DataType | None:
    """The part of a type that the table's type lacks; None where it has all."""
    match source, target:
        case S.StructType(), I.StructType():
            known = {key(field.name): field for field in target.fields}
            fields = []
            for field in source.fields:
                old = known.get(key(field.name))
                if old is None:
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
            return None


def _type_of(merge: Merge, clause: Clause, value: object) -> S.DataType | None:
    """The type of a value that only the source's columns make up."""
    try:
        scope = merge.source.alias(merge.source_name)
        return scope.select(value_of(value).alias("value")).schema.fields[0].dataType
    except Exception:
        return None
