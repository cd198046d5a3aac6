"""Where tables stand in a query: found by a parser, so that names are replaced and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession

from frazil.spark.session.facts import is_connect
from frazil.spark.sql.parsers.spark_parser import names_by_spark
from frazil.spark.sql.parsers.sqlglot_parser import names_by_sqlglot
from frazil.spark.sql.parsers.table_name import TableName
from frazil.spark.words import WordReader, properties_of, words_of
from frazil.storage.caches import BoundedCache

_VERSION: Final = ("VERSION", "SYSTEM_VERSION")
_TIME: Final = ("TIMESTAMP", "SYSTEM_TIME")


@dataclass(frozen=True, slots=True)
class TableUse:
    """A table in a query.

    Attributes:
        name: its parts, and where they stand.
        stop: the place after the name, or after the clause that says which version.
        version: what stands after VERSION AS OF; None without.
        timestamp: what stands after TIMESTAMP AS OF; None without.
        alias_at: where an alias can be added; None where the table has one, or can have none.
        alias_after: the place after which its alias stands, where it has one.
        options: what stands in ``WITH (…)``, where a text is all that is known.
    """

    name: TableName
    stop: int
    version: str | None
    timestamp: str | None
    alias_at: int | None
    alias_after: int
    options: tuple[tuple[str, str], ...] = ()


def tables_in(spark: SparkSession, query: str) -> tuple[TableUse, ...]:
    """Return the tables of a query in the order of the text; names of its CTEs are none.

    Raises:
        ParseException: of Spark, where the text is no query.
        SqlSyntaxError: the same over Connect.
    """
    over_connect = is_connect(spark)
    quoted = str(spark.conf.get(_DOUBLE_QUOTED, "false")).lower()
    key = (query, over_connect, quoted)
    found = _KEPT.get(key)
    if found is None:
        names = names_by_sqlglot(query) if over_connect else names_by_spark(spark, query)
        words = words_of(query)
        ordered = sorted(names, key=lambda name: name.start)
        found = tuple(_use(WordReader(query, words), name) for name in ordered)
        _KEPT.put(key, found, 1)
    return found


_DOUBLE_QUOTED: Final = "spark.sql.ansi.doubleQuotedIdentifiers"
_QUERIES: Final = 256
_KEPT: Final = BoundedCache[tuple[TableUse, ...]](_QUERIES)
"""What was found in the last queries, each of which counts as one byte."""


def _use(reader: WordReader, name: TableName) -> TableUse:
    words = reader.words
    first = next(i for i, word in enumerate(words) if word.start >= name.start)
    before = words[first - 1].keyword if first else ""
    reader.at = next((i for i, w in enumerate(words) if w.start >= name.stop), len(words))
    version, timestamp = _moment(reader)
    options = properties_of(reader.inner_reader()) if _takes_with(reader) else {}
    stop = words[reader.at - 1].stop
    _skip_sample(reader)
    after = words[reader.at - 1].stop
    # In a function's argument TABLE(t) no alias can stand.
    before_that = words[first - 2].keyword if first > 1 else ""
    is_whole = before == "TABLE" or (before == "(" and before_that == "TABLE")
    alias_at = None if name.is_aliased or is_whole else after
    return TableUse(name, stop, version, timestamp, alias_at, after, tuple(options.items()))


def _takes_with(reader: WordReader) -> bool:
    """Go past the WITH before a table's options; that of a query has no parentheses after it."""
    return reader.sees("WITH", "(") and reader.takes("WITH")


def _moment(reader: WordReader) -> tuple[str | None, str | None]:
    start = reader.at
    reader.takes("FOR")
    for kinds in (_VERSION, _TIME):
        if reader.sees_one_of(*kinds):
            kind = reader.word("a kind").keyword
            if reader.takes("AS", "OF"):
                begin = reader.place
                _operand(reader)
                while kind in _TIME and reader.sees_one_of("+", "-"):
                    reader.word("an operator")
                    _operand(reader)
                said = reader.text[begin : reader.words[reader.at - 1].stop]
                return (said, None) if kind in _VERSION else (None, said)
    reader.at = start
    return None, None


def _operand(reader: WordReader) -> None:
    """Go past a literal, a call or an interval."""
    reader.takes("-")
    if reader.takes("INTERVAL"):
        reader.word("a number")
        reader.word("a unit")
        if reader.takes("TO"):
            reader.word("a unit")
        return
    if reader.sees("("):
        reader.inner_reader()
        return
    word = reader.word("a version or a time")
    if reader.sees("("):
        reader.inner_reader()
    elif word.keyword in ("TIMESTAMP", "DATE", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"):
        reader.string()


def _skip_sample(reader: WordReader) -> None:
    for clause in (("TABLESAMPLE",), ("REPEATABLE",)):
        if reader.takes(*clause):
            reader.inner_reader()
