"""Each kind of statement by each face that statements come in by: one set of cases for all.

The cases are `kinds.test`, with the answers of the Java runtime. A face that cannot run a kind
says so with an error; then the statement runs by `lake.sql`, so that those after it find the same.
`scripts/cells.py --faces` writes the page of faces from what these cases note.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from jdbc_client import Driver
from sql_cases import KINDS, RECORDED, Player, cases_of, columns_of

import frazil
from frazil.cli import main
from programs import run_program
from run_recorder import RECORD
from run_seams import kind_of_statement

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "sql.md"
TRANSACTION = ("BEGIN", "COMMIT", "ROLLBACK")
OF_NO_SPARK = {key: None for key in os.environ if key.startswith(("SPARK_", "PYSPARK_"))}


# -- how names are spelled -------------------------------------------------------------------------

_QUOTED = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|`[^`]*`)")


def _respelled(pattern: str, by: str, text: str) -> str:
    """A statement whose names are others; texts and names in quotes stay."""
    parts = _QUOTED.split(text)
    parts[::2] = [re.sub(pattern, by, part) for part in parts[::2]]
    return "".join(parts)


def in_full(text: str) -> str:
    """A statement whose names begin with the lake's."""
    return _respelled(r"(?<![\w.])(db2?|second|system)(?=[.\s]|$)", r"lake.\1", text)


def in_short(text: str) -> str:
    """A statement whose names of tables are of one part."""
    return _respelled(r"(?<![\w.])db\.", "", text)


# -- faces -----------------------------------------------------------------------------------------


@dataclass
class Places:
    """What faces are made of.

    Attributes:
        asked: gives a fixture.
        folder: of this test alone.
        cases: the statements that will be run, for a face that runs all of them at once.
    """

    asked: Callable[[str], Any]
    folder: Any
    cases: list[str]

    @property
    def spark(self) -> Any:
        """The session of these tests."""
        return self.asked("spark")

    @property
    def lake(self) -> Any:
        """An empty lake with the namespace `db`."""
        return self.asked("lake")


@dataclass(frozen=True)
class Face:
    """A way by which statements come in.

    Attributes:
        name: its column on the page of faces.
        opened: gives what runs a statement.
        refuses: by the beginning of a statement, the words of the error that it ends in.
        has_columns: whether its answers have names and types of columns.
    """

    name: str
    opened: Callable[[Places], Any]
    refuses: Mapping[str, str] = field(default_factory=dict)
    has_columns: bool = True

    def refusal_of(self, text: str) -> str | None:
        """The words of the error that a statement ends in; None where it runs."""
        found = (words for begin, words in self.refuses.items() if text.startswith(begin))
        return next(found, None)


@contextmanager
def by_lake(places: Places) -> Iterator[Any]:
    """`lake.sql`."""
    yield places.lake.sql


@contextmanager
def _attached(places: Places, *statements: str) -> Iterator[Any]:
    """`spark.sql` of a session that has said some statements."""
    places.lake.attach(name="lake")
    try:
        for each in statements:
            places.spark.sql(each)
        yield places.spark.sql
    finally:
        places.spark.sql("USE spark_catalog.default")
        places.lake.detach()


@contextmanager
def without_use(places: Places) -> Iterator[Any]:
    """An attached session that never said USE."""
    with _attached(places) as sql:
        yield lambda text: sql(in_full(text))


@contextmanager
def use_of_lake(places: Places) -> Iterator[Any]:
    """An attached session that said USE lake."""
    with _attached(places, "USE lake") as sql:
        yield sql


@contextmanager
def use_of_namespace(places: Places) -> Iterator[Any]:
    """An attached session that said USE lake.db."""
    with _attached(places, "USE lake.db") as sql:
        yield lambda text: sql(in_short(text))


@contextmanager
def two_lakes(places: Places) -> Iterator[Any]:
    """An attached session that uses another lake; a transaction is one of the lake in use."""
    with frazil.connect(places.spark, warehouse=str(places.folder / "other")) as other:
        other.create_namespace("db")
        other.attach(name="other")
        with _attached(places, "USE other.db") as sql:

            def run(text: str) -> Any:
                kind = kind_of_statement(text)
                if kind == "BEGIN":
                    sql("USE lake")
                found = sql(in_full(text))
                if kind in ("COMMIT", "ROLLBACK"):
                    sql("USE other.db")
                return found

            yield run
        other.detach()


