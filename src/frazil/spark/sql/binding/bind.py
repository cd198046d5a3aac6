"""What the names in a query mean: it is bound to the tables and views of lakes.

In a classic session the tables are found in the plan that Spark's parser makes, and over Spark
Connect in the text. A view is a query too: it is bound as the statement is, in the names that the
view was made with, and its rows stand in the place of its name. So conditions around a view reach
the tables in it, and nothing of its text meets the text around it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import shown
from frazil.errors import NoSuchTableError, SqlSyntaxError, UnsupportedError, ValidationError
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.files.projection import DELETED
from frazil.spark.plans.machine import Machine
from frazil.spark.plans.relations import PlannedRelation, read_plan, relations_in
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.binding.bound_plan import BoundPlan
from frazil.spark.sql.binding.bound_text import BoundText, QueriedView
from frazil.spark.sql.binding.hidden_columns import (
    NamedTables,
    hidden_names,
    is_only_a_query,
    places_of_hidden,
    scopes_of,
    unresolved_place,
    word_of_column,
)
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.binding.stars import without_hidden
from frazil.spark.sql.context import (
    CurrentNamespace,
    NamedTable,
    NamedView,
    SqlContext,
    ViewScope,
)
from frazil.spark.sql.errors.failures import in_the_view
from frazil.spark.sql.functions.calls import calls_in, may_call
from frazil.spark.sql.functions.with_functions import as_changes_of, with_functions
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.spark_parser import parsed_plan, with_variables
from frazil.spark.sql.parsers.table_name import TableName
from frazil.spark.sql.qualifiers import cuts_to_short
from frazil.spark.sql.table_uses import TableUse, tables_in
from frazil.spark.words import Word, begins_query, words_of

DIALECT: Final = "spark"
"""Whose SQL a view must have to be read here."""

_SCRIPT: Final = "CompoundBody"
_QUOTES: Final = frozenset('`"')
_UNREADABLE: Final = frozenset(",[]\n")
"""With these in a name the text of a plan cannot be read."""

Find = Callable[[PlannedRelation], Any]
"""Returns what a relation means: a table or a view of a lake, a user's DataFrame, the plan of what
has another name, or None for what is Spark's."""


def bind_query(context: SqlContext, text: str, args: Args = None) -> BoundText:
    """Bind a query: the rows of the lake's tables, expressions for its functions.

    Args:
        args: values of the query's parameters.

    Raises:
        AnalysisException, ParseException: of Spark, where a value of a function is a mistake.
        ValidationError: a function does not take the type of its value.
        UnsupportedError: over Connect, a hidden column is named where all columns are meant.
    """
    bind = _bind_text if is_connect(context.spark) else _bind_plan
    words = words_of(text)
    calls = calls_in(text, words, context.is_lake) if may_call(words) else []
    if not calls:
        return bind(context, text, words, args)

    def analyse(probed: str) -> DataFrame:
        bound = bind(context, probed, words_of(probed), None)
        return bound.run(None, bound.no_rows())

    found = with_functions(text, words, calls, analyse)
    bound = bind(context, found.text, words_of(found.text), args)
    changes = as_changes_of(found.changes, bound.changes)
    return replace(bound, given=text, changes=changes, calls=found.calls)


def _bind_plan(context: SqlContext, text: str, words: Sequence[Word], args: Args) -> BoundText:
    """Bind a query of a classic session: its tables have the hidden columns that it names."""
    spark: Any = context.spark
    machine = Machine(spark.sparkContext._gateway)
    plan = parsed_plan(context.spark, text, args)
    if str(plan.getClass().getSimpleName()) == _SCRIPT:
        # A plan of one cannot be run: Spark runs it as a text alone.
        return bind_tables(context, text, words)
    return plan_with_hidden(
        lambda hidden: bound_plan(
            context.spark, machine, plan, text, words, partial(_meaning, context, machine, hidden)
        ),
        words,
        context.spark,
    )


