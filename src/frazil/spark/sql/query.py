"""Queries: names of tables are replaced in the text, and Spark reads all else as it was typed."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from frazil.errors import SqlSyntaxError, ValidationError
from frazil.format.predicates import AlwaysTrue, Expression
from frazil.format.predicates.sql.quoting import quote_name_always
from frazil.spark.files.projection import METADATA_COLUMNS
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.failures import in_the_users_words
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.pruning import EmptyRelations, asks_for_rows, implied, names_the_time
from frazil.spark.sql.qualifiers import cuts_to_short
from frazil.spark.sql.relations import QueriedTable
from frazil.spark.sql.stars import without_reserved
from frazil.spark.sql.table_uses import tables_in
from frazil.spark.words import Word, words_of

_RESERVED: Final = frozenset(field.name for field in METADATA_COLUMNS)


@dataclass(frozen=True, slots=True)
class BoundText:
    """A text with names of its own in place of the lake's tables.

    Attributes:
        text: what Spark reads; a name is ``{frazil_…}`` over Connect, where braces of the user are
            doubled.
        relations: the tables, by these names.
        frames: the user's DataFrames, by such names.
        given: the text as the user wrote it.
        changes: what was replaced in it.
    """

    spark: SparkSession
    text: str
    relations: Mapping[str, QueriedTable]
    frames: Mapping[str, DataFrame]
    given: str
    changes: Sequence[tuple[int, int, str]]

    @property
    def names(self) -> dict[str, str]:
        """What the user wrote, by the names in the text."""
        names = {name: ".".join(each.use.name.parts) for name, each in self.relations.items()}
        return {**names, **dict.fromkeys(self.frames, "the given DataFrame")}

    def run(self, args: Args, rows: Mapping[str, DataFrame]) -> DataFrame:
        """Return the query over some rows in place of the tables."""
        rows = {**rows, **self.frames}
        if is_connect(self.spark):
            return self.spark.sql(self.text, args, **rows)  # type: ignore[arg-type]
        with in_the_users_words(self.names, self.given, self.changes), ExitStack() as views:
            for name, frame in rows.items():
                frame.createOrReplaceTempView(name)
                views.callback(frame.sparkSession.catalog.dropTempView, name)
                if name in self.frames and not self.spark.catalog.tableExists(name):
                    raise ValidationError(
                        "a DataFrame in the statement belongs to another session: make it with "
                        "the lake's (lake.spark)"
                    )
            return self.spark.sql(self.text, args)  # type: ignore[arg-type]


def query(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return a query's rows: of the tables as they are now, from files that its predicates allow.

    Raises:
        AnalysisException, ParseException: of Spark, where the mistake is in the query.
        NoSuchTableError, NoSuchSnapshotError, NoSuchRefError: what the query names is not there.
    """
    words = words_of(text)
    bound = bind_tables(context, text, words)
    if not bound.relations and not bound.frames:
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    where = _asked(context, bound, words, args)
    rows = {name: each.rows(where[name]) for name, each in bound.relations.items()}
    return bound.run(args, rows)


def passed_on(context: SqlContext, text: str, args: Args = None) -> DataFrame:
    """Return what Spark makes of a statement of its own, which may read tables of the lake.

    It is run once, so that nothing asks first which files it needs.
    """
    try:
        bound = bind_tables(context, text, words_of(text))
    except (ParseException, SqlSyntaxError):
        return context.spark.sql(text, args)  # type: ignore[arg-type]
    rows = {name: each.rows(AlwaysTrue()) for name, each in bound.relations.items()}
    return bound.run(args, rows)


def bind_tables(
    context: SqlContext,
    text: str,
    words: Sequence[Word],
    *,
    as_views: bool = False,
    outer: Collection[tuple[str, ...]] = (),
) -> BoundText:
    """Put names of our own in place of the lake's tables in a text that is a query.

    Args:
        as_views: the names are those of temporary views, also over Connect.
        outer: tables of the statement around, whose columns are qualified by their last parts.
    """
    reserved = tuple({word.text: None for word in words if word.text in _RESERVED})
    relations: dict[str, QueriedTable] = {}
    frames: dict[str, DataFrame] = {}
    changes: list[tuple[int, int, str]] = []
    over_connect = is_connect(context.spark) and not as_views
    uses = tables_in(context.spark, text)
    for use in uses:
        name = f"frazil_{uuid.uuid4().hex}"
        given = context.frames.get(use.name.parts[0]) if len(use.name.parts) == 1 else None
        if given is not None:
            frames[name] = given
        else:
            named = context.find(use.name.parts)
            if named is None:
                continue
            relations[name] = QueriedTable(context, use, named, reserved)
        changes.append((use.name.start, use.stop, f"{{{name}}}" if over_connect else name))
        if use.alias_at is not None:
            alias = f" AS {quote_name_always([_last(use.name.parts)])}"
            changes.append((use.alias_at, use.alias_at, alias))
    tables = [each.whole_name for each in relations.values() if each.use.alias_at is not None]
    places = {use.name.start for use in uses}
    cuts = cuts_to_short(words, [*tables, *outer], but=places)
    changes += [(start, stop, "") for start, stop in cuts]
    if reserved and relations:
        changes += without_reserved(words, list(relations.values()))
    bound = _changed(text, changes, doubled=over_connect)
    return BoundText(context.spark, bound, relations, frames, text, tuple(changes))


def _asked(
    context: SqlContext, bound: BoundText, words: Sequence[Word], args: Args
) -> dict[str, Expression]:
    """What the query asks of each table."""
    prunable = {name: each for name, each in bound.relations.items() if each.can_prune}
    where: dict[str, Expression] = dict.fromkeys(bound.relations, AlwaysTrue())
    if is_connect(context.spark) or not prunable or not asks_for_rows(words):
        return where
    empty = EmptyRelations(context.spark)
    places = dict(enumerate(prunable))
    rows = {name: empty.relation(place, prunable[name].schema) for place, name in places.items()}
    for name, each in bound.relations.items():
        if name not in rows:
            rows[name] = each.rows(AlwaysTrue())
    asked = empty.asked(bound.run(args, rows))
    lasts = names_the_time(words)
    for place, name in places.items():
        schema = prunable[name].scan.schema
        where[name] = implied(asked.get(place, []), schema, spark=context.spark, lasts=lasts)
    return where


def _changed(text: str, changes: list[tuple[int, int, str]], *, doubled: bool) -> str:
    pieces, at = [], 0
    for start, stop, new in sorted(changes):
        pieces += [_escaped(text[at:start], doubled), new]
        at = stop
    return "".join([*pieces, _escaped(text[at:], doubled)])


def _escaped(text: str, doubled: bool) -> str:
    return text.replace("{", "{{").replace("}", "}}") if doubled else text


def _last(parts: tuple[str, ...]) -> str:
    return parts[-1]
