"""Files of statements and what must come of them.

A case is a line with its kind, lines that tell more of it, and a statement. An empty line ends it,
and ``--`` begins a comment. The kinds:

``ok``
    the statement runs.
``rows``
    its rows stand below a line of four dashes, values between bars; without ``ordered`` in any
    order. After the dashes the names and types of the columns can stand.
``error Kind words``
    it is refused with this class and these words, and changes nothing. After the dashes stands how
    Java refuses it.
``let name``
    the first value of its rows stands for ``${name}`` in the statements below.
``java``
    a statement for the Java runtime alone, which brings its table to the state of Frazil's.

The lines that tell more:

``apart Location, Owner``
    rows that begin with these values are not looked at: what they say is another one at each run.
``args [1, "x"]``
    values of the statement's parameters, as JSON: a list, or an object with names.
``differs why``
    Frazil's answer is not the Java runtime's, on purpose. The rows are written by hand.
``skips why``
    the Java runtime is not asked. The rows are written by hand.

Dates and times are those of UTC.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from frazil.errors import FrazilError

CASES = Path(__file__).parent / "cases"
RECORDED = Path(__file__).parent / "recorded"
KINDS = "kinds.test"
"""The file of `RECORDED` with one statement of each kind, which every face runs."""
FILES = sorted(path.name for path in RECORDED.glob("*.test") if path.name != KINDS)
"""The other ones."""
_TELLS_MORE = ("apart", "args", "differs", "skips")
_MISSING = "UNRESOLVED_COLUMN"
MISTAKES = (
    "INSERT_COLUMN_ARITY_MISMATCH",
    "INVALID_PARTITION_OPERATION",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE",
    "PARSE_SYNTAX_ERROR",
    _MISSING,
    "UNSUPPORTED_FEATURE.TABLE_OPERATION",
)
"""Conditions of Java's errors whose class and condition Frazil's have too."""
_SMALL = -6
"""A number whose first digit stands so far behind the point is written with an exponent."""


@dataclass(frozen=True)
class Case:
    """One statement.

    Attributes:
        kind: ``ok``, ``rows``, ``error``, ``let`` or ``java``.
        said: what follows it in its line.
        statement: the text.
        rows: the rows expected, as text.
        columns: the names and types of the columns, or how Java refuses; None where it is not said.
        args: values of parameters.
        apart: what rows begin with that are not looked at.
        differs: why Java's answer is another one.
        skips: why Java is not asked.
        line: the number of its first line.
    """

    kind: str
    said: str
    statement: str
    rows: tuple[str, ...] = ()
    columns: str | None = None
    args: Any = None
    apart: str | None = None
    differs: str | None = None
    skips: str | None = None
    line: int = 0

    def texts(self, rows) -> list[str]:
        """Rows as the files have them, less those that are not looked at."""
        apart = [] if self.apart is None else self.apart.split(", ")
        return [each for each in as_text(rows) if each.partition("|")[0] not in apart]


@dataclass
class Block:
    """The lines between two empty ones."""

    first: int
    lines: list[str] = field(default_factory=list)

    def case(self) -> Case | None:
        """What the lines say; None where they are comments alone."""
        lines = [each for each in self.lines if each.startswith("----") or each[:2] != "--"]
        if not lines:
            return None
        kind, _, said = lines[0].partition(" ")
        at, more = 1, {}
        while at < len(lines) and lines[at].partition(" ")[0] in _TELLS_MORE:
            word, _, rest = lines[at].partition(" ")
            more[word] = json.loads(rest) if word == "args" else rest
            at += 1
        dashes = [i for i, line in enumerate(lines) if line.startswith("----")]
        end = dashes[0] if dashes else len(lines)
        columns = lines[end][4:].strip() if dashes else ""
        return Case(
            kind,
            said.strip(),
            "\n".join(lines[at:end]),
            tuple(line.strip() for line in lines[end + 1 :]),
            columns or None,
            line=self.first,
            **more,
        )


def blocks_of(text: str) -> list[Block]:
    """The blocks of a file's text, in order."""
    blocks = [Block(1)]
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            if not blocks[-1].lines:
                blocks[-1].first = number
            blocks[-1].lines.append(line)
        elif blocks[-1].lines:
            blocks.append(Block(number))
    return [each for each in blocks if each.lines]


def cases_of(name: str, folder: Path = CASES) -> list[Case]:
    """The cases of a file, in order: each builds on those before."""
    cases = [each.case() for each in blocks_of((folder / name).read_text())]
    return [each for each in cases if each is not None]


