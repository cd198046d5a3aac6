"""A query with names of our own in place of the lake's tables and views, and how it is run.

Over Spark Connect, where no plan is at hand, it is the query itself; else a part of a change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import shown
from frazil.format.predicates import AlwaysTrue
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.binding.sub_queries import has_sub_queries_as_values, separated_rows
from frazil.spark.sql.binding.view_columns import as_the_view_says, fitting_the_view
from frazil.spark.sql.context import NamedView, SqlContext
from frazil.spark.sql.errors.failures import in_the_view
from frazil.spark.sql.functions.with_functions import TypedCall
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.table_uses import TableUse
from frazil.spark.words import Word


@dataclass(frozen=True, slots=True)
class BoundText:
    """A text with names of its own in place of the lake's tables and views.

    Attributes:
        text: what Spark reads; a name is ``{frazil_…}``, and braces of the user are doubled, but
            where the names are those of temporary views.
        relations: the tables and views, by these names.
        frames: the user's DataFrames, by such names.
        given: the text as the user wrote it.
        changes: what was replaced in it.
        own_words: the words of the text.
        calls: of the lake's functions, in whose places the text has expressions of Spark's.
        has_other_tables: the text also reads tables or views that are no lake's.
    """

    spark: SparkSession
    text: str
    relations: Mapping[str, QueriedTable | QueriedView]
    frames: Mapping[str, DataFrame]
    given: str
    changes: Sequence[tuple[int, int, str]]
    own_words: Sequence[Word]
    calls: Sequence[TypedCall] = ()
    has_other_tables: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether Spark cannot read the text as the user wrote it."""
        return bool(self.relations or self.frames or self.calls)

    @property
    def reads_the_lake_alone(self) -> bool:
        """Whether all that the text and its views read are tables and views of a lake."""
        views = (each for each in self.relations.values() if isinstance(each, QueriedView))
        return (
            not self.frames
            and not self.has_other_tables
            and all(each.bound.reads_the_lake_alone for each in views)
        )

    @property
    def calls_functions(self) -> bool:
        """Whether functions of the lake are called in the text, or in a view that it reads."""
        views = (each for each in self.relations.values() if isinstance(each, QueriedView))
        return bool(self.calls) or any(each.bound.calls_functions for each in views)

    @property
    def names(self) -> dict[str, str]:
        """What the user wrote, by the names in the text; those within views too."""
        names = dict.fromkeys(self.frames, "the given DataFrame")
        for name, each in self.relations.items():
            names[name] = ".".join(each.use.name.parts)
            if isinstance(each, QueriedView):
                names.update(each.bound.names)
        return names

    @property
    def words(self) -> list[Word]:
        """The words of the text and of the views that it reads."""
        words = list(self.own_words)
        for each in self.relations.values():
            if isinstance(each, QueriedView):
                words += each.bound.words
        return words

    @property
    def tables(self) -> dict[str, QueriedTable]:
        """The tables, by their names; those within views too."""
        tables: dict[str, QueriedTable] = {}
        for name, each in self.relations.items():
            tables |= each.bound.tables if isinstance(each, QueriedView) else {name: each}
        return tables

    def all_rows(self) -> dict[str, DataFrame]:
        """Return the rows of every table, from all of its files."""
        return {name: each.rows(AlwaysTrue()) for name, each in self.tables.items()}

    def no_rows(self) -> dict[str, DataFrame]:
        """Return relations of every table's columns without rows."""
        return {name: each.no_rows() for name, each in self.tables.items()}

    def relation_rows(self, rows: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Return the rows that each name in the text stands for, given those of the tables."""
        return {
            name: each.rows(rows) if isinstance(each, QueriedView) else rows[name]
            for name, each in self.relations.items()
        }

    def run(self, args: Args, rows: Mapping[str, DataFrame]) -> DataFrame:
        """Return the query over some rows in place of the tables, of those within views too."""
        found = self.placed_rows(rows)
        return self.spark.sql(self.text, args, **found)  # type: ignore[arg-type]

    def placed_rows(self, rows: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """Return what stands at each name, given the rows of tables."""
        found = {**self.relation_rows(rows), **self.frames}
        if has_sub_queries_as_values(self.own_words):
            return {name: separated_rows(frame) for name, frame in found.items()}
        return found


@dataclass(frozen=True, slots=True)
class QueriedView:
    """A view of the lake at one place of a query.

    Attributes:
        context: of the query.
        use: where it stands.
        named: the view.
        bound: the view's own query.
    """

    context: SqlContext
    use: TableUse
    named: NamedView
    bound: BoundText

    @property
    def whole_name(self) -> tuple[str, ...]:
        """The catalog, the namespace and the view's name."""
        return (self.context.name_of(self.named.catalog), *self.named.view.identifier)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of the view's columns."""
        return tuple(field.name for field in self.named.view.metadata.schema.fields)

    def rows(self, rows: Mapping[str, DataFrame]) -> DataFrame:
        """Return the view's rows in the columns that its version has.

        Raises:
            AnalysisException: of Spark, where the query cannot be read any more.
            SchemaMismatchError: it gives other columns now, or names one that is gone.
        """
        view = self.named.view
        with in_the_view(shown(view.identifier)), fitting_the_view(view):
            found = self.bound.run(None, rows)
            # Over Connect a query is analysed where its columns are asked for.
            _ = found.schema
        return as_the_view_says(self.context.spark, view, found)
