"""SET and VALUES of a command: what becomes of each column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.format.values.decimals import decimal_as_text, digits_of
from frazil.spark.row_level.values.expressions import check_values
from frazil.spark.row_level.values.names import find_path
from frazil.spark.row_level.values.store_assignment import StoreAssignment
from frazil.spark.types import SparkTypeSupport

Value = Any
"""A value as users write it: SQL text, a Column, or a Python value that is no text."""


@dataclass(slots=True)
class _Node:
    """What is assigned to a column or field, or to fields below it."""

    value: Column | None = None
    text: str = ""
    below: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The assignments of one clause, by column.

    Attributes:
        schema: of the table.
        columns: the assigned columns by name.
        types: Spark's types of the values, once they are known.
        keeps_fields: whether fields that the values' structs lack stay as they are.
        are_columns: whether the values are columns of the rows, as they are.
    """

    schema: Schema
    columns: Mapping[str, _Node]
    case_sensitive: bool
    keeps_fields: bool = False
    are_columns: bool = False
    types: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        values: Mapping[str, Value],
        schema: Schema,
        *,
        alias: str,
        case_sensitive: bool,
        nested: bool = True,
        keeps_fields: bool = False,
        are_columns: bool = False,
    ) -> Assignments:
        """Read what a user gave.

        Args:
            values: by the name of the column or of a field of it.
            alias: the table's name in the command.
            nested: whether fields of columns may be assigned.
            keeps_fields: whether fields that the values' structs lack stay as they are.
            are_columns: whether the values are columns of the rows, as they are.

        Raises:
            ValidationError: a name that the table does not have, is given twice, or contradicts
                another one.
        """
        if not isinstance(values, Mapping) or not values:
            raise ValidationError(
                f"assignments are a mapping of column names to values, not {values!r}"
            )
        columns: dict[str, _Node] = {}
        for name, value in values.items():
            path = find_path(str(name), schema, alias=alias, case_sensitive=case_sensitive)
            if len(path) > 1 and not nested:
                raise ValidationError(f"{name!r} is a field: give its whole column a value")
            level = columns
            for each in path[:-1]:
                node = level.setdefault(each.name, _Node())
                if node.value is not None:
                    raise ValidationError(f"both {name!r} and a struct that holds it are assigned")
                level = node.below
            last = path[-1].name
            if last in level:
                raise ValidationError(f"{name!r} or a part of it is assigned twice")
            level[last] = _Node(value_of(value, path[-1].field_type), str(value))
        return cls(
            schema=schema,
            columns=columns,
            case_sensitive=case_sensitive,
            keeps_fields=keeps_fields,
            are_columns=are_columns,
        )

    def columns_after(
        self, scope: DataFrame, support: SparkTypeSupport, *, old: Mapping[str, Column] | None
    ) -> dict[str, Column]:
        """Return the new value of every column of the table.

        Spark analyses the values once, at the first call.

        Args:
            scope: rows that the values are computed from.
            support: the session's newer types.
            old: the columns as they are; for new rows none: what is not assigned has its default.

        Raises:
            SchemaMismatchError: values of types that the columns cannot hold.
            ValidationError: a value that cannot be computed from a row.
        """
        nodes = [node for node in _all_nodes(self.columns) if node.value is not None]
        if not self.types:
            if not self.are_columns:
                check_values(
                    scope,
                    [node.value for node in nodes if node.value is not None],
                    [node.text for node in nodes],
                )
            self.types.update(_types_of(scope, nodes))
        types = self.types
        store = StoreAssignment(
            support, case_sensitive=self.case_sensitive, keeps_fields=self.keeps_fields
        )
        after: dict[str, Column] = {}
        for column in self.schema.fields:
            node = self.columns.get(column.name)
            if node is not None:
                before = None if old is None else old[column.name]
                after[column.name] = _build(node, column, before, store, types, column.name)
            elif old is not None:
                after[column.name] = old[column.name]
            elif column.required and column.write_default is None:
                raise ValidationError(
                    f"the required column {column.name!r} gets no value and has no default"
                )
            else:
                after[column.name] = store.default(column)
        store.finish()
        return after


def value_of(value: Value, kind: I.IcebergType | None = None) -> Column:
    """Return a user's value as a column, for one of a type: text is SQL."""
    if isinstance(value, Column):
        return value
    return F.expr(value) if isinstance(value, str) else literal(value, kind)


def _all_nodes(columns: Mapping[str, _Node]) -> Iterator[_Node]:
    for node in columns.values():
        yield node
        yield from _all_nodes(node.below)


