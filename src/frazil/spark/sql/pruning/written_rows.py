"""Which rows a query's own text asks of its tables: what the optimizer does not say.

Over Spark Connect there is no optimizer at hand, and in a classic session it does not know what a
lake's functions mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from frazil.format.predicates import AlwaysTrue, Expression, all_of
from frazil.spark.conditions import is_read_as_here
from frazil.spark.session.facts import is_case_sensitive, time_zone_of
from frazil.spark.sql.binding.bound_plan import BoundPlan
from frazil.spark.sql.binding.bound_text import BoundText, QueriedView
from frazil.spark.sql.binding.buckets import Buckets
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.parameters import Args, with_literals
from frazil.spark.sql.pruning.function_terms import FunctionReader
from frazil.spark.sql.pruning.written import WrittenRead, written_reads


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """What is asked of a table.

    Attributes:
        where: a bound predicate that is TRUE for every row that the result can need.
        buckets: such a row is in one of these buckets, of each.
    """

    where: Expression
    buckets: Sequence[Buckets] = ()


def written_rows(bound: BoundText, args: Args) -> dict[str, WrittenRows]:
    """Return what is asked of tables by their names; of those within views too."""
    found: dict[str, WrittenRows] = {}
    for each in bound.relations.values():
        if isinstance(each, QueriedView):
            found.update(written_rows(each.bound, None))
    text = with_literals(bound.given, args, spark=bound.spark)
    if not is_read_as_here(text, bound.spark):
        return found
    reads = _of_relations(bound, written_reads(text))
    tables = {name: each for name, each in bound.relations.items() if name in reads}
    places = {read.name.start: name for name, read in reads.items()}
    for name, table in tables.items():
        if isinstance(table, QueriedTable) and table.can_prune:
            columns = _columns_beside(reads[name], places, tables)
            found[name] = _rows(table, reads[name], columns)
    return found


def _of_relations(bound: BoundText, reads: Sequence[WrittenRead]) -> dict[str, WrittenRead]:
    """The reads of the lake's tables by their names; none where the texts do not tell."""
    if isinstance(bound, BoundPlan):
        return dict(_of_places(bound, reads))
    wanted = [(name, each.use.name.parts) for name, each in bound.relations.items()]
    known = {parts for _, parts in wanted}
    own = [read for read in reads if read.name.parts in known]
    if [read.name.parts for read in own] != [parts for _, parts in wanted]:
        return {}
    return {name: read for (name, _), read in zip(wanted, own, strict=True)}


def _of_places(bound: BoundPlan, reads: Sequence[WrittenRead]) -> Iterator[tuple[str, WrittenRead]]:
    """The reads of relations that are at one place of a plan, and once in its text."""
    for name in bound.relations:
        place = bound.places[name]
        own = [
            read
            for read in reads
            if read.name.parts == place.parts
            and (place.alias is None or place.alias.lower() == read.alias.lower())
        ]
        if len(own) == place.uses == 1:
            yield name, own[0]


def _columns_beside(
    read: WrittenRead, places: Mapping[int, str], tables: Mapping[str, object]
) -> frozenset[str] | None:
    """Names of the columns of other tables that could be meant without a qualifier."""
    if read.sources is None:
        return None
    names: set[str] = set()
    for place in read.sources - {read.name.start}:
        table = tables.get(places.get(place, ""))
        if not isinstance(table, QueriedTable):
            return None
        names |= {column.lower() for column in table.schema.names}
    return frozenset(names)


def _rows(table: QueriedTable, read: WrittenRead, beside: frozenset[str] | None) -> WrittenRows:
    context = table.context
    reader = FunctionReader(
        schema=table.scan.schema,
        case_sensitive=is_case_sensitive(context.spark),
        time_zone=time_zone_of(context.spark),
        alias=read.alias,
        is_lake=context.is_lake,
    )
    own = {name.lower() for name in table.schema.names}
    alone = own - beside if beside is not None else set()
    said = [each for each in read.conditions if _is_about(each, read.alias, alone)]
    where = all_of(reader.implied_by_tree(each) for each in said)
    buckets = [reader.buckets(each) for each in said]
    return WrittenRows(where, [each for each in buckets if each is not None])


def _is_about(condition: exp.Expression, alias: str, alone: Iterable[str]) -> bool:
    """Whether all columns in a condition are of one table."""
    if condition.find(exp.Query) is not None:
        return False
    for column in condition.find_all(exp.Column):
        parts = [str(part.this).lower() for part in column.parts]
        is_qualified = parts[0] == alias.lower() and len(parts) > 1
        if not is_qualified and parts[0] not in alone:
            return False
    return True


NOTHING_ASKED = WrittenRows(AlwaysTrue())
