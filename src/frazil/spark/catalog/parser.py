"""Spark's parser with the tables of lakes in the plans that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import PySparkException

from frazil.errors import NoSuchTableError
from frazil.spark.attached.names import SessionNames, context_of
from frazil.spark.catalog.commands import (
    command,
    is_of_pipelines,
    kind_of,
    rows_of_call,
    words_or_none,
)
from frazil.spark.catalog.own_statements import own_statements, parses_own_statement
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.queries import ROWS, NamedRows, plan_with_rows
from frazil.spark.catalog.thrift.lists import LIST, list_rows
from frazil.spark.lake_transaction.statements import controls
from frazil.spark.plans.machine import (
    JavaObject,
    Machine,
    analysed_plan,
    answers,
    elements,
    holding_answers,
)
from frazil.spark.plans.relations import unresolved_names, written_names
from frazil.spark.sql.context import NamedTable
from frazil.spark.sql.errors.mistakes import is_unknown_column, mistaken_plan
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.parsers.identifiers import is_script, may_say_names, with_identifiers
from frazil.spark.sql.statements.listing import StatementKind
from frazil.spark.words import Word, begins_query

_SCRIPT: Final = "CompoundBody"
_SPARKS_WORDS: Final = frozenset({"DELETE", "INSERT", "MERGE", "UPDATE"})
"""Statements begin with these that Spark reads as Frazil does."""

_NEWER_WORDS: Final = frozenset({"EVOLUTION", "OF", "REPLACE"})
"""What Frazil reads in them and not every Spark: `OF` of a version that rows come from."""

_OF_FUNCTIONS: Final = "SQLFunction"
"""What the methods of Spark are called that have the body of a function parsed."""


class LakeParser(JavaObject):
    """Spark's parser, with the tables of lakes in the plans that it makes.

    What a text is not of any lake goes to Spark's own, and what it makes goes back as it is.
    """

    def __init__(
        self, machine: Machine, theirs: Any, place: Callable[[], SessionPlace | None]
    ) -> None:
        self.machine = machine
        self._theirs = theirs
        self._place = place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "Java":
            raise AttributeError(name)
        return _Passed(self, getattr(self._theirs, name))

    @answers("ParseException")
    def parsePlan(self, text: str) -> Any:
        """Return the plan of a statement."""
        theirs = self._theirs.parsePlan
        return self._parse(text, None, lambda: theirs(text), is_users=self._is_users)

    @answers("ParseException")
    def parseQuery(self, text: str) -> Any:
        """Return the plan of a query."""
        return self._parse(text, None, lambda: self._theirs.parseQuery(text), is_users=_no)

    @answers("ParseException")
    def parsePlanWithParameters(self, text: str, values: Any) -> Any:
        """Return the plan of a statement with values in it."""
        theirs = self._theirs.parsePlanWithParameters
        return self._parse(text, values, lambda: theirs(text, values), is_users=_yes)

    @answers("ParseException")
    def parseMultipartIdentifier(self, text: str) -> Any:
        """Return the parts of a name; the session has its catalogs when one is looked for."""
        self._place()
        return self._theirs.parseMultipartIdentifier(text)

    def _is_users(self) -> bool:
        """Whether a text is a statement of the user's, and not the body of a function."""
        here = self.machine.jvm.java.lang.Throwable()
        return _OF_FUNCTIONS not in str(
            self.machine.jvm.org.apache.spark.util.Utils.exceptionString(here)
        )

    def _parse(
        self,
        text: str,
        values: Any,
        theirs: Callable[[], Any],
        *,
        is_users: Callable[[], bool],
    ) -> Any:
        """The plan of a text.

        Args:
            is_users: whether it is a statement of the user's; else it may be that of a view or a
                function, whose names of one part are those of where it was made, as Spark knows.
        """
        if text.startswith(ROWS):
            return self._rows(text)
        place = self._place()
        if place is None:
            return theirs()
        if text.startswith(LIST):
            with own_statements(place.spark):
                return analysed_plan(list_rows(place, text))
        names = place.names_now()
        says_names = may_say_names(text)
        if not (names.may_be_in(text) or says_names or controls(text)) or parses_own_statement(
            place.spark
        ):
            return theirs()
        words = words_or_none(text)
        if is_of_pipelines(words):
            return theirs()
        whole = is_users()
        if says_names and whole and not is_script(words):
            with own_statements(place.spark):
                named = with_identifiers(place.spark, self._with_values(text, values))[0]
            if not names.may_be_in(named):
                return theirs()
            if not may_say_names(named):
                plain = self._theirs.parsePlan
                return self._parse(named, None, lambda: plain(named), is_users=_yes)
        kind = kind_of(names, text, words)
        if kind is StatementKind.SPARKS and names.first_in(words) is None and not says_names:
            # A name within a text, as EXECUTE IMMEDIATE has it, is parsed when that is.
            return theirs()
        with own_statements(place.spark):
            plan = _plan_by_spark(theirs, kind, words)
            text = self._with_values(text, values)
            if kind is StatementKind.CHANGE:
                mistaken = self._mistaken_plan(names, place, plan, text)
                return mistaken or command(self.machine, place.run, text)
            if kind is StatementKind.CALL:
                return rows_of_call(self.machine, place.run(text))
            # Functions of a lake are found in the text alone.
            calls = begins_query(words) and may_call(words)
            if kind is StatementKind.SHOWN or calls:
                frame: Any = place.run(text)
                return frame._jdf.queryExecution().logical()
            return self._with_rows(place, plan, text, whole=whole)

    def _mistaken_plan(self, names: SessionNames, place: SessionPlace, plan: Any, text: str) -> Any:
        """What Spark refuses by itself of a statement that names no such column; else None.

        The table that a statement changes has to be there, as for Spark's analysis. Spark is asked
        where the plan names what is no column of it.

        Raises:
            Py4JJavaError: of Spark, there is no such table.
        """
        said = "" if plan is None else str(plan.toString())
        for parts in written_names(said):
            meant = names.lake_and_name(parts)
            if meant is None:
                continue
            context = context_of(names, place.spark, names.lake_to_read(meant[0].name))
            try:
                found = context.find(parts)
            except NoSuchTableError as error:
                raise self.machine.not_found((meant[0].name, *meant[1])) from error
            if isinstance(found, NamedTable):
                own = {each.name.lower() for each in found.table.metadata.schema.fields}
                if any(own.isdisjoint(each) for each in unresolved_names(said)):
                    mistaken = mistaken_plan(context, text)
                    if mistaken is not None and is_unknown_column(mistaken[1]):
                        return mistaken[0]
        return None

    def _rows(self, text: str) -> Any:
        place = self._place()
        if place is None:
            raise RuntimeError("the session has no lake")
        with own_statements(place.spark):
            return analysed_plan(NamedRows.of(text).frame(place.names_now(), place.spark))

    def _with_rows(self, place: SessionPlace, plan: Any, text: str, *, whole: bool) -> Any:
        kind = plan.getClass().getSimpleName()
        if kind == _SCRIPT:
            # Tables are read when a statement runs, after those before it: by the catalog.
            changes = changes_in_script(self.machine, place, plan)
            return plan.transformDown(self.machine.mapping(changes)) if changes else plan
        return plan_with_rows(place, plan, text, whole=whole)

    def _with_values(self, text: str, values: Any) -> str:
        if values is None:
            return text
        handler = self.machine.catalyst.parser.ParameterHandler
        return str(handler.substituteParameters(text, values).productElement(0))

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.spark.sql.catalyst.parser.ParserInterface"]


