"""Names of tables by Spark's own parser, which a classic session has at hand."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from frazil.spark.plans.machine import Machine, elements
from frazil.spark.session.by_session import BySession
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.table_name import TableName

OWN_PARSERS: Final = BySession[Any]()
"""Spark's own parser of each session that has another one."""

_BETWEEN: Final = "\x01"
_BELOW_ALIASES: Final = ("UnresolvedSubqueryColumnAliases", "Sample")


def with_variables(spark: SparkSession, text: str) -> str:
    """Return a text with the values of ``${…}`` in it, as Spark's parser reads it."""
    if "${" not in text:
        return text
    session: Any = spark
    with _active(spark):
        substitution: Any = session._jvm.org.apache.spark.sql.internal.VariableSubstitution()
        return str(substitution.substitute(text))


def names_by_spark(spark: SparkSession, query: str) -> list[TableName]:
    """Return the names of tables in a query.

    Raises:
        ParseException: of Spark.
    """
    # The parser is not in PySpark's own API; over Connect there is none, and sqlglot does it.
    with _active(spark):
        plan = _parser(spark).parsePlan(query)
    if "UnresolvedRelation" not in plan.treeString():
        return []
    return list(_names(plan, frozenset(), is_aliased=False))


def parsed_plan(spark: SparkSession, text: str, args: Args = None) -> Any:
    """Return the plan of a statement, not analysed, with the values of its parameters.

    Raises:
        ParseException: of Spark.
        PySparkException: a value has no literal.
    """
    session: Any = spark
    with _active(spark):
        parser = _parser(spark)
        if not args:
            return parser.parsePlan(text)
        machine, own = Machine(session.sparkContext._gateway), session._jsparkSession
        is_named = isinstance(args, Mapping)
        given = (
            args if isinstance(args, Mapping) else {f"_{at}": each for at, each in enumerate(args)}
        )
        values = {key: own.expression(F.lit(value)._jc) for key, value in given.items()}
        if not machine.root.substitutes_parameters:
            plan, in_order = parser.parsePlan(text), machine.sequence(values.values())
            analysis = machine.catalyst.analysis
            if not is_named:
                return analysis.PosParameterizedQuery(plan, in_order)
            return analysis.NameParameterizedQuery(plan, machine.sequence(values), in_order)
        literals = own.resolveAndValidateParameters(machine.mapping(values.items()))
        kinds: Any = machine.catalyst.parser
        if is_named:
            said = kinds.NamedParameterContext(literals)
        else:
            said = kinds.PositionalParameterContext(
                machine.sequence(literals.apply(key) for key in values)
            )
        return parser.parsePlanWithParameters(text, said)


def parsed_expression(spark: SparkSession, text: str) -> Any:
    """Return the tree of an expression, not analysed.

    Raises:
        ParseException: of Spark.
    """
    with _active(spark):
        return _parser(spark).parseExpression(text)


def _parser(spark: SparkSession) -> Any:
    session: Any = spark
    return OWN_PARSERS.get(spark) or session._jsparkSession.sessionState().sqlParser()


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Make a session the one of this thread in the block: the parser reads its settings there.

    It evaluates the values of inline tables, and by the settings of another session, such as those
    of ANSI, they may be errors.
    """
    session: Any = spark
    sessions: Any = Machine(session.sparkContext._gateway).sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _names(node: Any, hidden: frozenset[str], *, is_aliased: bool) -> Iterator[TableName]:
    """The names below a node of a plan.

    Args:
        hidden: names of CTEs, in small letters.
    """
    kind = node.nodeName()
    if kind == "UnresolvedRelation":
        parts = tuple(node.multipartIdentifier().mkString(_BETWEEN).split(_BETWEEN))
        if len(parts) > 1 or parts[0].lower() not in hidden:
            origin = node.origin()
            start, stop = origin.startIndex().get(), origin.stopIndex().get() + 1
            yield TableName(parts, start, stop, is_aliased)
        return
    if kind == "RelationTimeTravel":
        yield from _names(node.relation(), hidden, is_aliased=is_aliased)
        return
    if kind == "UnresolvedWith":
        hidden = yield from _of_ctes(node, hidden)
        yield from _names(node.child(), hidden, is_aliased=False)
        return
    # An alias with names for columns is a node above the one of the alias, and one below a sample.
    named = kind == "SubqueryAlias" or (is_aliased and kind in _BELOW_ALIASES)
    for below in (node.children(), node.innerChildren()):
        for each in elements(below):
            yield from _names(each, hidden, is_aliased=named)


def _of_ctes(node: Any, hidden: frozenset[str]) -> Generator[TableName, None, frozenset[str]]:
    """The names in CTEs, each of which sees those before it; returns what the query sees."""
    for cte in elements(node.cteRelations()):
        name = str(cte.productElement(0)).lower()
        own = hidden | {name} if node.allowRecursion() else hidden
        # The name is that of the CTE, not of a table in it.
        yield from _names(cte.productElement(1).child(), own, is_aliased=False)
        hidden |= {name}
    return hidden
