"""Conditions that a query's own text puts on each of its tables, by sqlglot's tree of it.

A condition counts for a table where no row that fails it can change the query's result: one in
WHERE unless an outer join may give the table's columns NULL, and one in ON of the side whose rows
only match. A condition around a sub-query goes into it where each of the sub-query's rows is one
row of its table. Where a shape is not known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from frazil.errors import SqlSyntaxError
from frazil.spark.sql.parsers.sqlglot_parser import tables_by_sqlglot
from frazil.spark.sql.parsers.table_name import TableName

_SIDES: Final = ("", "LEFT", "RIGHT", "FULL")
_KINDS: Final = ("", "INNER", "CROSS", "OUTER", "SEMI", "ANTI")
_MATCHING: Final = ("SEMI", "ANTI")
_OPAQUE: Final = (
    "group", "having", "qualify", "distinct", "limit", "offset", "laterals", "pivots", "windows",
    "sample", "match", "connect", "prewhere", "sort", "order", "cluster", "distribute", "kind",
    "with_", "with", "operation_modifiers", "into",
)  # fmt: skip
"""Parts of a SELECT with which its rows are not one by one those of its tables."""


@dataclass(frozen=True, slots=True)
class WrittenRead:
    """A table in a query, and what the text says of its rows.

    Attributes:
        name: of the table.
        alias: what qualifies its columns.
        conditions: each holds for every row that the result can need.
        sources: the tables whose columns can be named without a qualifier where the conditions
            stand, by the places of their names in the text; None where others can too.
    """

    name: TableName
    alias: str
    conditions: Sequence[exp.Expression]
    sources: frozenset[int] | None


def written_reads(text: str) -> list[WrittenRead]:
    """Return what a query's text says of its tables, in the order of the text.

    Nothing is said where the text cannot be read.
    """
    if "|>" in text:
        return []
    try:
        found = tables_by_sqlglot(text)
    except SqlSyntaxError:
        return []
    starts = {id(table): name.start for name, table in found}
    reads = [
        WrittenRead(
            name,
            table.alias or name.parts[-1],
            tuple(_conditions_on(table)),
            _sources(table, starts),
        )
        for name, table in found
    ]
    return sorted(reads, key=lambda read: read.name.start)


def _sources(table: exp.Table, starts: dict[int, int]) -> frozenset[int] | None:
    """The tables of the SELECT that a table is of, if all of its sources are such."""
    select = _select_of(table)
    if select is None or select.args.get("laterals"):
        return None
    joins = select.args.get("joins") or []
    if any(join.args.get("using") or join.args.get("method") for join in joins):
        return None
    places = [
        starts.get(id(each.this)) for each in (_from_clause(select), *joins) if each is not None
    ]
    known = [place for place in places if place is not None]
    return frozenset(known) if len(known) == len(places) else None


def _conditions_on(source: exp.Expr) -> Iterator[exp.Expression]:
    """The conditions on a source of a SELECT: one of its tables or sub-queries."""
    select = _select_of(source)
    if select is None or source.args.get("pivots") or source.args.get("sample"):
        return
    alias = source.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        # A name may be that of another column.
        return
    joins = select.args.get("joins") or []
    if not all(_is_known(join) for join in joins):
        return
    place = next((at + 1 for at, join in enumerate(joins) if join.this is source), 0)
    has_nulls = False
    for at, join in enumerate(joins):
        side, kind = _side(join), _kind(join)
        is_right, is_left = place == at + 1, place <= at
        on = join.args.get("on")
        if on is not None and not has_nulls:
            only_matches = is_right and side in ("", "LEFT")
            stays_by_match = is_left and (side == "RIGHT" or (side == "" and kind != "ANTI"))
            if only_matches or stays_by_match:
                yield from _conjuncts(on)
        has_nulls |= is_right and (side in ("LEFT", "FULL") or kind in _MATCHING)
        has_nulls |= is_left and side in ("RIGHT", "FULL")
    if has_nulls:
        return
    where = select.args.get("where")
    if where is not None:
        yield from _conjuncts(where.this)
    yield from _outer_conditions(select)


def _outer_conditions(select: exp.Select) -> Iterator[exp.Expression]:
    """The conditions around a sub-query, in names of the columns of its own tables."""
    around = select.parent
    if not isinstance(around, exp.Subquery) or not around.alias or _is_opaque(select):
        return
    if around.args["alias"].args.get("columns"):
        return
    columns = _plain_columns(select)
    for condition in _conditions_on(around):
        changed = _renamed_condition(condition, around.alias, columns)
        if changed is not None:
            yield changed


def _is_opaque(select: exp.Select) -> bool:
    if any(select.args.get(part) for part in _OPAQUE):
        return True
    kinds = (exp.Window, exp.AggFunc, exp.UDTF, exp.Rand, exp.Anonymous, exp.Subquery)
    return any(each.find(*kinds) is not None for each in select.expressions)


def _plain_columns(select: exp.Select) -> dict[str, exp.Column | None]:
    """The columns that a SELECT passes on as they are, by their names in small letters.

    A name that is another value's too has None. The name of a star stands for each that is not
    there.
    """
    columns: dict[str, exp.Column | None] = {}
    for each in select.expressions:
        of = each.this if isinstance(each, exp.Alias) else each
        if isinstance(each, exp.Star) and not each.args.get("except_"):
            columns[_STAR] = None
            continue
        name = str(each.alias_or_name).lower()
        is_column = isinstance(of, exp.Column) and len(of.parts) <= 2 and not of.find(exp.Star)
        columns[name] = of if is_column and name not in columns else None
    return columns


_STAR: Final = "*"


def _renamed_condition(
    condition: exp.Expression, alias: str, columns: dict[str, exp.Column | None]
) -> exp.Expression | None:
    """A condition in the names within a sub-query; None where one is no column of its tables."""
    copy = condition.copy()
    for column in list(copy.find_all(exp.Column)):
        parts = [str(part.this) for part in column.parts]
        if len(parts) != 2 or parts[0].lower() != alias.lower():
            return None
        name = parts[1].lower()
        if name in columns:
            if _STAR in columns or columns[name] is None:
                return None
            inner: exp.Expression = columns[name].copy()  # type: ignore[union-attr]
        elif _STAR in columns:
            inner = exp.column(exp.to_identifier(parts[1], quoted=True))
        else:
            return None
        if column is copy:
            return None
        column.replace(inner)
    return copy


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expression]:
    bare = condition.unnest()
    if isinstance(bare, exp.And):
        for each in bare.flatten():
            yield from _conjuncts(each)
    elif isinstance(bare, exp.Expression):
        yield bare


def _select_of(source: exp.Expr) -> exp.Select | None:
    """The SELECT that a table or a sub-query is a source of."""
    clause = source.parent
    if not isinstance(clause, exp.From | exp.Join) or clause.this is not source:
        return None
    select = clause.parent
    return select if isinstance(select, exp.Select) else None


def _from_clause(select: exp.Select) -> exp.Expr | None:
    return select.args.get("from_") or select.args.get("from")


def _is_known(join: exp.Join) -> bool:
    method = str(join.args.get("method") or "").upper()
    return _side(join) in _SIDES and _kind(join) in _KINDS and method in ("", "NATURAL")


def _side(join: exp.Join) -> str:
    return str(join.args.get("side") or "").upper()


def _kind(join: exp.Join) -> str:
    return str(join.args.get("kind") or "").upper()
