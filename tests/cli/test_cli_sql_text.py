"""What the prompt knows without Spark: statements, completion, and how rows are shown."""

import re
import sys
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from click.testing import CliRunner
from rich.cells import cell_len
from told_terminal import told_terminal

from frazil.cli import main
from frazil.cli.app import Settings
from frazil.cli.layout import TextColumn
from frazil.cli.output import Output
from frazil.cli.sql.completion import SqlCompleter
from frazil.cli.sql.engine import Engine
from frazil.cli.sql.names import Names
from frazil.cli.sql.results import FirstRows, show_answer, sql_text
from frazil.cli.sql.statements import Statement, is_complete, statements_of
from programs import ended_program


def test_statements_of_a_text():
    found = list(statements_of("a; b ';' /* ; */ c;\n;d -- ;\n"))
    assert found == [Statement("a"), Statement("b ';' /* ; */ c"), Statement("d", 2)]
    assert list(statements_of("\na;\n\nb")) == [Statement("a", 2), Statement("b", 4)]
    # Words after which sqlglot's own tokenizer takes the rest for one text.
    texts = ["SHOW TABLES", "CALL system.x(a => '7')", "EXPLAIN SELECT id = ';'", "BEGIN", "SHOW x"]
    assert [each.text for each in statements_of("; ".join(texts))] == texts


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("select 1;", True), ("select 1; -- and", True), ("select 1", False), ("", False),
        ("select ';", False), ("select 1 /* ;", False), ("-- ;", False), ("select `;", False),
    ],
)  # fmt: skip
def test_a_text_is_whole_at_its_end(text, whole):
    assert is_complete(text) is whole


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """Names of a catalog with tables of odd names too."""
    place = str(tmp_path_factory.mktemp("names") / "lake")

    def run(*words):
        assert CliRunner().invoke(main, ["--warehouse", place, *words]).exit_code == 0

    run("create-namespace", "db")
    run("create", "db.trips", "id bigint, city string, `odd name` int")
    run("create", "db.tolls", "id bigint, price int")
    run("create", "db.`a b`", "x int")
    engine = Engine(Settings(None, {"warehouse": place}))
    engine.catalog.set_result(engine.settings.catalog())
    yield Names(engine)
    engine.catalog.result().close()


PROCEDURES = {"expire_snapshots": ["table", "older_than"], "rollback_to_tag": ["table", "tag"]}

COMPLETED = {
    "a namespace and tables": ("select * from d|", {"db", "db.trips", "db.tolls", "db.`a b`"}),
    "tables of a namespace": ("select * from db.t|", {"db.trips", "db.tolls"}),
    "after the catalog's name": ("select * from default.db.tr|", {"default.db.trips"}),
    "metadata tables": ("select * from db.trips.sna|", {"db.trips.snapshots"}),
    "columns": ("select ci| from db.trips", {"city"}),
    "columns of all tables": ("select p| from db.trips t join db.tolls using (id)", {"price"}),
    "columns of an alias": (
        "select t.| from db.trips as t join db.tolls o", {"t.id", "t.city", "t.`odd name`"}
    ),
    "an alias": ("select * from db.trips trip where tri|", {"trip"}),
    "columns of a change": ("update db.tolls set pri|", {"price"}),
    "a statement after another": ("select 1; select pr| from db.tolls", {"price"}),
    "a procedure": ("call exp|", set()),
    "a procedure of the system": ("call system.exp|", {"system.expire_snapshots"}),
    "arguments after a statement": (
        "show x; call system.rollback_to_tag(ta|", {"table => ", "tag => "}
    ),
    "an argument": ("call system.expire_snapshots(old|", {"older_than => "}),
    "a namespace": ("use d|", {"db"}),
    "in a text": ("select 'sel|", set()),
    "in a comment": ("select 1 /* sel|", set()),
    "no such table": ("select nop| from db.nope", set()),
}  # fmt: skip


@pytest.mark.parametrize("case", COMPLETED)
def test_completion_of_names(names, case):
    text, expected = COMPLETED[case]
    found = {name for name, meta in offers(names, text) if meta not in ("", "function")}
    assert found == expected


