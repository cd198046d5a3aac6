"""Statements of a lake as commands of Spark, which runs each where it is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.spark.attached.names import SessionNames
from frazil.spark.lake_transaction.statements import controls
from frazil.spark.plans.machine import JavaObject, Machine, answers
from frazil.spark.sql.statements.listing import (
    CHANGES,
    StatementKind,
    after_ctes,
    kind_by_first_word,
)
from frazil.spark.sql.statements.temporary_views import name_of_cached_query
from frazil.spark.words import Word, WordReader, words_of

Run = Callable[[str], DataFrame]
"""Runs a statement on the lakes of a session."""

_SPARKS: Final = frozenset({"CATALOGS", "FUNCTION", "VARIABLE"})
_OF_THE_SESSION: Final = frozenset({"TEMPORARY", "TEMP", "FUNCTION", "VARIABLE", "GLOBAL"})


def kind_of(names: SessionNames, text: str, words: Sequence[Word]) -> StatementKind:
    """Return what a statement becomes, by its first words."""
    if controls(text):
        return StatementKind.CHANGE
    if not words or names.first_in(words) is None:
        return StatementKind.SPARKS
    keys = [word.keyword for word in words[:5]]
    first = keys[0]
    if first == "WITH":
        return StatementKind.CHANGE if changes_after_ctes(text) else StatementKind.SPARKS
    if first == "FROM":
        inserts = any(
            one.keyword == "INSERT" and other.keyword in ("INTO", "OVERWRITE")
            for one, other in pairwise(words)
        )
        return StatementKind.CHANGE if inserts else StatementKind.SPARKS
    if first == "CREATE":
        return StatementKind.SPARKS if _OF_THE_SESSION & set(keys) else StatementKind.CHANGE
    if first == "CACHE":
        has_query = name_of_cached_query(text) is not None
        return StatementKind.SPARKS if has_query else StatementKind.CHANGE
    if first == "DROP" and keys[1:2] and keys[1] in _OF_THE_SESSION:
        return StatementKind.SPARKS
    kind = kind_by_first_word(first)
    of_spark = _SPARKS & set(keys) or "QUERY" in keys[1:2]
    return StatementKind.SPARKS if kind is StatementKind.SHOWN and of_spark else kind


def is_of_pipelines(words: Sequence[Word]) -> bool:
    """Whether a statement defines what a declarative pipeline makes, whose names it resolves."""
    keys = [word.keyword for word in words[:4] if word.keyword not in ("OR", "REFRESH")]
    return keys[:1] == ["CREATE"] and keys[1:2] in (["MATERIALIZED"], ["STREAMING"], ["FLOW"])


def changes_after_ctes(text: str) -> bool:
    """Whether a statement that begins with CTEs changes rows after them."""
    try:
        return after_ctes(WordReader(text))[1] in CHANGES
    except SqlSyntaxError:
        return False


def text_explained(text: str) -> str:
    """Return what of an EXPLAIN is explained."""
    reader = WordReader(text)
    reader.expect("EXPLAIN")
    for word in ("LOGICAL", "FORMATTED", "EXTENDED", "CODEGEN", "COST"):
        reader.takes(word)
    return text[reader.place :]


class _Runner(JavaObject):
    """What runs a statement when Spark runs its command."""

    def __init__(self, machine: Machine, run: Run) -> None:
        self.machine = machine
        self._run = run

    @answers()
    def executeCommand(self, command: str, options: object) -> Any:
        """Run the statement; the command has no rows."""
        del options
        self._run(command)
        return self.machine.texts([])

    def toString(self) -> str:
        """What plans show."""
        return "frazil"

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.spark.sql.connector.ExternalCommandRunner"]


def command(machine: Machine, run: Run, text: str) -> Any:
    """Return a command of Spark that runs a statement of a lake once, when it is executed."""
    execution = machine.jvm.org.apache.spark.sql.execution.command
    return execution.ExternalCommandExecutor(_Runner(machine, run), text, machine.empty_map())


def rows_of_call(machine: Machine, frame: Any) -> Any:
    """Return the rows of a CALL that has run, as those of a command of Spark's."""
    execution = frame._jdf.queryExecution()
    plan = execution.executedPlan()
    rows = machine.sequence(plan.executeCollect())
    return machine.catalyst.plans.logical.CommandResult(
        execution.analyzed().output(), execution.analyzed(), plan, rows
    )


def words_or_none(text: str) -> Sequence[Word]:
    """Return the words of a text; none where it cannot be read, as Spark says itself."""
    try:
        return words_of(text)
    except SqlSyntaxError:
        return ()