def _yes() -> bool:
    return True


def _no() -> bool:
    return False


def _plan_by_spark(theirs: Callable[[], Any], kind: StatementKind, words: Sequence[Word]) -> Any:
    """Spark's own plan; None where its parser does not know the words of a lake's statement.

    Raises:
        ParseException: of Spark, where it knows all words that such a statement can have.
    """
    try:
        return theirs()
    except PySparkException:
        keys = {word.keyword for word in words}
        if kind is StatementKind.SPARKS or (
            words[0].keyword in _SPARKS_WORDS and not keys & _NEWER_WORDS
        ):
            raise
        return None


class _Passed:
    """A method of Spark's own parser."""

    def __init__(self, parser: LakeParser, method: Any) -> None:
        self.machine = parser.machine
        self._method = method

    @holding_answers
    @answers("ParseException")
    def __call__(self, *args: Any) -> Any:
        return self._method(*args)


def changes_in_script(machine: Machine, place: SessionPlace, plan: Any) -> list[tuple[Any, Any]]:
    """Return the statements of a script that change a lake, with commands in their places."""
    names = place.names_now()
    found = []
    for statement in _statements(plan):
        text = _text(statement)
        if text is None or not (names.may_be_in(text) or may_say_names(text)):
            continue
        if kind_of(names, text, words_or_none(text)) in (StatementKind.CHANGE, StatementKind.CALL):
            changed = command(machine, place.run, text)
            found.append((statement, _in_its_place(machine, statement, changed)))
    return found


def _in_its_place(machine: Machine, statement: Any, plan: Any) -> Any:
    """A statement of a script with another plan, which says the same of where it stands."""
    origin = machine.catalyst.trees.CurrentOrigin
    before = origin.get()
    origin.set(statement.origin())
    try:
        return statement.copy(plan)
    finally:
        origin.set(before)


def _statements(plan: Any) -> Iterator[Any]:
    if plan.getClass().getSimpleName() == "SingleStatement":
        yield plan
        return
    for each in elements(plan.children()):
        yield from _statements(each)


def _text(statement: Any) -> str | None:
    """What of the script a statement is."""
    origin = statement.origin()
    text, start, stop = origin.sqlText(), origin.startIndex(), origin.stopIndex()
    if not (text.isDefined() and start.isDefined() and stop.isDefined()):
        return None
    return str(text.get())[start.get() : stop.get() + 1]
