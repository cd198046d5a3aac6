"""Conditions: which rows a command is about, as any Spark expression over the row.

A condition is the test of a row, the predicate that it implies (which prunes files and scopes the
search for conflicts), and whether that predicate is exact. What a predicate says exactly is tested
in its own form (`to_spark_sql`); the rest is tested by Spark as it was written. Either is put on
rows of `TableReader`, which sees to it that nothing about floats is pushed into Parquet's filters
but what is written for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.errors import PredicateError
from frazil.format.predicates import (
    AlwaysFalse,
    AlwaysTrue,
    BoundRef,
    Expression,
    Leaf,
    SparkForms,
    all_of,
    bind,
    leaves,
    to_spark_sql,
)
from frazil.format.predicates.expressions import with_leaves, with_ref
from frazil.format.predicates.sql.implied import (
    NOTHING_IMPLIED,
    ConditionReader,
    WordsOfText,
    conjuncts_of,
    words_in_text,
)
from frazil.format.schema import Schema
from frazil.spark.session.facts import (
    is_case_sensitive,
    is_set,
    temporary_settings,
    type_support,
)
from frazil.spark.types import schema_to_spark

_READ_DIFFERENTLY: Final = {
    "spark.sql.parser.escapedStringLiterals": (r"\\", "false"),
    "spark.sql.ansi.doubleQuotedIdentifiers": (r'"', "false"),
    "spark.sql.legacy.consecutiveStringLiterals.enabled": (r"''|\"\"", "false"),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": (r"\d\.?[eE]", "false"),
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": (r"\d-\d", "false"),
}
"""Settings by which Spark reads a text differently: which texts, and the value to be had."""

_COLUMN_REPR: Final = re.compile(r"Column<'(.*)'>", re.DOTALL)
_QUOTED: Final = r"`((?:[^`]|``)*)`"
_UNKNOWN_COLUMN: Final = re.compile(
    rf"\[UNRESOLVED_COLUMN\b.*? name ({_QUOTED}(?:\.{_QUOTED})*)", re.DOTALL
)
_SHOWN: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Which rows of a table a command is about.

    A row matches where the condition is TRUE; FALSE and NULL are both no match.

    Attributes:
        implied: a bound predicate that is TRUE for every row that matches.
        known: the part of it that a row is tested by; the rest of the condition Spark evaluates.
        is_exact: whether the rows that match are exactly those for which `implied` is TRUE.
        has_subquery: whether there is a sub-query in it. Of a `Column` that cannot be told, and
            True is assumed.
        column_names: the top-level columns of the schema that it needs; None where that cannot be
            told.
        alias: the name that qualifies the row's columns; None without one.
        text: the condition for people.
    """

    implied: Expression
    known: Expression
    is_exact: bool
    has_subquery: bool
    column_names: frozenset[str] | None
    alias: str | None
    text: str
    _tests: tuple[Column, ...]

    def __repr__(self) -> str:
        return f"Condition({self.text})"

    def __str__(self) -> str:
        return self.text

    @property
    def is_always_true(self) -> bool:
        """Whether it surely matches every row."""
        return self.is_exact and isinstance(self.implied, AlwaysTrue)

    def matching_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows that match."""
        rows = self._with_own_names(rows)
        for test in self._tests:
            rows = rows.where(test)
        return rows

    def other_rows(self, rows: DataFrame) -> DataFrame:
        """Return the rows for which it is FALSE or NULL."""
        return self._with_own_names(rows).where(~self.flag())

    def with_flag(self, rows: DataFrame, name: str) -> DataFrame:
        """Return the rows with a boolean column, never NULL, that says whether a row matches.

        A sub-query may stand in it. The column is evaluated once for each row.
        """
        return self._with_own_names(rows).withColumn(name, self.flag())

    def flag(self) -> Column:
        """Return whether a row matches, as a column that is never NULL.

        It belongs over rows that bear the condition's alias, if it has one.
        """
        if not self._tests:
            return F.lit(True)
        joined = self._tests[0]
        for test in self._tests[1:]:
            joined = joined & test
        return F.coalesce(joined, F.lit(False))

    def _with_own_names(self, rows: DataFrame) -> DataFrame:
        return rows if self.alias is None else rows.alias(self.alias)


def condition_of(
    where: str | Column | Expression | None,
    schema: Schema,
    *,
    spark: SparkSession,
    case_sensitive: bool,
    time_zone: str,
    alias: str | None = None,
) -> Condition:
    """Return what a user gives as a condition, checked against the schema.

    Args:
        where: SQL text, a column, or an expression of `frazil.format.predicates`; None matches
            every row.
        spark: the session that evaluates it.
        case_sensitive: whether names are matched with their case. In what only Spark can evaluate
            the session's setting decides.
        time_zone: the session's zone.
        alias: the name that qualifies the row's columns, also within sub-queries.

    Raises:
        PredicateError: it names a column that is not there, is no boolean, or cannot be parsed.
    """
    make = _Maker(schema, spark, case_sensitive, time_zone, alias)
    if where is None:
        return make.exact_condition(AlwaysTrue(), "TRUE")
    if isinstance(where, Expression):
        bound = bind(where, schema, case_sensitive=case_sensitive, time_zone=time_zone)
        return make.exact_condition(bound, bound.to_sql())
    if isinstance(where, str):
        return make.of_text(where)
    if isinstance(where, Column):
        return make.of_column(where)
    raise PredicateError(
        f"a condition is a {type(where).__name__}: give SQL text, a Spark Column or an expression "
        "of frazil.format.predicates"
    )


def implied_by(text: str, schema: Schema, *, spark: SparkSession, time_zone: str) -> Expression:
    """Return a bound predicate that is TRUE for every row for which a text of SQL is.

    Nothing asks Spark: what cannot be read implies nothing.

    Args:
        text: a condition; columns are named with their case.
        time_zone: the session's zone.
    """
    if not is_read_as_here(text, spark):
        return AlwaysTrue()
    reader = ConditionReader(schema=schema, case_sensitive=True, time_zone=time_zone)
    return all_of(reader.read_condition(piece).predicate for piece in conjuncts_of(text))


def stated_by(
    text: str, schema: Schema, *, spark: SparkSession, time_zone: str
) -> Expression | None:
    """Return the bound predicate that a text of SQL is, and None where it says more than that.

    Args:
        text: a condition; columns are named with their case.
        time_zone: the session's zone.
    """
    if not is_read_as_here(text, spark):
        return None
    reader = ConditionReader(schema=schema, case_sensitive=True, time_zone=time_zone)
    pieces = [reader.read_condition(piece) for piece in conjuncts_of(text)]
    if not all(piece.is_exact for piece in pieces):
        return None
    return all_of(piece.predicate for piece in pieces)


def is_read_as_here(text: str, spark: SparkSession) -> bool:
    """Return whether no setting of the session makes Spark read a text in another way."""
    return all(
        is_set(spark, key, usual)
        for key, (pattern, usual) in _READ_DIFFERENTLY.items()
        if re.search(pattern, text)
    )


@dataclass(frozen=True, slots=True)
class _Maker:
    schema: Schema
    spark: SparkSession
    case_sensitive: bool
    time_zone: str
    alias: str | None

    def exact_condition(self, bound: Expression, text: str) -> Condition:
        """The condition that a bound predicate is."""
        return Condition(
            implied=bound,
            known=bound,
            is_exact=True,
            has_subquery=False,
            column_names=self._names_in(bound),
            alias=self.alias,
            text=text,
            _tests=() if isinstance(bound, AlwaysTrue) else (self._test(bound),),
        )

    def of_text(self, text: str) -> Condition:
        """The condition of a SQL text: predicates where they say it exactly, Spark for the rest."""
        if not is_read_as_here(text, self.spark):
            return self._of_texts(text, AlwaysTrue(), [text])
        reader = ConditionReader(
            schema=self.schema,
            case_sensitive=self.case_sensitive,
            time_zone=self.time_zone,
            alias=self.alias,
        )
        whole = reader.read_condition(text)
        if whole.is_exact:
            return self.exact_condition(whole.predicate, text)
        pieces = [(piece, reader.read_condition(piece)) for piece in conjuncts_of(text)]
        known = all_of(implied.predicate for _, implied in pieces if implied.is_exact)
        rest = [piece for piece, implied in pieces if not implied.is_exact]
        return self._of_texts(text, known, rest, all_of(i.predicate for _, i in pieces))

    def _of_texts(
        self,
        text: str,
        known: Expression,
        rest: list[str],
        implied: Expression = NOTHING_IMPLIED.predicate,
    ) -> Condition:
        """A condition whose parts are a predicate that is known, and texts that Spark evaluates."""
        words = [words_in_text(piece) for piece in rest]
        names = self._columns_in(words)
        needed = None if names is None else names | self._names_in(known)
        tests = self._columns_of(text, rest)
        if names is None or not self._holds_over(tests, names):
            self._check(text, tests)
            needed = None
        first = [] if isinstance(known, AlwaysTrue) else [self._test(known)]
        return Condition(
            implied=implied,
            known=known,
            is_exact=False,
            has_subquery=any(each is None or each.has_query for each in words),
            column_names=needed,
            alias=self.alias,
            text=text,
            _tests=(*first, *tests),
        )

    def of_column(self, column: Column) -> Condition:
        """The condition that a Spark column is; nothing can be said of what it implies."""
        shown = _COLUMN_REPR.fullmatch(repr(column))
        text = shown[1] if shown else repr(column)
        self._check(text, [column])
        return Condition(
            implied=AlwaysTrue(),
            known=AlwaysTrue(),
            is_exact=False,
            has_subquery=True,
            column_names=None,
            alias=self.alias,
            text=text,
            _tests=(column,),
        )

    def _test(self, bound: Expression) -> Column:
        """What tests a bound predicate on rows that bear the alias."""
        if isinstance(bound, AlwaysFalse):
            return F.lit(False)
        forms = SparkForms(time="time" if type_support(self.spark).time else "long")
        return F.expr(to_spark_sql(self._qualify(bound), forms=forms))

    def _qualify(self, bound: Expression) -> Expression:
        if self.alias is None:
            return bound
        alias = self.alias

        def leaf(node: Expression) -> Expression:
            if not isinstance(node, Leaf) or not isinstance(node.ref, BoundRef):
                return node
            ref = node.ref
            return with_ref(node, BoundRef(ref.field_id, ref.type, (alias, *ref.parts)))

        return with_leaves(bound, leaf)

    def _names_in(self, bound: Expression) -> frozenset[str]:
        refs = (leaf.ref for leaf in leaves(bound))
        return frozenset(ref.parts[0] for ref in refs)

    def _columns_in(self, words: Iterable[WordsOfText | None]) -> frozenset[str] | None:
        """The columns whose names are among the words: all that are meant, and perhaps more."""
        names: set[str] = set()
        for each in words:
            if each is None or each.has_star:
                return None
            names.update(f.name for f in self.schema.fields if each.name_any_of([f.name]))
        return frozenset(names)

    def _columns_of(self, text: str, pieces: list[str]) -> list[Column]:
        try:
            return [F.expr(piece) for piece in pieces]
        except AnalysisException as error:
            raise self._refusal(text, error) from error

    def _holds_over(self, tests: list[Column], names: frozenset[str]) -> bool:
        """Whether Spark needs no more columns than these."""
        fields = [field for field in self.schema.fields if field.name in names]
        try:
            self._analyse(tests, Schema(tuple(fields)))
        except (AnalysisException, IllegalArgumentException):
            return False
        return True

    def _check(self, text: str, tests: list[Column]) -> None:
        """Let Spark analyse what tests a row, over no rows.

        Raises:
            PredicateError: Spark refuses it.
        """
        try:
            self._analyse(tests, self.schema)
        except (AnalysisException, IllegalArgumentException) as error:
            raise self._refusal(text, error) from error

    def _analyse(self, tests: list[Column], schema: Schema) -> None:
        shape = schema_to_spark(schema, support=type_support(self.spark))
        strict = self.case_sensitive and not is_case_sensitive(self.spark)
        settings = {"spark.sql.caseSensitive": "true"} if strict else {}
        with temporary_settings(self.spark, settings):
            rows = self.spark.createDataFrame([], shape)
            rows = rows if self.alias is None else rows.alias(self.alias)
            for test in tests:
                # A filter takes only what is boolean, no aggregate and no window's function.
                rows = rows.where(test)
            # Over Spark Connect nothing is analysed before it is asked for.
            assert isinstance(rows.schema, S.StructType)

    def _refusal(self, text: str, error: Exception) -> PredicateError:
        message = str(error)
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
        unknown = _UNKNOWN_COLUMN.search(message)
        if unknown is not None:
            parts = [
                part.replace("``", "`") for part in re.findall(r"`((?:[^`]|``)*)`", unknown[1])
            ]
            name = ".".join(parts[1:] if parts[1:] and parts[0] == self.alias else parts)
            return PredicateError(f"in the condition {shown!r}: {self.schema.missing(name)}")
        reason = message.split("; line", 1)[0].split("\n\nJVM stacktrace", 1)[0].strip()
        return PredicateError(f"the condition {shown!r} is refused by Spark: {reason[:_SHOWN]}")
