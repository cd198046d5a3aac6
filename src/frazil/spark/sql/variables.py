"""Variables of a session, and of a script that runs, in expressions of a statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from frazil.spark.abilities import has_class
from frazil.spark.plans.machine import elements
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect
from frazil.spark.sql.parsers.spark_parser import parsed_expression

_BETWEEN: Final = "\x01"
_OF_SCRIPTS: Final = "org.apache.spark.sql.catalyst.SqlScriptingContextManager"
_OF_THE_SESSION: Final = ((), ("session",), ("system", "session"))
"""What can stand before the name of a session's variable."""

Parts = tuple[str, ...]

_SCRIPTS: Final = BySession[tuple[Any]]()
"""What tells the script that runs; None in it where this Spark has none."""


def _scripts(spark: SparkSession) -> tuple[Any]:
    session: Any = spark
    if not has_class(session._jvm, _OF_SCRIPTS):
        return (None,)
    return (session._jvm.org.apache.spark.sql.catalyst.SqlScriptingContextManager,)


def with_values(spark: SparkSession, text: str, is_column: Callable[[Parts], bool]) -> str:
    """Return an expression with the values of variables in their places, as Spark's own literals.

    Within sub-queries there are none put: Spark itself reads these.

    Args:
        spark: the session; over Spark Connect its variables are not known here.
        is_column: whether a name, as it is written, is that of a column, which goes before.
    """
    if is_connect(spark):
        return text
    variables = _Variables(spark)
    if variables.are_none:
        return text
    try:
        tree = parsed_expression(spark, text)
    except PySparkException:
        # What is wrong is told where the expression is used.
        return text
    found = []
    for parts, start, stop in _names(tree):
        if not is_column(parts):
            value = variables.value(parts)
            if value is not None:
                found.append((start, stop, value))
    for start, stop, value in sorted(found, reverse=True):
        text = text[:start] + value + text[stop:]
    return text


class _Variables:
    """The variables that a statement sees: those of the script that runs, then the session's."""

    def __init__(self, spark: SparkSession) -> None:
        session: Any = spark
        state = session._jsparkSession.sessionState()
        self._is_case_sensitive = bool(state.conf().caseSensitiveAnalysis())
        self._sequence = session._jvm.PythonUtils.toSeq
        own = state.catalogManager().tempVariableManager()
        self._own = None if own.isEmpty() else own
        self._of_script = None
        scripts = _SCRIPTS.get_or_make(spark, _scripts)[0]
        if scripts is None:
            return
        context = scripts.get()
        if context.isDefined():
            manager = context.get().getVariableManager()
            if str(manager.getClass().getName()).startswith("scala."):
                # Newer Sparks say whether the script has any.
                manager = manager.get() if manager.isDefined() else None
            self._of_script = manager

    @property
    def are_none(self) -> bool:
        """Whether there is no variable at all."""
        return self._own is None and self._of_script is None

    def value(self, parts: Parts) -> str | None:
        """Return the value of a name, and of a field in it; None where it is no variable."""
        cased = parts if self._is_case_sensitive else tuple(part.lower() for part in parts)
        for count in range(len(parts), 0, -1):
            found = self._find(cased[:count])
            if found is not None:
                literal = f"({found.currentValue().sql()})"
                fields = "".join(f".`{part.replace('`', '``')}`" for part in parts[count:])
                return literal + fields
        return None

    def _find(self, parts: Parts) -> Any:
        is_qualified = len(parts) > 2 or (len(parts) == 2 and parts[0].lower() == "session")
        managers = [] if self._of_script is None or is_qualified else [self._of_script]
        before = tuple(part.lower() for part in parts[:-1])
        if self._own is not None and before in _OF_THE_SESSION:
            managers.append(self._own)
        for manager in managers:
            found = manager.get(self._sequence(list(parts)))
            if found.isDefined():
                return found.get()
        return None


def _names(node: Any) -> Iterator[tuple[Parts, int, int]]:
    """The names in an expression, and where each stands; those in sub-queries are none."""
    if node.nodeName() == "UnresolvedAttribute":
        origin = node.origin()
        if origin.startIndex().isDefined() and origin.stopIndex().isDefined():
            parts = tuple(node.nameParts().mkString(_BETWEEN).split(_BETWEEN))
            yield parts, int(origin.startIndex().get()), int(origin.stopIndex().get()) + 1
        return
    for each in elements(node.children()):
        yield from _names(each)
