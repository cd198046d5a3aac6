"""What the condition of a match says of the table's rows before they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import types as S

from frazil.errors import PredicateError
from frazil.format import types as I
from frazil.format.predicates.bind import bind
from frazil.format.predicates.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    Comparison,
    Expression,
    In,
    IsNull,
    Op,
    Reference,
    all_of,
    any_of,
)
from frazil.format.predicates.sql.implied import conjuncts_of, words_of
from frazil.format.schema import Schema
from frazil.spark.conditions import condition_of
from frazil.spark.row_level.merging.keys.equal_columns import MatchNames
from frazil.spark.row_level.merging.source import Source
from frazil.spark.session.facts import time_zone_of

MOST_VALUES: Final = 1_000
"""Of a source of up to so many rows the keys themselves are looked for, else their range."""

_MOST_VALUE_BYTES: Final = 16 << 20
"""Of such a source, if its keys are no longer than this."""

_EPOCH: Final = dt.datetime(1970, 1, 1)


def named_fields(conditions: Sequence[str | Column], schema: Schema) -> list[I.NestedField]:
    """Return the columns that conditions may name: all where that cannot be told."""
    wanted: set[str] = set()
    for condition in conditions:
        words = words_of(condition) if isinstance(condition, str) else None
        if words is None or words.has_star:
            return list(schema.fields)
        wanted.update(f.name for f in schema.fields if words.name_any_of([f.name]))
    return [field for field in schema.fields if field.name in wanted]


def implied_by_target(
    condition: str | Column | None,
    schema: Schema,
    *,
    spark: SparkSession,
    target_alias: str,
    case_sensitive: bool,
) -> Expression:
    """Return what holds for every row of the table for which a condition on it holds."""
    return condition_of(
        condition,
        schema,
        spark=spark,
        case_sensitive=case_sensitive,
        time_zone=time_zone_of(spark),
        alias=target_alias,
    ).implied


def implied_by_matches(
    on: str | Column,
    source: Source,
    schema: Schema,
    *,
    spark: SparkSession,
    target_alias: str,
    source_alias: str,
    case_sensitive: bool,
) -> Expression:
    """Return what holds for every row of the table that a row of the source may match.

    Parts of `on` about the table alone count, and equalities of a column with one of the source:
    its values lie within those of the source.
    """
    if source.count == 0:
        return AlwaysFalse()
    if not isinstance(on, str):
        return AlwaysTrue()
    names = MatchNames(schema, source.names, target_alias, source_alias, case_sensitive)
    found: list[Expression] = []
    for piece in conjuncts_of(on):
        if names.equality(piece) is None and names.is_about_target(piece):
            try:
                found.append(
                    implied_by_target(
                        piece,
                        schema,
                        spark=spark,
                        target_alias=target_alias,
                        case_sensitive=case_sensitive,
                    )
                )
            except PredicateError:
                continue
    found += [bind(each, schema, case_sensitive=True) for each in _within_source(source)]
    return all_of(found)


def _within_source(source: Source) -> Iterator[Expression]:
    """For each pair of equal columns, what the value of the table's must be."""
    if not source.keys:
        return
    types = {field.name: field.dataType for field in source.rows.schema.fields}
    few = source.count <= MOST_VALUES and source.matched_size.total <= _MOST_VALUE_BYTES
    for pair, values in zip(source.keys, source.key_values(all_of_them=few), strict=True):
        ref, kind = Reference(pair.target), types[pair.source]
        try:
            found = [_literal(value, kind) for value in values if value is not None]
        except OverflowError:
            # Spark knows years that Python does not.
            continue
        known: Expression = AlwaysFalse()
        if few and found:
            known = In(ref, tuple(sorted(found)))
        elif found:
            low, high = found
            known = all_of([Comparison(Op.GE, ref, low), Comparison(Op.LE, ref, high)])
        yield any_of([known, IsNull(ref)]) if pair.nulls_match else known


def _literal(value: Any, kind: S.DataType) -> Any:
    """A value of `plain_value` as a predicate has it.

    Raises:
        OverflowError: of a year that Python does not know.
    """
    match kind:
        case S.DateType():
            return _EPOCH.date() + dt.timedelta(days=value)
        case S.TimestampType():
            return (_EPOCH + dt.timedelta(microseconds=value)).replace(tzinfo=dt.UTC)
        case S.TimestampNTZType():
            return _EPOCH + dt.timedelta(microseconds=value)
        case _:
            return value