@dataclass
class Player:
    """Runs the cases of a file by one way to run SQL.

    Attributes:
        sql: runs a statement with its parameters.
        tells: whether the classes of errors are those that the files name; a session of Spark and
            a parser of another kind have their own.
        columns: tells the names and types of columns; None where the way has none.
        state: what must be the same after a refusal.
        asks_spark: whether Spark says which columns of a change are not there; a server of others
            is not asked.
        known: values by the names that ``let`` gives.
        raised: the last refusal.
    """

    sql: Callable[[str, Any], Any]
    tells: bool = True
    columns: Callable[[Any], str] | None = lambda found: columns_of(found)
    state: Callable[[], object] = lambda: None
    asks_spark: bool = True
    known: dict[str, str] = field(default_factory=dict)
    raised: Exception | None = None

    def play(self, case: Case, where: str) -> None:
        """Run a case, and check what comes of it.

        Raises:
            AssertionError: it is not what the file says.
        """
        where = f"{where}:{case.line}: {case.statement}"
        if case.kind == "java":
            return
        if case.kind == "error":
            self._refused(case, where)
            return
        try:
            found = self.sql(self.text(case), case.args)
            rows = found.collect()
        except Exception as error:
            raise AssertionError(f"{where}\n{type(error).__name__}: {error}") from error
        if case.kind == "let":
            assert rows, (where, "no rows")
            self.known[case.said] = str(rows[0][0])
        if case.kind != "rows":
            return
        shown, expected = case.texts(rows), list(case.rows)
        if case.said != "ordered":
            shown, expected = sorted(shown), sorted(expected)
        assert shown == expected, (where, shown)
        if case.columns is not None and self.columns is not None:
            assert self.columns(found) == case.columns, (where, self.columns(found))

    def text(self, case: Case) -> str:
        """The statement with the values that are known."""
        text = case.statement
        for name, value in self.known.items():
            text = text.replace(f"${{{name}}}", value)
        return text

    def _refused(self, case: Case, where: str) -> None:
        before = self.state()
        self.raised = None
        said = self._said(case)
        assert said is not None, (where, "ran")
        if self.tells:
            kind, _, words = case.said.partition(" ")
            assert said.startswith(f"{kind}: "), (where, said)
            assert words in said, (where, said)
        missing = self._not_sparks(case)
        assert missing is None, (where, said, missing)
        assert self.state() == before, (where, "changed something")

    def _not_sparks(self, case: Case) -> str | None:
        """What an error is not that Spark's is, where the mistake is in the user's words."""
        kind, _, condition = (case.columns or "").partition(" ")
        mistakes = MISTAKES if self.asks_spark else [m for m in MISTAKES if m != _MISSING]
        if self.raised is None or case.differs or not condition.startswith(tuple(mistakes)):
            return None
        if kind not in [each.__name__ for each in type(self.raised).__mro__]:
            return kind
        own = getattr(self.raised, "getCondition", lambda: None)()
        same = (own or "").partition(".")[0] == condition.partition(".")[0]
        return None if same else f"{condition}, {own}"

    def _said(self, case: Case) -> str | None:
        """The class and the words of a refusal; None where there is none."""
        try:
            found = self.sql(self.text(case), case.args)
        except (FrazilError, PySparkException) as error:
            self.raised = error
            said = f"{type(error).__name__}: {error}"
            assert "frazil_" not in said.replace("_frazil_", ""), said
            return said
        except Py4JJavaError as error:
            return _of_machine(error)
        try:
            found.collect()
        except (FrazilError, PySparkException) as error:
            self.raised = error
            return f"{type(error).__name__}: {error}"
        except Py4JJavaError as error:
            return _of_machine(error)
        return None


def _of_machine(error: Py4JJavaError) -> str:
    """The class and the words of an error that PySpark has no class of its own for."""
    cause = error.java_exception
    return f"{cause.getClass().getSimpleName()}: {cause.getMessage()}"


def failures_of(name: str, player: Player, folder: Path = RECORDED) -> list[str]:
    """What does not come of a file's statements as it says, all of it."""
    failures = []
    for case in cases_of(name, folder):
        try:
            player.play(case, name)
        except AssertionError as error:
            failures.append(str(error))
    return failures


def is_recorded(name: str) -> bool:
    """Whether every statement of a file that has rows has them."""
    return all(case.columns is not None for case in cases_of(name, RECORDED) if case.kind == "rows")


def state_of(lake: Any) -> object:
    """What a lake holds: its namespaces, and the metadata file of each table and view."""
    catalog = lake.catalog
    found: dict[Any, object] = {}
    names = list(catalog.list_namespaces())
    while names:
        name = names.pop()
        names += catalog.list_namespaces(name)
        found[name] = catalog.load_namespace_properties(name)
        for table in catalog.list_tables(name):
            found[table] = catalog.metadata_location(table)
        for view in catalog.list_views(name):
            found[view] = catalog.load_view(view).metadata_location
    return found


def columns_of(found: Any) -> str:
    """The names and types of a DataFrame's columns."""
    return ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in found.schema)


def as_text(rows) -> list[str]:
    """Rows as the files have them."""
    return ["|".join(_value(value) for value in row) for row in rows]


def _value(value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(_value(each) for each in value) + "]"
    if isinstance(value, dict):
        pairs = sorted(f"{_value(key)}:{_value(each)}" for key, each in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, tuple):
        return "{" + ",".join(_value(each) for each in value) + "}"
    if isinstance(value, (bytes, bytearray)):
        return "x" + bytes(value).hex()
    if isinstance(value, Decimal) and value and value.adjusted() < _SMALL:
        # Over Connect a small number comes without the zeros at its end.
        return str(value.normalize())
    return str(value).replace("\n", "\\n")
