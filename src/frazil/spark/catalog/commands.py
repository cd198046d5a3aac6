"""Statements of a lake as commands of Spark, which runs each where it is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import DataFrame

from frazil.errors import SqlSyntaxError
from frazil.spark.attached.names import SessionNames
from frazil.spark.lake_transaction.statements import controls
from frazil.spark.plans.machine import ANY, FUNCTION, JavaObject, Machine, answers
from frazil.spark.sql.parsers.identifiers import says_names
from frazil.spark.sql.statements.listing import StatementKind, kind_of_statement
from frazil.spark.words import Word, words_of

Run = Callable[[str], DataFrame]
"""Runs a statement on the lakes of a session."""


def kind_of(names: SessionNames, text: str, words: Sequence[Word]) -> StatementKind:
    """Return what a statement becomes, by its first words."""
    if controls(text):
        return StatementKind.CHANGE
    if not words or (names.first_in(words) is None and not says_names(words)):
        return StatementKind.SPARKS
    return kind_of_statement(text, words)


def is_of_pipelines(words: Sequence[Word]) -> bool:
    """Whether a statement defines what a declarative pipeline makes, whose names it resolves."""
    keys = [word.keyword for word in words[:4] if word.keyword not in ("OR", "REFRESH")]
    return keys[:1] == ["CREATE"] and keys[1:2] in (["MATERIALIZED"], ["STREAMING"], ["FLOW"])


class _Run(JavaObject):
    """What runs a statement when Spark runs its command."""

    def __init__(self, machine: Machine, run: Run) -> None:
        self.machine = machine
        self._run = run

    @answers(ANY)
    def call(self, command: str, options: object) -> Any:
        """Run the statement; the command has no rows."""
        del options
        self._run(command)
        return self.machine.texts([])

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [FUNCTION]


def command(machine: Machine, run: Run, text: str) -> Any:
    """Return a command of Spark that runs a statement of a lake once, when it is executed."""
    runner = machine.command_runner(_Run(machine, run))
    execution = machine.jvm.org.apache.spark.sql.execution.command
    return execution.ExternalCommandExecutor(runner, text, machine.empty_map())


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