@contextmanager
def in_transaction(places: Places) -> Iterator[Any]:
    """An attached session each of whose statements is a transaction."""
    with _attached(places, "USE lake") as sql:
        is_open = False

        def run(text: str) -> Any:
            nonlocal is_open
            kind = kind_of_statement(text)
            if is_open or kind in TRANSACTION:
                is_open = kind not in ("COMMIT", "ROLLBACK")
                return sql(text)
            sql("BEGIN")
            try:
                found = sql(text)
                rows = found.collect()
            except BaseException:
                sql("ROLLBACK")
                raise
            sql("COMMIT")
            return SimpleNamespace(collect=lambda: rows, schema=found.schema)

        yield run


@contextmanager
def immediate(places: Places) -> Iterator[Any]:
    """EXECUTE IMMEDIATE of an attached session."""
    with _attached(places) as sql:

        def run(text: str) -> Any:
            quoted = in_full(text).replace("\\", "\\\\").replace("'", "\\'")
            return sql(f"EXECUTE IMMEDIATE '{quoted}'")

        yield run


@contextmanager
def command_line(places: Places) -> Iterator[Any]:
    """`frazil sql` of a file with all statements."""
    file = places.folder / "kinds.sql"
    file.write_text(";\n".join(places.cases))
    words = ("--catalog", "lake", "sql", "--json", "--file", str(file))
    assert places.lake.namespace_exists("db")
    variables = {"FRAZIL_CATALOG__LAKE__WAREHOUSE": str(places.folder / "lake")}
    said = CliRunner().invoke(main, words, env=variables)
    assert said.exit_code == 0, said.output
    answers = _answers(said.stdout)

    def run(text: str) -> Any:
        first = text.split()[0]
        return Answer(next(answers) if first in _ANSWERED else [])

    yield run


_ANSWERED = ("SELECT", "WITH", "EXPLAIN", "DESCRIBE", "SHOW", "CALL", "SET")


def _answers(text: str) -> Iterator[list[Any]]:
    """The rows of each list of JSON in a text."""
    read = json.JSONDecoder().raw_decode
    while text := text.lstrip():
        found, end = read(text)
        yield [tuple(row.values()) for row in found]
        text = text[end:]


@dataclass
class Answer:
    """An answer that has come: rows, or the words of an error."""

    rows: list[Any]
    error: str | None = None

    def collect(self) -> list[Any]:
        """Return its rows.

        Raises:
            RuntimeError: it is an error.
        """
        if self.error is not None:
            raise RuntimeError(self.error)
        return self.rows


def _client(places: Places, port: object, steps: list[str], *more: object) -> Iterator[Answer]:
    """The answers of a client of Spark Connect that has all statements as steps."""
    file = places.folder / "steps.json"
    file.write_text(json.dumps(steps))
    variables = {} if more else OF_NO_SPARK
    client = places.asked("client")
    said = run_program(client, port, file, *more, cwd=places.folder, variables=variables)
    for line in said.splitlines():
        found = json.loads(line)
        if isinstance(found, dict):
            yield Answer([], f"{found['error']}: {found['text']}")
        else:
            yield Answer(found)


@contextmanager
def attached_over_connect(places: Places) -> Iterator[Any]:
    """A session attached over Spark Connect, where the server has no Frazil."""
    port = places.asked("connect_url").rpartition(":")[2]
    steps = [in_full(text) for text in places.cases]
    answers = _client(places, port, steps, places.folder / "lake")
    yield lambda text: next(answers)


@dataclass(frozen=True)
class _Room:
    """A namespace of its own at a server that others ask too; answers call it `db`."""

    name: str

    def spelled(self, text: str) -> str:
        """A statement about it."""
        named = re.sub(r"lake\.db\b", f"lake.{self.name}", in_full(text))
        return named.replace("'db.", f"'{self.name}.")

    def steps(self, text: str) -> list[str]:
        """What a client says: a transaction is one of the lake in use."""
        before = ["USE lake"] if kind_of_statement(text) == "BEGIN" else []
        return [*before, self.spelled(text)]

    def answer(self, found: Answer) -> Answer:
        """What is answered, of `db`."""
        rows = [["db" if v == self.name else v for v in row] for row in found.rows]
        return Answer(rows, found.error)