def plan_with_hidden(
    bind: Callable[[Sequence[str]], BoundPlan], words: Sequence[Word], spark: SparkSession
) -> BoundPlan:
    """Return a plan whose tables have the hidden columns that Spark finds nowhere else.

    Args:
        bind: returns a plan whose tables have some hidden columns.
    """
    found = bind(())
    names = hidden_names(words, spark)
    if not names or not found.relations:
        return found
    if is_only_a_query(words):
        try:
            # A name of a hidden column may be that of another one, and then it is.
            found.run(None, found.no_rows())
        except AnalysisException:
            return _with_deleted(bind(names)) if DELETED in names else bind(names)
        return found
    if DELETED in names and sum(each.uses for each in found.places.values()) > 1:
        raise UnsupportedError(f"{DELETED} is asked of one table: name it in a query of its own")
    return bind(names)


def _with_deleted(bound: BoundPlan) -> BoundPlan:
    try:
        return bound.with_deleted_where_named()
    except AnalysisException:
        # Spark says what is wrong when the query is run.
        return bound


def bound_plan(
    spark: SparkSession,
    machine: Machine,
    plan: Any,
    text: str,
    words: Sequence[Word],
    find: Find,
) -> BoundPlan:
    """Return a plan with what its relations mean."""
    relations: dict[str, QueriedTable | QueriedView] = {}
    frames: dict[str, DataFrame] = {}
    places: dict[str, PlannedRelation] = {}
    moved: list[tuple[PlannedRelation, Any]] = []
    has_others = False
    quoted = (word.text for word in words if text[word.start] in _QUOTES)
    odd = any(not _UNREADABLE.isdisjoint(each) for each in quoted)
    for each in relations_in(machine, read_plan(plan), node_by_node=odd):
        # No view around it or in it has that name.
        name, found = f"relation {uuid.uuid4().hex}", find(each)
        if isinstance(found, QueriedTable | QueriedView):
            relations[name], places[name] = found, each
        elif isinstance(found, DataFrame):
            frames[name], places[name] = found, each
        else:
            has_others = True
            if found is not None:
                moved.append((each, found))
    return BoundPlan(
        spark=spark,
        text=text,
        relations=relations,
        frames=frames,
        given=text,
        changes=(),
        own_words=tuple(words),
        has_other_tables=has_others,
        machine=machine,
        plan=plan,
        places=places,
        moved=moved,
    )


def use_of(
    context: SqlContext, relation: PlannedRelation, named: NamedTable | NamedView
) -> QueriedTable | QueriedView:
    """Return what a relation reads, whose name means a table or a view."""
    version = relation.version
    if version is not None:
        version = "'" + version.replace("\\", "\\\\").replace("'", "\\'") + "'"
    name = TableName(relation.parts, 0, 0, is_aliased=True)
    use = TableUse(name, 0, version, relation.timestamp, None, 0)
    if isinstance(named, NamedView):
        return queried_view(context, use, named)
    return QueriedTable(context, use, named, ())


def with_hidden(
    found: QueriedTable | QueriedView, hidden: Sequence[str]
) -> QueriedTable | QueriedView:
    """Return what is read with hidden columns, but those that it has as its own."""
    if not hidden or not isinstance(found, QueriedTable) or not found.can_prune:
        return found
    own = set(found.scan.projection.names)
    return replace(found, metadata_columns=tuple(name for name in hidden if name not in own))


def _meaning(
    context: SqlContext, machine: Machine, hidden: Sequence[str], relation: PlannedRelation
) -> Any:
    """What a relation of a statement means."""
    parts = relation.parts
    given = context.frames.get(parts[0]) if len(parts) == 1 else None
    if given is not None:
        return given
    if context.scope is not None:
        parts = context.scope.whole_name(context, parts)
        if not context.is_lake(parts[0]):
            return _of_other_name(machine, relation, parts)
    named = context.find(parts)
    if named is None:
        return None
    if relation.options:
        named = context.with_options(named, dict(relation.options))
    return with_hidden(use_of(context, replace(relation, parts=parts), named), hidden)


