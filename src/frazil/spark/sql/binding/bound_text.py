"""A query with names of our own in place of the lake's tables and views, and how it is run.

A view is a query too: it is bound as the statement is, in the names that the view was made with,
and its rows stand in the place of its name. So conditions around a view reach the tables in it, and
nothing of its text meets the text around it.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import shown
from frazil.errors import NoSuchTableError, SqlSyntaxError, UnsupportedError, ValidationError
from frazil.format.predicates import AlwaysTrue
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.session.facts import is_connect, is_temporary_view
from frazil.spark.session.temporary_views import make_temporary_view
from frazil.spark.sql.binding.hidden_columns import (
    NamedTables,
    is_only_a_query,
    places_of_hidden,
    scopes_of,
    unresolved_place,
    word_of_column,
)
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.binding.stars import without_hidden
from frazil.spark.sql.binding.sub_queries import apart, has_sub_queries_as_values
from frazil.spark.sql.binding.view_columns import as_the_view_says, fitting_the_view
from frazil.spark.sql.context import CurrentNamespace, NamedView, SqlContext, ViewScope
from frazil.spark.sql.failures import in_the_users_words, in_the_view
from frazil.spark.sql.functions.calls import calls_in, may_call
from frazil.spark.sql.functions.with_functions import TypedCall, as_changes_of, with_functions
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.spark_parser import with_variables
from frazil.spark.sql.qualifiers import cuts_to_short
from frazil.spark.sql.shown_names import shown_names
from frazil.spark.sql.table_uses import TableUse, tables_in
from frazil.spark.words import Word, words_of

_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "FROM", "TABLE", "(", "MAP", "REDUCE"})
DIALECT: Final = "spark"
"""Whose SQL a view must have to be read here."""


@dataclass(frozen=True, slots=True)
class BoundText:
    """A text with names of its own in place of the lake's tables and views.

    Attributes:
        text: what Spark reads; a name is ``{frazil_…}`` over Connect, where braces of the user are
            doubled.
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
        return dict(self._tables())

    def _tables(self) -> Iterator[tuple[str, QueriedTable]]:
        for name, each in self.relations.items():
            if isinstance(each, QueriedView):
                yield from each.bound.tables.items()
            else:
                yield name, each

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
        rows = {**self.relation_rows(rows), **self.frames}
        if has_sub_queries_as_values(self.own_words):
            rows = {name: apart(frame) for name, frame in rows.items()}
        if is_connect(self.spark):
            return self.spark.sql(self.text, args, **rows)  # type: ignore[arg-type]
        wanted = {name: said for name, said in self.names.items() if name in rows}
        with ExitStack() as views:
            shown = views.enter_context(shown_names(self.spark, wanted))
            text, changes = self._with_shown(shown)
            views.enter_context(in_the_users_words(wanted, self.given, changes))
            for name, frame in rows.items():
                views.callback(make_temporary_view(frame, shown[name]))
                if name in self.frames and not is_temporary_view(self.spark, shown[name]):
                    raise ValidationError(
                        "a DataFrame in the statement belongs to another session: make it with "
                        "the lake's (lake.spark)"
                    )
            return self.spark.sql(text, args)  # type: ignore[arg-type]

    def _with_shown(self, shown: Mapping[str, str]) -> tuple[str, list[tuple[int, int, str]]]:
        """The text with other names of tables, and what was replaced in the user's text by it."""
        text, changes = self.text, list(self.changes)
        for ours, name in shown.items():
            if name != ours:
                quoted = quote_name_always([name])
                text = text.replace(ours, quoted)
                changes = [(start, stop, new.replace(ours, quoted)) for start, stop, new in changes]
        return text, changes


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


def bind_query(context: SqlContext, text: str, args: Args = None) -> BoundText:
    """Bind a query: names of our own for the lake's tables, expressions for its functions.

    Args:
        args: values of the query's parameters.

    Raises:
        AnalysisException, ParseException: of Spark, where a value of a function is a mistake.
        ValidationError: a function does not take the type of its value.
        UnsupportedError: a hidden column is named where all columns are meant.
    """
    words = words_of(text)
    calls = calls_in(text, words, context.is_lake) if may_call(words) else []
    if not calls:
        return _bind_with_hidden(context, text, words, args)

    def analyse(probed: str) -> DataFrame:
        bound = bind_tables(context, probed, words_of(probed))
        return bound.run(None, bound.no_rows())

    found = with_functions(text, words, calls, analyse)
    bound = _bind_with_hidden(context, found.text, words_of(found.text), args)
    changes = as_changes_of(found.changes, bound.changes)
    return replace(bound, given=text, changes=changes, calls=found.calls)


def _bind_with_hidden(
    context: SqlContext, text: str, words: Sequence[Word], args: Args
) -> BoundText:
    """Bind a query: its tables have the hidden columns that Spark finds nowhere else."""
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
        as_views: the names are those of temporary views, also over Connect.
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
    over_connect = is_connect(context.spark) and not as_views
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
            if isinstance(named, NamedView):
                relations[name] = queried_view(context, use, named)
            else:
                relations[name] = QueriedTable(context, use, named, ())
        changes.append((use.name.start, use.stop, f"{{{name}}}" if over_connect else name))
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
        hidden = known.hidden(places)
        own = {n: replace(each, metadata_columns=hidden.get(n, ())) for n, each in own.items()}
        relations.update(own)
        changes += without_hidden(replace(known, tables=own))
    # Without values Spark looks for no braces.
    doubled = over_connect and bool(relations or frames)
    return BoundText(
        context.spark,
        _changed(text, changes, doubled=doubled),
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
    if not words or words[0].keyword not in _QUERIES:
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


def _changed(text: str, changes: list[tuple[int, int, str]], *, doubled: bool) -> str:
    pieces, at = [], 0
    for start, stop, new in sorted(changes):
        pieces += [_escaped(text[at:start], doubled), new]
        at = stop
    return "".join([*pieces, _escaped(text[at:], doubled)])


def _escaped(text: str, doubled: bool) -> str:
    return text.replace("{", "{{").replace("}", "}}") if doubled else text