def test_completion_of_words(names):
    for text, word, is_there in (
        ("sel|", "select", True), ("SEL|", "SELECT", True), ("gro|", "group", False),
        ("select 1 gro|", "group", True), ("select coal|", "coalesce", True),
        ("select 'gro|", "group", False), ("select 1; sel|", "select", True),
        ("select * from coal|", "coalesce", False),
    ):  # fmt: skip
        assert (word in {name for name, _ in offers(names, text)}) is is_there, text


def offers(names, text):
    """What is offered where the mark stands."""
    before, _, after = text.partition("|")
    word = re.search(r"[\w.]*$", before)[0]
    completer = SqlCompleter(names, lambda: PROCEDURES)
    return list(completer.offers(before[: len(before) - len(word)], before + after, word))


def test_names_of_the_current_namespace(names):
    names.current = ("db",)
    try:
        completer = SqlCompleter(names, dict)
        assert ("trips", "table") in completer.offers("select * from ", "", "tr")
        assert "city" in names.columns(("trips",))
    finally:
        names.current = ()


COLUMNS = (TextColumn("id", "number"), TextColumn("city", "text"), TextColumn("at"))
ROWS = (
    (7, "Oslo", datetime(2024, 1, 1, tzinfo=UTC)),
    (1234, None, None),
    (-1, "x" * 300 + "\x1b[31m", None),
)


@pytest.fixture
def shown(monkeypatch):
    """What a terminal of a width shows of an answer, without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS", raising=False)

    def show(answer, width):
        def work(stream):
            before, sys.stdout = sys.stdout, stream
            try:
                show_answer(Output(), answer)
            finally:
                sys.stdout = before

        text = told_terminal(work, width=width)
        for code in ("\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[2;3m", "\x1b[0m"):
            text = text.replace(code, "")
        return [line.rstrip() for line in text.replace("\r\n", "\n").splitlines()]

    return show


def test_a_table_fits_the_screen(shown):
    lines = shown(FirstRows(COLUMNS, ROWS), 60)
    assert max(map(cell_len, lines)) <= 60
    heading, first, second, third = lines
    assert heading.split() == ["id", "city", "at"]
    assert first.split() == ["7", "Oslo", "2024-01-01", "00:00:00.000Z"]
    assert second.split() == ["1234", "NULL", "NULL"]
    assert third.split()[1].endswith("x…")
    # Numbers stand at the right.
    assert first.index("7") == second.index("4")


def test_a_row_that_is_too_wide_takes_several_lines(shown):
    columns = tuple(TextColumn(f"column_{number}", "number") for number in range(20))
    row = tuple(10**12 + number for number in range(20))
    lines = shown(FirstRows(columns, (row, row)), 80)
    assert max(map(cell_len, lines)) <= 80
    assert sum(line.split() == ["column_19", str(10**12 + 19)] for line in lines) == 2


def test_values_as_sql_says_them():
    assert sql_text([None, True, {"a": Decimal("1E+3")}]) == "[NULL, true, {a: 1000}]"
    assert sql_text(b"\x01") == "01"


def test_a_spark_that_does_not_start_is_one_line(tmp_path):
    place, java = str(tmp_path / "lake"), tmp_path / "home" / "bin" / "java"
    assert CliRunner().invoke(main, ["--warehouse", place, "create-namespace", "db"]).exit_code == 0
    java.parent.mkdir(parents=True)
    java.write_text(
        "#!/bin/sh\n"
        "case $1 in\n"
        f"    -Xshow*) echo java.specification.version = 17; echo java.home = {tmp_path}/home ;;\n"
        "    *) echo no memory is left >&2; exit 1 ;;\n"
        "esac\n"
    )
    java.chmod(0o700)
    words = ["--warehouse", place, "sql", "SELECT 1"]
    home = {"JAVA_HOME": str(java.parent.parent)}
    told = ended_program("frazil.cli", *words, code=1, variables=home)
    assert told.printed == ""
    [line] = told.errors
    assert line.startswith("Error: Spark did not start: ")
    assert "no memory is left" in line