def _of_other_name(machine: Machine, relation: PlannedRelation, parts: Sequence[str]) -> Any:
    """A relation by another name."""
    node = relation.node
    is_at = relation.version is not None or relation.timestamp is not None
    options = (node.relation() if is_at else node).options()
    unresolved = machine.catalyst.analysis.UnresolvedRelation
    made = unresolved(machine.name_parts(parts), options, False)
    if is_at:
        made = node.copy(made, node.timestamp(), node.version())
    return made if relation.alias is None else machine.named_plan(made, (relation.alias,))


def _bind_text(context: SqlContext, text: str, words: Sequence[Word], args: Args) -> BoundText:
    """Bind a query over Connect: its tables have the hidden columns that it names."""
    candidates = places_of_hidden(words, context.spark)
    if not candidates or not is_only_a_query(words):
        return bind_tables(context, text, words)
    named: list[int] = []
    for _ in candidates:
        bound = bind_tables(context, text, words, as_views=True, hidden_at=named)
        rows = {**bound.relation_rows(bound.no_rows()), **bound.frames}
        place = unresolved_place(context.spark, bound.text, bound.changes, rows, args)
        if place is None:
            return bind_tables(context, text, words, hidden_at=named)
        at = word_of_column(words, place, candidates)
        if at is None or at in named:
            break
        named.append(at)
    else:
        return bind_tables(context, text, words, hidden_at=named)
    return bind_tables(context, text, words)


def bind_tables(
    context: SqlContext,
    text: str,
    words: Sequence[Word],
    *,
    as_views: bool = False,
    outer: Mapping[tuple[str, ...], Collection[str]] | None = None,
    hidden_at: Sequence[int] | None = None,
) -> BoundText:
    """Put names of our own in place of the lake's tables and views in a text that is a query.

    Args:
        as_views: the names are those of temporary views, and not of DataFrames in braces.
        outer: tables of the statement around, whose columns are qualified by their last parts,
            with these columns.
        hidden_at: which words name hidden columns; None for all that can.

    Raises:
        UnsupportedError: a hidden column is named where all columns are meant.
    """
    relations: dict[str, QueriedTable | QueriedView] = {}
    frames: dict[str, DataFrame] = {}
    changes: list[tuple[int, int, str]] = []
    has_others = False
    in_braces = not as_views
    uses = tables_in(context.spark, text)
    for use in uses:
        name = f"frazil_{uuid.uuid4().hex}"
        parts = use.name.parts
        given = context.frames.get(parts[0]) if len(parts) == 1 else None
        if given is not None:
            frames[name] = given
        else:
            if context.scope is not None:
                parts = context.scope.whole_name(context, parts)
                if not context.is_lake(parts[0]):
                    changes.append((use.name.start, use.name.stop, quote_name_always(parts)))
                    has_others = True
                    continue
            named = context.find(parts)
            if named is None:
                has_others = True
                continue
            if use.options:
                named = context.with_options(named, dict(use.options))
            if isinstance(named, NamedView):
                relations[name] = queried_view(context, use, named)
            else:
                relations[name] = QueriedTable(context, use, named, ())
        changes.append((use.name.start, use.stop, f"{{{name}}}" if in_braces else name))
        if use.alias_at is not None:
            alias = f" AS {quote_name_always([use.name.parts[-1]])}"
            changes.append((use.alias_at, use.alias_at, alias))
    short = [each for each in relations.values() if each.use.alias_at is not None]
    tables = {each.whole_name: each.column_names for each in short} | dict(outer or {})
    starts = {use.name.start for use in uses}
    cuts = cuts_to_short(words, tables, but=starts)
    changes += [(start, stop, "") for start, stop in cuts]
    places = places_of_hidden(words, context.spark) if hidden_at is None else hidden_at
    if places:
        own = {
            ours: each
            for ours, each in relations.items()
            if isinstance(each, QueriedTable) and each.named.metadata_table is None
        }
        known = NamedTables(words, scopes_of(words), own)
        hidden = known.hidden_columns(places)
        own = {n: replace(each, metadata_columns=hidden.get(n, ())) for n, each in own.items()}
        relations.update(own)
        changes += without_hidden(replace(known, tables=own))
    # Without values Spark looks for no braces.
    doubled = in_braces and bool(relations or frames)
    return BoundText(
        context.spark,
        _changed_text(text, changes, doubled=doubled),
        relations,
        frames,
        text,
        tuple(changes),
        tuple(words),
        has_other_tables=has_others,
    )


