"""Columns that a merge with schema evolution adds to the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.errors import FrazilError, ValidationError
from frazil.format import types as I
from frazil.format.evolution.promotion import can_promote
from frazil.format.predicates.columns import split_name
from frazil.format.schema import Schema
from frazil.spark.port import SparkPort
from frazil.spark.row_level.merging.clauses.clause import Clause, Do, When
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.row_level.merging.clauses.scopes import Scopes
from frazil.spark.row_level.values.assignments import value_of
from frazil.spark.row_level.values.expressions import check_values
from frazil.spark.row_level.values.names import SOURCE, TARGET, find_path
from frazil.spark.session.facts import type_support
from frazil.spark.types import primitive_from_spark, query_schema_from_spark, schema_to_spark
from frazil.table.operations import TableOperations

_PATH: Final = "frazil.path"
"""The key of a column's or field's metadata that says where in the source it is."""


def new_columns(merge: MergeRequest, schema: Schema, *, case_sensitive: bool) -> Schema:
    """Return the columns and fields that the source has and the table lacks, or has narrower.

    A clause for all columns takes every column of the source. Another one takes those that it sets
    to the source's column or field of the same name, as Spark does; a number of the table's becomes
    wider by any value of the source's columns. What the table has already is required as there.

    Raises:
        ValidationError: a clause names what neither the table has nor comes so, or a value cannot
            be computed.
        PredicateError: a condition names a column that the table does not have yet.
    """
    key = str if case_sensitive else str.lower
    given = {key(field.name): field for field in merge.source.schema.fields}
    known = {key(field.name): field for field in schema.fields}
    wanted: dict[str, S.DataType] = {}

    def want(name: str, kind: S.DataType | None) -> None:
        if kind is not None:
            old = wanted.get(key(name))
            wanted[key(name)] = kind if old is None else _unite(old, kind, key)

    names = {name: field.name for name, field in given.items()}
    names.update({name: field.name for name, field in known.items()})
    texts = _Texts(merge, schema, case_sensitive)
    for clause in merge.clauses:
        if clause.takes_all:
            for field in given.values():
                want(field.name, field.dataType)
        for name, value in (clause.values or {}).items():
            path, is_known = texts.path(clause, str(name), value)
            kind = texts.type_of(value)
            if texts.is_same_path(path, texts.source_path(clause, value)):
                want(path[0], _nested_type(path[1:], kind))
            elif is_known and clause.when is not When.BY_SOURCE and kind is not None:
                found = find_path(
                    str(name), schema, alias=merge.target_alias, case_sensitive=case_sensitive
                )
                want(path[0], _nested_type(path[1:], _known_part(kind, found[-1].field_type, key)))
    fields = []
    for name, kind in wanted.items():
        missing = _missing_part(kind, known[name].field_type, key) if name in known else kind
        if missing is not None and not isinstance(missing, S.NullType):
            fields.append(S.StructField(names[name], missing))
    added = query_schema_from_spark(S.StructType(fields))
    if added.fields:
        texts.check()
    return Schema(_required_as_in(schema.fields, added.fields))


def add_columns_of(rows: DataFrame, port: SparkPort) -> None:
    """Add to a table what rows have and it lacks, or has narrower."""
    every = MergeRequest(
        source=rows,
        on="true",
        clauses=[Clause(when=When.MATCHED, do=Do.UPDATE)],
        target_alias=TARGET,
        source_alias=SOURCE,
    )
    strict = port.case_sensitive
    added = new_columns(every, port.metadata.schema, case_sensitive=strict)
    if added.fields:
        with TableOperations(port).update_schema(case_sensitive=strict) as change:
            change.union_by_name(added)


@dataclass(frozen=True)
class _Texts:
    """The names and values of a merge, read before the table has anything new."""

    merge: MergeRequest
    schema: Schema
    case_sensitive: bool

    @cached_property
    def scopes(self) -> Scopes:
        """The table as it is, and the source, whose columns and fields say where they are."""
        spark = self.merge.source.sparkSession
        shape = schema_to_spark(self.schema, support=type_support(spark))
        rows = spark.createDataFrame([], shape)
        source = spark.createDataFrame([], _with_paths(self.merge.source.schema, ()))
        return Scopes.of(self.merge, rows, source)

    def is_same_path(self, one: Sequence[str], other: Sequence[str] | None) -> bool:
        """Whether two paths mean the same."""
        if other is None or self.case_sensitive:
            return other is not None and tuple(one) == tuple(other)
        return [name.lower() for name in one] == [name.lower() for name in other]

    def path(self, clause: Clause, name: str, value: object) -> tuple[tuple[str, ...], bool]:
        """Return the path that a clause gives a value to, and whether the table has it.

        Raises:
            ValidationError: the table lacks it, and the value is not the source's of that name.
        """
        alias = self.merge.target_alias
        try:
            found = find_path(name, self.schema, alias=alias, case_sensitive=self.case_sensitive)
        except ValidationError as error:
            parts = split_name(name)
            readings = (
                [parts[1:]] if len(parts) > 1 and self.is_same_path(parts[:1], [alias]) else []
            )
            given = self.source_path(clause, value)
            for reading in (*readings, parts):
                if self.is_same_path(reading, given):
                    return reading, False
            raise ValidationError(
                f"{error}; a merge with schema evolution adds what the source has, where a clause "
                f"takes all of its columns or sets {name!r} to the source's of that name, not to "
                f"{value!s}"
            ) from error
        return tuple(field.name for field in found), True

    def source_path(self, clause: Clause, value: object) -> tuple[str, ...] | None:
        """Return the path of the source's column or field that a value is, and nothing more."""
        if clause.when is When.BY_SOURCE:
            return None
        found = _field_of(self.scopes.of_clause(clause), value)
        path = None if found is None else found.metadata.get(_PATH)
        return None if path is None else tuple(json.loads(path))

    def type_of(self, value: object) -> S.DataType | None:
        """Return the type of a value that only the source's columns make up."""
        found = _field_of(self.scopes.source, value)
        return None if found is None else _without_metadata(found.dataType)

    def check(self) -> None:
        """Check that every condition and value is understood while the table has nothing new.

        Raises:
            PredicateError, ValidationError: one is not.
        """
        if self.merge.keys is None:
            self.scopes.checked_on(self.merge)
        for clause in self.merge.clauses:
            self.scopes.check_condition(clause)
            values = (clause.values or {}).values()
            if values:
                columns, texts = [value_of(each) for each in values], [str(each) for each in values]
                check_values(self.scopes.of_clause(clause), columns, texts)


