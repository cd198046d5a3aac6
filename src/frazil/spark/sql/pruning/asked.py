"""Which files a query can need: by the predicates that Spark's optimizer ends up with.

The query is analysed over relations without files in place of the tables. What then stands in a
filter above such a relation is what the query asks of the table: constants are folded, and
predicates carried across joins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as S

from frazil.catalog.identifiers import shown
from frazil.format.predicates import (
    AlwaysTrue,
    And,
    Comparison,
    Expression,
    Op,
    all_of,
    any_of,
)
from frazil.format.schema import Schema
from frazil.format.types import (
    DateType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
)
from frazil.spark.conditions import implied_by, stated_by
from frazil.spark.session.facts import is_connect, time_zone_of
from frazil.spark.sql.binding.bound_text import BoundText
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning.empty_relations import EmptyRelations
from frazil.spark.sql.pruning.joined_keys import with_joined_keys
from frazil.spark.sql.pruning.plan_reads import PlanReads
from frazil.spark.sql.pruning.query_words import aggregates, asks_for_rows, names_the_time

_MOMENTS: Final = (
    DateType,
    TimestampType,
    TimestamptzType,
    TimestampNanoType,
    TimestamptzNanoType,
)


@dataclass(frozen=True, slots=True)
class AskedOfTables:
    """What Spark's optimizer makes of a query.

    Attributes:
        spark: the session.
        reads: of tables, by their places.
        tables: those that can be asked about, with their names in the query, by their places.
        columns: of the query's rows.
        is_one_table: the query reads no other table of the lake.
        lasts: the query asks what time it is, and its rows may be read later.
    """

    spark: SparkSession
    reads: PlanReads
    tables: Mapping[int, tuple[str, QueriedTable]]
    columns: S.StructType
    is_one_table: bool
    lasts: bool

    def row_of_metadata(self) -> DataFrame | None:
        """Return the query's row, where it is aggregates that metadata knows."""
        asked = self.reads.aggregate
        if asked is None or self.lasts or not self.is_one_table:
            return None
        [(_, table)] = self.tables.values()
        where: Expression | None = AlwaysTrue()
        if asked.read.condition is not None:
            schema, zone = table.scan.schema, time_zone_of(self.spark)
            where = stated_by(asked.read.condition, schema, spark=self.spark, time_zone=zone)
        row = None if where is None else table.aggregates(asked.measures, where)
        if row is None or _types(row.schema) != _types(self.columns):
            return None
        # The table's name is for who reads the plan.
        return row.alias(shown(table.whole_name)).toDF(*asked.names)

    def wanted_rows(self) -> dict[str, Expression]:
        """Return predicates by the tables' names: TRUE for all rows that the result can need."""
        tables = {place: table for place, (_, table) in self.tables.items()}
        reads, lasts = self.reads, self.lasts
        own = {
            read: _read_predicate(
                read.condition, tables[read.place].scan.schema, spark=self.spark, lasts=lasts
            )
            for read in reads.reads
        }
        # Keys that are read now may be others when the rows are.
        wanted = own if lasts else with_joined_keys(reads, own, tables)
        where: dict[str, Expression] = {}
        for place, (name, _) in self.tables.items():
            of_table = [wanted[read] for read in reads.reads if read.place == place]
            where[name] = any_of(of_table) if of_table else AlwaysTrue()
        return where


def asked_of_tables(spark: SparkSession, bound: BoundText, args: Args) -> AskedOfTables | None:
    """Return what a query asks of its tables, of those within its views too; None for all rows.

    Of tables with few files nothing is asked: all their rows are as good as those that it needs.
    """
    tables, words = bound.tables, bound.words
    prunable = {name: each for name, each in tables.items() if each.can_prune}
    if is_connect(spark) or not prunable:
        return None
    is_one_table = len(tables) == 1
    if asks_for_rows(words):
        if all(each.has_few_files for each in tables.values()):
            return None
    elif not is_one_table or not aggregates(words):
        return None
    places = dict(enumerate(prunable.items()))
    with EmptyRelations(spark) as empty:
        rows = {name: empty.relation(place, each.schema) for place, (name, each) in places.items()}
        for name, each in tables.items():
            if name not in rows:
                rows[name] = each.rows(AlwaysTrue())
        analysed = bound.run(args, rows)
        asked = empty.plan_reads(analysed)
    if asked is None:
        return None
    return AskedOfTables(
        spark,
        asked,
        places,
        analysed.schema,
        is_one_table,
        names_the_time(words),
    )


def _read_predicate(
    condition: str | None,
    schema: Schema,
    *,
    spark: SparkSession,
    lasts: bool,
) -> Expression:
    """A predicate that is TRUE for every row that a read asks for.

    Args:
        condition: of the read; None asks for all rows.
        schema: of the table.
        lasts: the query asks what time it is, and its rows may be read later.
    """
    if condition is None:
        return AlwaysTrue()
    found = implied_by(condition, schema, spark=spark, time_zone=time_zone_of(spark))
    return _lasting_part(found) if lasts else found


def _lasting_part(found: Expression) -> Expression:
    """What of a predicate also holds later, when the time of day is another one."""
    if isinstance(found, And):
        return all_of(_lasting_part(part) for part in found.children)
    if isinstance(found, Comparison) and found.op in (Op.GT, Op.GE):
        return found if isinstance(found.bound_ref.type, _MOMENTS) else AlwaysTrue()
    return AlwaysTrue()


def _types(columns: S.StructType) -> list[S.DataType]:
    return [field.dataType for field in columns.fields]