def _types_of(scope: DataFrame, nodes: Sequence[_Node]) -> dict[int, Any]:
    """The types of the values, by the identity of their nodes."""
    columns = [node.value for node in nodes if node.value is not None]
    named = [column.alias(f"v{place}") for place, column in enumerate(columns)]
    try:
        schema = scope.select(*named).schema
    except AnalysisException as error:
        texts = ", ".join(repr(node.text) for node in nodes)
        raise ValidationError(f"the values {texts} cannot be computed: {error}") from error
    return {id(node): each.dataType for node, each in zip(nodes, schema.fields, strict=True)}


def _build(
    node: _Node,
    column: I.NestedField,
    old: Column | None,
    store: StoreAssignment,
    types: Mapping[int, Any],
    path: str,
) -> Column:
    if node.value is not None:
        return store.value(node.value, types[id(node)], column, path, old=old)
    kind = column.field_type
    assert isinstance(kind, I.StructType), path
    assert old is not None, path
    parts = []
    for each in kind.fields:
        before = old.getField(each.name)
        below = node.below.get(each.name)
        value = before
        if below is not None:
            value = _build(below, each, before, store, types, f"{path}.{each.name}")
        parts.append(value.alias(each.name))
    return F.struct(*parts)


def columns_named(alias: str, names: Sequence[str]) -> dict[str, Column]:
    """Return the columns of one side of a command by their names."""
    return {name: F.col(quote_name_always([alias, name])) for name in names}


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICRO: Final = dt.timedelta(microseconds=1)
_MOST_DIGITS: Final = 38
_MOMENTS: Final = (I.TimestamptzType, I.TimestamptzNanoType)


def literal(value: object, kind: I.IcebergType | None = None) -> Column:
    """Return a Python value as a column.

    A datetime without a zone is local time for a column of moments, as PySpark has it, and else
    what clocks show; with a zone it is that moment. A time of the day is its microseconds. Text is
    text.

    Args:
        kind: of the column that it is for, where that is known.

    Raises:
        ValidationError: Spark has no such value.
    """
    match value:
        case Column():
            return value
        case bool() | None | float() | str() | bytes():
            return F.lit(value)
        case int():
            fits = -(1 << 63) <= value < 1 << 63
            return F.lit(value) if fits else _decimal(Decimal(value))
        case Decimal():
            return _decimal(value)
        case dt.datetime() if value.tzinfo is None and isinstance(kind, _MOMENTS):
            return F.lit(value)
        case dt.datetime() if value.tzinfo is None:
            return F.lit(value.isoformat(sep=" ")).cast(S.TimestampNTZType())
        case dt.datetime():
            return F.timestamp_micros(F.lit((value - _EPOCH) // _MICRO))
        case dt.time():
            moment = dt.datetime.combine(_EPOCH.date(), value.replace(tzinfo=dt.UTC))
            return F.lit((moment - _EPOCH) // _MICRO)
        case UUID():
            return F.lit(str(value))
        case Row():
            kinds = (
                {field.name: field.field_type for field in kind.fields}
                if isinstance(kind, I.StructType)
                else {}
            )
            parts = value.asDict().items()
            return F.struct(*(literal(each, kinds.get(n)).alias(n) for n, each in parts))
        case list():
            of_elements = kind.element_type if isinstance(kind, I.ListType) else None
            return F.array(*(literal(each, of_elements) for each in value))
        case Mapping():
            of_pairs = (
                (kind.key_type, kind.value_type) if isinstance(kind, I.MapType) else (None, None)
            )
            return F.create_map(
                *(
                    literal(part, of_part)
                    for pair in value.items()
                    for part, of_part in zip(pair, of_pairs, strict=True)
                )
            )
        case _:
            return _of_spark(value)


def _decimal(value: Decimal) -> Column:
    # As text, since Spark Connect gives decimals of Python too few digits.
    if not value.is_finite():
        raise ValidationError(f"{value} is no value of a decimal column")
    exponent = int(value.as_tuple().exponent)
    scale = max(-exponent, 0)
    digits = max(digits_of(value) + max(exponent, 0), scale)
    if digits > _MOST_DIGITS:
        raise ValidationError(f"{value} has more digits than Spark's decimals, {_MOST_DIGITS}")
    return F.lit(decimal_as_text(value)).cast(S.DecimalType(max(digits, 1), scale))


def _of_spark(value: Any) -> Column:
    """What else Spark takes, as numbers and arrays of NumPy."""
    try:
        return F.lit(value)
    except (PySparkException, AttributeError, TypeError, ValueError) as error:
        kind = type(value).__qualname__
        raise ValidationError(
            f"{value!r} is no value that Spark knows: it is a {kind}. Give SQL text, a Column, or "
            "a number, bool, bytes, date, datetime, time, Decimal, UUID, list, dict or Row"
        ) from error