@contextmanager
def client_of_server(places: Places) -> Iterator[Any]:
    """A client of Spark Connect without Frazil."""
    room = _Room("kinds_of_connect")
    steps = [step for text in ("CREATE NAMESPACE db", *places.cases) for step in room.steps(text)]
    answers = _client(places, places.asked("served").connect, steps)
    next(answers)
    yield lambda text: room.answer([next(answers) for _ in room.steps(text)][-1])


@contextmanager
def jdbc(places: Places) -> Iterator[Any]:
    """Hive's driver of JDBC."""
    room = _Room("kinds_of_jdbc")
    driver = Driver(places.spark._jvm, places.asked("served").thrift)
    try:
        driver.run(room.spelled("CREATE NAMESPACE db"))
        yield lambda text: room.answer(Answer([driver.run(s) for s in room.steps(text)][-1]))
    finally:
        driver.connection.close()


NOT_IN_A_TRANSACTION = {
    "CREATE NAMESPACE": "a transaction cannot make namespaces",
    "ALTER NAMESPACE": "a transaction cannot change properties of namespaces",
    "COMMENT ON NAMESPACE": "a transaction cannot change properties of namespaces",
    "DROP NAMESPACE": "a transaction cannot drop namespaces",
    "ALTER TABLE db.u RENAME TO": "a transaction cannot rename tables",
    "DROP TABLE": "a transaction cannot drop tables",
    "CREATE VIEW": "a transaction cannot make views",
    "CREATE OR REPLACE VIEW": "a transaction cannot (make|change) views",
    "ALTER VIEW db.v RENAME TO": "a transaction cannot rename views",
    "ALTER VIEW": "a transaction cannot change views",
    "DROP VIEW db.": "a transaction cannot drop views",
    "CALL": "a transaction cannot hold a CALL",
    "CACHE LAZY TABLE": "a transaction cannot keep the rows",
}

FACES = [
    Face("lake.sql", by_lake),
    Face("spark.sql", without_use),
    Face("USE lake", use_of_lake),
    Face("USE lake.db", use_of_namespace),
    Face("two lakes", two_lakes),
    Face("transaction", in_transaction, refuses=NOT_IN_A_TRANSACTION),
    Face("EXECUTE IMMEDIATE", immediate),
    Face("command line", command_line, has_columns=False),
    Face("Connect", attached_over_connect, has_columns=False),
    Face("client of Connect", client_of_server, has_columns=False),
    Face("JDBC", jdbc, has_columns=False),
]
_CIRCLES = {
    "spark.sql": (),
    "lake.sql": pytest.mark.soak,
}
"""Of faces that are not in `make check`: the command line runs by `lake.sql` what it is given."""


@pytest.fixture
def lake_settings(lake_settings):
    """A lake named `lake`, as statements call it."""
    return {**lake_settings, "name": "lake"}


# -- the cases -------------------------------------------------------------------------------------


def test_there_is_a_case_of_each_kind():
    """Of the statements that the page of SQL has."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    told = {
        kind_of_statement(text) for block in blocks for text in block.split(";") if text.strip()
    }
    assert told - {kind_of_statement(case.statement) for case in cases_of(KINDS, RECORDED)} == set()


@pytest.mark.parametrize(
    "face",
    [
        pytest.param(face, marks=_CIRCLES.get(face.name, pytest.mark.check), id=face.name)
        for face in FACES
    ],
)
def test_each_kind(request, tmp_path, face):
    """Each statement is answered as the Java runtime answers it, or refused as the page says."""
    player = Player(None, known={"place": str(tmp_path / "moved")})
    player.columns = columns_of if face.has_columns else None
    cases = cases_of(KINDS, RECORDED)
    places = Places(request.getfixturevalue, tmp_path, [player.text(case) for case in cases])
    failures = []
    with face.opened(places) as run:
        for case in cases:
            kind = kind_of_statement(case.statement)
            words = face.refusal_of(case.statement)
            player.sql = (lambda text, args: run(text)) if words is None else _by_lake(places)
            try:
                if words is not None:
                    _refused(run, player.text(case), words)
                player.play(case, face.name)
            except AssertionError as error:
                failures.append(str(error))
            else:
                mode = "" if words is None else "refused"
                RECORD.note({"kind": "statement", "name": kind, "mode": mode, "face": face.name})
    assert failures == []


def _by_lake(places: Places) -> Callable[[str, Any], Any]:
    return lambda text, args: places.lake.sql(text, args)


def _refused(run: Callable[[str], Any], text: str, words: str) -> None:
    with pytest.raises(Exception, match=words):
        run(text).collect()
