"""A merge as it was asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from frazil.format.predicates.sql.implied import words_in_text
from frazil.format.schema import Schema
from frazil.spark.row_level.merging.clauses.clause import Clause, When
from frazil.spark.row_level.merging.keys.named_keys import NamedKeys, StoredKeys
from frazil.spark.row_level.values.assignments import columns_named
from frazil.spark.types import SparkTypeSupport, type_to_spark


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """A merge as it was asked for.

    Attributes:
        on: when a row of the source matches a row of the table.
        evolves: whether columns that the source lacks keep their values in clauses for all columns.
        keys: what is equal in every match, in place of `on`.
        stored: the keys as they stand beside the source's rows, once a run has put them there.
        target_alias, source_alias: what the two are called in `on`, conditions and values.
        added: columns that the merge itself gives the table. No text means them: names are read as
            if the table had them not, and in its rows they are NULL.
    """

    source: DataFrame
    on: str | Column = ""
    clauses: Sequence[Clause]
    target_alias: str
    source_alias: str
    evolves: bool = False
    keys: NamedKeys | None = None
    stored: StoredKeys | None = None
    added: frozenset[str] = frozenset()

    def of_kind(self, when: When) -> list[tuple[int, Clause]]:
        """Return the clauses of a kind with their numbers."""
        return [(n, each) for n, each in enumerate(self.clauses) if each.when is when]

    def conditions(self, when: When) -> list[str | Column]:
        """Return the conditions of the clauses of a kind."""
        return [c.condition for _, c in self.of_kind(when) if c.condition is not None]

    def as_named(self, rows: DataFrame) -> DataFrame:
        """Return rows of the table under its name, in the columns that texts may mean."""
        return rows.drop(*self.added).alias(self.target_alias)

    def known_schema(self, schema: Schema) -> Schema:
        """Return the table's schema without the columns that are added."""
        if not self.added:
            return schema
        fields = tuple(field for field in schema.fields if field.name not in self.added)
        return Schema(fields, schema.schema_id)

    def values_before(self, schema: Schema, support: SparkTypeSupport) -> dict[str, Column]:
        """Return the columns of rows `as_named`, as they are, by the table's names."""
        columns = columns_named(self.target_alias, [field.name for field in schema.fields])
        for field in schema.fields:
            if field.name in self.added:
                kind = type_to_spark(field.field_type, support=support)
                columns[field.name] = F.lit(None).cast(kind)
        return columns

    @property
    def added_to_source(self) -> tuple[str, ...]:
        """The columns of the source that are not the user's."""
        return () if self.stored is None else tuple(self.stored.added.values())

    def names_to_match(self, names: Sequence[str], also: Collection[str]) -> list[str] | None:
        """Return the columns of the source that matching needs; None where that cannot be told.

        Args:
            names: of the source's columns.
            also: other columns to return.
        """
        named = names_in([self.on, *self.conditions(When.MATCHED)], names)
        return None if named is None else [n for n in names if n in named or n in also]

    def by_stored_keys(self, schema: Schema) -> MergeRequest:
        """Match by the source's keys, if there are any, as the table's columns store them.

        Raises:
            SchemaMismatchError: a column cannot hold the keys of the source.
            PredicateError: the source has no such key, or several.
        """
        if self.keys is None:
            return self
        stored = self.keys.stored_keys(self.source, schema)
        on = stored.match_condition(self.target_alias, self.source_alias)
        return replace(self, source=stored.rows, on=on, stored=stored)


def names_in(conditions: Sequence[str | Column], names: Sequence[str]) -> set[str] | None:
    """Return those of some names that conditions may name; None where that cannot be told."""
    found: set[str] = set()
    for condition in conditions:
        words = words_in_text(condition) if isinstance(condition, str) else None
        if words is None or words.has_star:
            return None
        found.update(name for name in names if words.name_any_of([name]))
    return found