def bind_view_query(context: SqlContext, sql: str, scope: ViewScope) -> BoundText:
    """Bind the query of a view, in the names that its scope says.

    Raises:
        SqlSyntaxError, ParseException: it is no query.
        NoSuchTableError: it reads what is not there.
        ValidationError: it reads itself, through other views.
    """
    levels = scope.namespace if scope.catalog == context.name else ()
    inner = replace(context, frames={}, scope=scope, current=CurrentNamespace(levels))
    text = as_sub_query(sql)
    if not is_connect(context.spark):
        text = with_variables(context.spark, text)
    return bind_query(inner, text)


def as_sub_query(sql: str) -> str:
    """Return a query whose only sub-query is a text, so that nothing but a query can be in it.

    Raises:
        SqlSyntaxError: it is none.
    """
    words = words_of(sql)
    if not begins_query(words):
        found = words[0].text if words else "nothing"
        raise SqlSyntaxError(f"a view is made of a query, which does not begin with {found!r}")
    while words and words[-1].keyword == ";":
        sql, words = sql[: words[-1].start], words[:-1]
    return f"SELECT * FROM ({sql}\n)"  # noqa: S608 It is the view's own text.


def queried_view(context: SqlContext, use: TableUse, named: NamedView) -> QueriedView:
    """Return a view at a place of a query.

    Raises:
        ValidationError: it is read as of a version, or reads itself.
        UnsupportedError: it has no SQL that Spark reads.
        NoSuchTableError: it reads what is not there.
    """
    view = named.view
    name = shown(view.identifier)
    if use.version is not None or use.timestamp is not None:
        raise ValidationError(f"{name} is a view: only tables have versions to read AS OF")
    before = () if context.scope is None else context.scope.reading
    whole = (context.name_of(named.catalog), *view.identifier)
    if whole in before:
        way = " reads ".join(shown(each[1:]) for each in (*before, whole))
        raise ValidationError(f"a view cannot read itself: {way}")
    version = view.metadata.current_version
    sql = version.sql_for(DIALECT)
    if sql is None:
        others = ", ".join(version.dialects) or "no engine"
        raise UnsupportedError(f"the view {name} has SQL for {others} only, and none for spark")
    scope = ViewScope(
        version.default_catalog or whole[0],
        version.default_namespace,
        (*before, whole),
    )
    try:
        with in_the_view(name):
            bound = bind_view_query(context, sql, scope)
    except NoSuchTableError as error:
        raise NoSuchTableError(f"{error} (in the view {name})") from None
    return QueriedView(context, use, named, bound)


def _changed_text(text: str, changes: list[tuple[int, int, str]], *, doubled: bool) -> str:
    pieces, at = [], 0
    for start, stop, new in sorted(changes):
        pieces += [_escaped_text(text[at:start], doubled), new]
        at = stop
    return "".join([*pieces, _escaped_text(text[at:], doubled)])


def _escaped_text(text: str, doubled: bool) -> str:
    return text.replace("{", "{{").replace("}", "}}") if doubled else text
