"""The columns that are equal where rows of a source and of the table match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as S
from sqlglot import exp

from frazil.errors import PredicateError
from frazil.format import types as I
from frazil.format.predicates.sql.implied import conjuncts_of, words_in_text
from frazil.format.predicates.sql.parse import sql_tree
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.format.schema import Schema
from frazil.spark.row_level.merging.clauses.request import MergeRequest
from frazil.spark.write.columns.align import micros_without_zone

INTEGERS: Final = (S.ByteType, S.ShortType, S.IntegerType, S.LongType)


@dataclass(frozen=True, slots=True)
class EqualColumns:
    """A column of the table that equals one of the source where rows match.

    Attributes:
        target: the path of the table's column.
        source: the name of the source's column; equal values have one type and one order.
    """

    target: tuple[str, ...]
    field: I.NestedField
    source: str
    nulls_match: bool


def equal_columns(
    merge: MergeRequest, schema: Schema, *, case_sensitive: bool
) -> tuple[EqualColumns, ...]:
    """Return the columns that are equal in every match, where their types compare alike."""
    if not isinstance(merge.on, str):
        return ()
    names = MatchNames.of(merge, schema, case_sensitive=case_sensitive)
    types = {field.name: field.dataType for field in merge.source.schema.fields}
    pairs = [names.equality(piece) for piece in conjuncts_of(merge.on)]
    return tuple(
        pair
        for pair in pairs
        if pair is not None and _compares_alike(pair.field.field_type, types[pair.source])
    )


def hash_of_keys(keys: Sequence[EqualColumns], *, of_source: bool) -> Column:
    """Return a hash of the keys of a row; rows that match have the same."""
    columns = []
    for key in keys:
        column = F.col(quote_name_always([key.source] if of_source else key.target))
        is_whole = isinstance(key.field.field_type, I.IntegerType | I.LongType)
        # Both sides are hashed in one type.
        columns.append(column.cast("bigint") if is_whole else column)
    return F.xxhash64(*columns)


@dataclass(frozen=True, slots=True)
class MatchNames:
    """What names in the condition of a match mean."""

    schema: Schema
    source_names: Sequence[str]
    target_alias: str
    source_alias: str
    case_sensitive: bool

    @classmethod
    def of(cls, merge: MergeRequest, schema: Schema, *, case_sensitive: bool) -> MatchNames:
        """Return what names mean in the condition of a merge into a table."""
        return cls(
            merge.known_schema(schema),
            merge.source.columns,
            merge.target_alias,
            merge.source_alias,
            case_sensitive,
        )

    def is_about_target(self, piece: str) -> bool:
        """Whether a text surely names no column of the source."""
        words = words_in_text(piece)
        if words is None or words.has_query or words.has_star:
            return False
        return not words.name_any_of([self.source_alias, *self.source_names_alone])

    @property
    def source_names_alone(self) -> list[str]:
        # A name that both have stands for the table's only under the table's alias.
        own = {field.name.lower() for field in self.schema.fields}
        return [name for name in self.source_names if name.lower() not in own]

    def equality(self, piece: str) -> EqualColumns | None:
        """The pair of columns that a text compares, if it is such a comparison."""
        try:
            tree = sql_tree(piece).unnest()
        except PredicateError:
            return None
        if not isinstance(tree, exp.EQ | exp.NullSafeEQ):
            return None
        for one, other in ((tree.left, tree.right), (tree.right, tree.left)):
            target, source = self._target(one), self._source(other)
            if target is not None and source is not None:
                path, field = target
                return EqualColumns(path, field, source, isinstance(tree, exp.NullSafeEQ))
        return None

    def _target(self, node: exp.Expr) -> tuple[tuple[str, ...], I.NestedField] | None:
        parts = _parts(node)
        if not parts or self._is_same_name(parts[0], self.source_alias):
            return None
        if self._is_same_name(parts[0], self.target_alias):
            parts = parts[1:]
            if not parts:
                return None
        elif any(self._is_same_name(parts[0], name) for name in self.source_names):
            return None
        found = [f for f in self.schema.fields if self._is_same_name(f.name, parts[0])]
        if len(found) != 1 or len(parts) > 1 or self._is_alias(found[0].name):
            return None
        return (found[0].name,), found[0]

    def _source(self, node: exp.Expr) -> str | None:
        parts = _parts(node)
        if not parts or self._is_same_name(parts[0], self.target_alias):
            return None
        if self._is_same_name(parts[0], self.source_alias):
            parts = parts[1:]
        elif any(self._is_same_name(parts[0], f.name) for f in self.schema.fields):
            return None
        found = [name for name in self.source_names if parts and self._is_same_name(name, parts[0])]
        if len(found) != 1 or len(parts) > 1 or self._is_alias(found[0]):
            return None
        return found[0]

    def _is_alias(self, name: str) -> bool:
        return self._is_same_name(name, self.target_alias) or self._is_same_name(
            name, self.source_alias
        )

    def _is_same_name(self, one: str, other: str) -> bool:
        return one == other if self.case_sensitive else one.lower() == other.lower()


def _parts(node: exp.Expr) -> tuple[str, ...]:
    node = node.unnest()
    if not isinstance(node, exp.Column):
        return ()
    return tuple(part.name for part in node.parts)


def _compares_alike(target: I.IcebergType, source: S.DataType) -> bool:
    """Whether equal values have one order and one text on both sides."""
    match target:
        case I.IntegerType() | I.LongType():
            return isinstance(source, INTEGERS)
        case I.StringType():
            return source == S.StringType()
        case I.DateType():
            return isinstance(source, S.DateType)
        case I.TimestampType():
            return isinstance(source, S.TimestampNTZType)
        case I.TimestamptzType():
            return isinstance(source, S.TimestampType)
        case I.DecimalType(precision=precision, scale=scale):
            return source == S.DecimalType(precision, scale)
        case _:
            return False


def plain_value(value: Column, kind: S.DataType) -> Column:
    """Return a value that arrives in Python as it is, whatever the zones and years are."""
    match kind:
        case S.DateType():
            return F.unix_date(value)
        case S.TimestampType():
            return F.unix_micros(value)
        case S.TimestampNTZType():
            return micros_without_zone(value)
        case _:
            return value