def _field_of(scope: DataFrame, value: object) -> S.StructField | None:
    """What a value is over rows; None where Spark cannot say."""
    try:
        return scope.select(value_of(value)).schema.fields[0]
    except (FrazilError, PySparkException):
        return None


def _with_paths(kind: S.StructType, above: tuple[str, ...]) -> S.StructType:
    """A struct of which each field says its path."""
    fields = []
    for field in kind.fields:
        path, data_type = (*above, field.name), field.dataType
        if isinstance(data_type, S.StructType):
            data_type = _with_paths(data_type, path)
        metadata = {**(field.metadata or {}), _PATH: json.dumps(path)}
        fields.append(S.StructField(field.name, data_type, field.nullable, metadata))
    return S.StructType(fields)


def _without_metadata(kind: S.DataType) -> S.DataType:
    if not isinstance(kind, S.StructType):
        return kind
    return S.StructType(
        [S.StructField(f.name, _without_metadata(f.dataType), f.nullable) for f in kind.fields]
    )


def _known_part(source: S.DataType, target: I.IcebergType, key: Callable[[str], str]) -> S.DataType:
    """A type without the fields of structs that the table's type lacks."""
    match source, target:
        case S.StructType(), I.StructType():
            known = {key(field.name): field.field_type for field in target.fields}
            fields = [f for f in source.fields if key(f.name) in known]
            return S.StructType(
                [
                    S.StructField(f.name, _known_part(f.dataType, known[key(f.name)], key))
                    for f in fields
                ]
            )
        case S.ArrayType(), I.ListType():
            return S.ArrayType(_known_part(source.elementType, target.element_type, key))
        case S.MapType(), I.MapType():
            value = _known_part(source.valueType, target.value_type, key)
            return S.MapType(source.keyType, value)
        case _:
            return source


def _unite(one: S.DataType, other: S.DataType, key: Callable[[str], str]) -> S.DataType:
    """A type with the fields of two; of parts that both have the first counts."""
    if not (isinstance(one, S.StructType) and isinstance(other, S.StructType)):
        return one
    fields = {key(field.name): field for field in one.fields}
    for field in other.fields:
        old = fields.get(key(field.name))
        kind = field.dataType if old is None else _unite(old.dataType, field.dataType, key)
        fields[key(field.name)] = S.StructField(field.name if old is None else old.name, kind)
    return S.StructType(list(fields.values()))


def _nested_type(names: Sequence[str], kind: S.DataType | None) -> S.DataType | None:
    """A struct that holds a field at the end of a path."""
    if kind is None or not names:
        return kind
    below = _nested_type(names[1:], kind)
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


def _missing_part(
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
                part = _missing_part(field.dataType, old.field_type, key)
                if part is not None:
                    fields.append(S.StructField(old.name, part))
            return S.StructType(fields) if fields else None
        case S.ArrayType(), I.ListType():
            part = _missing_part(source.elementType, target.element_type, key)
            return None if part is None else S.ArrayType(part)
        case S.MapType(), I.MapType():
            part = _missing_part(source.valueType, target.value_type, key)
            return None if part is None else S.MapType(source.keyType, part)
        case _:
            wider = primitive_from_spark(source)
            # Of a longer kind of number, not of another kind.
            is_wider = wider is not None and can_promote(target, wider, 2)
            return source if is_wider else None
