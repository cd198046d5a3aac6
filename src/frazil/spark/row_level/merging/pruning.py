"""What the condition of a match says of the table's rows before they are read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import types as S

from frazil.errors import PredicateError
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
from frazil.format.predicates.sql.implied import conjuncts_of
from frazil.spark.conditions import condition_of
from frazil.spark.row_level.merging.clauses.clause import When
from frazil.spark.row_level.merging.keys.equal_columns import MatchNames
from frazil.spark.row_level.merging.matches.matching import Matching
from frazil.spark.row_level.merging.source import Source
from frazil.spark.session import costs
from frazil.spark.session.facts import time_zone_of

_MOST_VALUE_BYTES: Final = 16 << 20
"""Of such a source, if its keys are no longer than this."""

_EPOCH: Final = dt.datetime(1970, 1, 1)


def implied_by(matching: Matching) -> Expression:
    """Return what holds for every row of the table that a merge may change.

    Parts of the condition of the match about the table alone count, and equalities of a column with
    one of the source: its values lie within those of the source.
    """
    others = [clause.condition for _, clause in matching.merge.of_kind(When.BY_SOURCE)]
    return any_of([_of_matches(matching), *(_of_target(matching, each) for each in others)])


def _of_target(matching: Matching, condition: str | Column | None) -> Expression:
    """What holds for every row of the table for which a condition on it holds."""
    return condition_of(
        condition,
        matching.merge.known(matching.command.base.schema),
        spark=matching.spark,
        case_sensitive=matching.command.case_sensitive,
        time_zone=time_zone_of(matching.spark),
        alias=matching.merge.target_alias,
    ).implied


def _of_matches(matching: Matching) -> Expression:
    """What holds for every row of the table that a row of the source may match."""
    on, source, command = matching.merge.on, matching.source, matching.command
    if source.count == 0:
        return AlwaysFalse()
    if not isinstance(on, str):
        return AlwaysTrue()
    names = MatchNames.of(
        matching.merge, command.base.schema, case_sensitive=command.case_sensitive
    )
    found: list[Expression] = []
    for piece in conjuncts_of(on):
        if names.equality(piece) is None and names.is_about_target(piece):
            with suppress(PredicateError):
                found.append(_of_target(matching, piece))
    found += [bind(each, names.schema, case_sensitive=True) for each in _within_source(source)]
    return all_of(found)


def _within_source(source: Source) -> Iterator[Expression]:
    """For each pair of equal columns, what the value of the table's must be."""
    if not source.keys:
        return
    types = {field.name: field.dataType for field in source.rows.schema.fields}
    few = source.count <= costs.SOUGHT_VALUES and source.matched_size.total <= _MOST_VALUE_BYTES
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
