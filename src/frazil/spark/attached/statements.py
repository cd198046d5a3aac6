"""`spark.sql` of an attached session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import NoSuchNamespaceError, SqlSyntaxError, ValidationError
from frazil.spark.attached.names import AnotherLakesNameError, SessionNames, context_of
from frazil.spark.lake_transaction.statements import controls
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.plans.traces import errors_unlogged
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.execute_immediate import immediate_statement, is_immediate
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.identifiers import is_script, with_identifiers
from frazil.spark.sql.results import empty_result, matches, table_of
from frazil.spark.sql.run import run_sql
from frazil.spark.sql.statements.listing import CHANGES
from frazil.spark.sql.statements.tables import NAMESPACE_WORDS
from frazil.spark.sql.statements.temporary_views import name_of_cached_query
from frazil.spark.words import Word, WordReader, words_of

_MAY_HOLD_USE: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(?:EXECUTE|BEGIN)\b", re.I | re.S)
"""How a text or a script begins, within which Spark alone hears of a USE."""

_SHOW_CATALOGS: Final = re.compile(r"\s*SHOW\s+CATALOGS\b", re.IGNORECASE)

_MADE_FOR_THE_SESSION: Final = frozenset({"TEMPORARY", "TEMP", "FUNCTION"})

Plain = Callable[..., Any]
"""A method as Spark has it."""


def run_statement(
    names: SessionNames,
    plain: Plain,
    spark: SparkSession,
    /,
    sqlQuery: str,
    args: Args = None,
    **kwargs: Any,
) -> DataFrame:
    """Run a statement: on the lakes that it names, else as Spark does.

    Args:
        plain: Spark's own `SparkSession.sql`.
        spark: the session.
        sqlQuery, args, kwargs: as of `SparkSession.sql`.

    Raises:
        AnalysisException, ParseException: of Spark, or as Spark has them.
        FrazilError: what the method behind the statement raises.
    """
    if is_immediate(sqlQuery) and not _spark_knows(names):
        # Spark looks for names within a text by itself: of a lake in use it does not know.
        return run_statement(
            names, plain, spark, immediate_statement(spark, sqlQuery, args), None, **kwargs
        )
    if controls(sqlQuery):
        with sparks_errors():
            return _control(names, sqlQuery)
    if isinstance(sqlQuery, str) and _SHOW_CATALOGS.match(sqlQuery):
        return _catalogs(names, plain, spark, sqlQuery)
    if names.in_spark:
        CachedTables.of(spark).follow(spark)
    if not kwargs:
        named, left = with_identifiers(spark, sqlQuery, args)
        if names.may_be_in(named):
            sqlQuery, args = named, left
    words = _words(names, sqlQuery)
    if words is None:
        with _use_followed(names, spark, sqlQuery):
            found: DataFrame = plain(spark, sqlQuery, args, **kwargs)
        return found
    is_ours = names.first_in(words) is not None or _sets_catalog(words)
    if not is_ours or _goes_to_spark(names, sqlQuery, words):
        with errors_unlogged(), _use_followed(names, spark, sqlQuery):
            answer: DataFrame = plain(spark, sqlQuery, args, **kwargs)
        cached = name_of_cached_query(sqlQuery) if words[0].keyword == "CACHE" else None
        if cached is not None:
            CachedTables.of(spark).note_query(spark, cached)
        return answer
    if words[0].keyword == "CALL":
        names.refuse_in_transaction("a CALL")
    moved = _run_move(names, words, sqlQuery)
    if moved is not None:
        if moved:
            return empty_result(spark)
        found = plain(spark, sqlQuery, args, **kwargs)
        names.use(None)
        return found
    # The statements of a script are parts of a transaction, one by one.
    part = nullcontext() if is_script(words) else names.change()
    with sparks_errors(), part:
        if not kwargs or is_connect(spark):
            return _on_a_lake(names, spark, sqlQuery, args, kwargs)
        formatter = SQLStringFormatter(spark)
        try:
            text = formatter.format(sqlQuery, **kwargs)
            return _on_a_lake(names, spark, text, args, {})
        finally:
            formatter.clear()


@contextmanager
def _use_followed(names: SessionNames, spark: SparkSession, text: object) -> Iterator[None]:
    """Take over a lake that a USE within a text or a script set, and give Spark its own back."""
    if not (names.in_spark and isinstance(text, str) and _MAY_HOLD_USE.match(text)):
        yield
        return
    session: Any = spark
    manager = session._jsparkSession.sessionState().catalogManager()
    catalog, namespace = manager.currentCatalog().name(), manager.currentNamespace()
    try:
        yield
    finally:
        lake = manager.currentCatalog().name()
        if lake != catalog and lake in names.attached:
            names.use(lake, tuple(manager.currentNamespace()))
            manager.setCurrentCatalog(catalog)
            manager.setCurrentNamespace(namespace)


def _goes_to_spark(names: SessionNames, text: str, words: Sequence[Word]) -> bool:
    """Whether Spark runs a statement, and we what is of a lake in it: a change in a script."""
    if is_script(words) and CHANGES.keys() & {word.keyword for word in words}:
        return names.in_spark
    return _spark_knows(names) and _is_sparks(text, words)


def _spark_knows(names: SessionNames) -> bool:
    """Whether Spark itself finds the lakes, none of which is in use."""
    return names.in_spark and names.lake is None


def _is_sparks(text: str, words: Sequence[Word]) -> bool:
    """Whether Spark runs a statement that names a lake, since it holds others.

    Spark does not know of a lake that USE has set when it looks for a name there.
    """
    keys = [word.keyword for word in words[:5]]
    if keys[0] in ("BEGIN", "EXECUTE", "DECLARE"):
        return True
    if keys[0] == "CACHE":
        return name_of_cached_query(text) is not None
    is_made = keys[0] == "CREATE" and bool(_MADE_FOR_THE_SESSION.intersection(keys))
    return is_made and "USING" not in keys and "GLOBAL" not in keys


def _control(names: SessionNames, text: str) -> DataFrame:
    """Run a BEGIN, COMMIT or ROLLBACK: of the lake of USE, or of the only one."""
    chosen = names.lake
    if chosen is None and len(names.attached) == 1:
        chosen = next(iter(names.attached))
    open_ones = [each for each in names.attached.values() if each.transactions.current is not None]
    if open_ones:
        chosen = open_ones[0].name
    if chosen is None:
        known = ", ".join(names.attached)
        raise ValidationError(f"a transaction is one of a lake: say USE and which of {known} first")
    found = names.attached[chosen].transactions.control(text)
    assert found is not None
    return found


def _words(names: SessionNames, text: object) -> tuple[Word, ...] | None:
    """The words of a statement; None where it names no lake, or Spark has to say what is wrong."""
    if not isinstance(text, str) or not names.may_be_in(text):
        return None
    try:
        return words_of(text) or None
    except SqlSyntaxError:
        return None


def _on_a_lake(
    names: SessionNames, spark: SparkSession, text: str, args: Args, frames: Mapping[str, Any]
) -> DataFrame:
    """Run a statement on the lake that it is about, which its first names do not always say."""
    lake = names.lake_to_read(names.first_in(words_of(text)) or next(iter(names.lakes)))
    tried: list[str] = []
    while True:
        tried.append(lake)
        try:
            return run_sql(context_of(names, spark, lake, frames), text, args)
        except AnotherLakesNameError as other:
            if other.lake in tried:
                both = " and ".join(sorted({lake, other.lake}))
                raise ValidationError(
                    f"a statement changes one lake, and this is about {both}; nothing was changed"
                ) from None
            lake = other.lake


def _run_move(names: SessionNames, words: tuple[Word, ...], text: str) -> bool | None:
    """Run a USE or SET CATALOG: True where it is a lake's, False where it is Spark's.

    Returns:
        None where the statement is another one.
    """
    reader = WordReader(text, words)
    if reader.takes("SET", "CATALOG"):
        if reader.words[reader.at :] and reader.words[reader.at].is_string:
            return use(names, (reader.string(),))
        return use(names, reader.names("the name of a catalog"))
    if not reader.takes("USE"):
        return None
    if reader.sees_one_of(*NAMESPACE_WORDS) and len(reader.words) > 2:
        reader.word("NAMESPACE")
    with sparks_errors():
        return use(names, reader.names("the name of a catalog or a namespace"))


def _sets_catalog(words: Sequence[Word]) -> bool:
    """Whether a statement is SET CATALOG, which may name a lake as a string."""
    return [word.keyword for word in words[:2]] == ["SET", "CATALOG"]


def use(names: SessionNames, parts: Identifier) -> bool:
    """Set where names without a prefix are looked for; return whether it is a lake.

    Raises:
        NoSuchNamespaceError: the lake has no such namespace.
    """
    if parts[0] in names.lakes:
        lake, levels = names.lakes[parts[0]], parts[1:]
    elif names.lake is None or parts[0].lower() in names.reserved:
        return False
    else:
        lake, levels = names.lakes[names.lake], parts
    if levels and not lake.catalog.namespace_exists(levels):
        raise NoSuchNamespaceError(f"there is no namespace {shown(levels)} in {lake.name}")
    names.use(lake.name, levels)
    return True


def _catalogs(names: SessionNames, plain: Plain, spark: SparkSession, text: str) -> DataFrame:
    reader = WordReader(text)
    reader.expect("SHOW", "CATALOGS")
    reader.takes("LIKE")
    pattern = None if reader.is_done else reader.string()
    reader.finish()
    own = [name for name in names.lakes if matches(name, pattern)]
    others = [str(row[0]) for row in plain(spark, text).collect()]
    return table_of(spark, ("catalog",), [(name,) for name in sorted({*own, *others})])
