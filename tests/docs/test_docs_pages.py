"""Every block of the README and of the pages runs, in order, on the table of docs/index.md.

A block of text below a block of code is what that prints; ids, times and sizes may differ. Where it
begins with the name of an error, the code raises it. Blocks that cannot run here say so.
"""

import contextlib
import inspect
import io
import re
import shlex
from itertools import takewhile
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner
from pages import DOCUMENTS, ROOT, blocks_of, masked
from test_docs_words import public_functions

from frazil.cli import main
from frazil.cli.sql.statements import statements_of
from programs import run_program

HERE = ROOT / "docs" / "index.md"
RUN = {"python", "console"}
OF_EACH_KIND = {
    ROOT / "README.md",
    *(ROOT / "docs" / "howto" / f"{name}.md" for name in ("attach", "cli")),
}
"""Pages that `make test` takes: Python and SQL, and a console."""
OTHERWISE_TESTED = {
    ROOT / "docs" / "howto" / f"{name}.md" for name in ("change-streams", "connect", "rows")
}
"""Dear pages: CI has their methods in `cdc`, in `spark_rows` and in the tests over Connect."""


def circle_of_page(page):
    """The circle of a page that `make test` leaves out."""
    return "soak" if page in OTHERWISE_TESTED else "check"


PAGES = [
    pytest.param(
        page,
        id=str(page.relative_to(ROOT)),
        marks=() if page in OF_EACH_KIND else getattr(pytest.mark, circle_of_page(page)),
    )
    for page in DOCUMENTS
    if any(block.language in RUN for block in blocks_of(page))
]
OTHER_PROGRAMS = {"echo", "pip", "make", "python", "spark-submit", "venv-pack"}
ERROR = re.compile(r"(\w+Error): (.*)", re.DOTALL)
SQL_PAGES = {"docs/howto/sql.md"}
"""Pages whose blocks of SQL are run on the lake; on others they are for other engines."""
IN_A_PROCESS = {"docs/howto/connect.md"}
"""Pages whose session is another: their blocks are one program, in a process of its own."""
REMOTE = "sc://localhost:15002"
DATABASE = "postgresql+psycopg://user:password@host/db"
SHOP = "postgresql://me@db/shop"
STORE_DATABASE = "postgresql+psycopg://lake:password@localhost:5432/lake"
STORE = "http://localhost:9000"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Puts what pages call /data or /tmp/lake into a folder; the home too."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("FRAZIL_HOME", str(home))

    def put(text):
        text = text.replace("/tmp/lake", str(tmp_path / "readme"))
        return re.sub(r"(?<!\w)/data/", f"{tmp_path}/data/", text)

    (tmp_path / "data").mkdir()
    return put


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run_in_order(page, spark, place, monkeypatch, request):
    name = str(page.relative_to(ROOT))
    blocks = [block for block in blocks_of(page) if not block.is_left_alone]
    if name in IN_A_PROCESS:
        run_in_a_process(blocks, place, request)
        return
    names = {}
    if page not in (HERE, ROOT / "README.md"):
        first = next(block for block in blocks_of(HERE) if block.language == "python")
        execute(first.text, first.line, HERE, names, place)
    if any(DATABASE in block.text for block in blocks):
        address = request.getfixturevalue("postgres").new_database(f"docs_{page.stem}")
        place = with_database(place, DATABASE, address)
    if any(STORE in block.text for block in blocks):
        address = request.getfixturevalue("postgres").new_database(f"docs_{page.stem}")
        store = request.getfixturevalue("s3")
        store.new_bucket("lake")
        place = with_database(place, STORE_DATABASE, address)
        place = with_database(place, STORE, store.properties["s3.endpoint"])
    if any(SHOP in block.text for block in blocks):
        address = shop_of(request.getfixturevalue("logical"))
        place = with_database(place, SHOP, address)
    settings = dict(spark.conf.getAll)
    for block in blocks:
        if block.language == "python":
            run_python(block, page, names, place)
        elif block.language == "console":
            run_console(block, page, place, monkeypatch)
        elif block.language == "sql" and name in SQL_PAGES:
            run_sql(block, page, names["lake"])
        elif block.language == "yaml" and block.text.startswith("# ~/"):
            # A file of settings, under the name of its first line; others are for other programs.
            write_file(block, place)
    left = {key: value for key, value in spark.conf.getAll.items() if key.startswith("spark.wap")}
    assert left == {}
    for key in set(spark.conf.getAll) - set(settings):
        if not key.startswith("spark.sql.parquet.fieldId"):
            spark.conf.unset(key)
    for query in spark.streams.active:
        query.stop()


def with_database(place, named, address):
    """Puts a database in the place of the one that pages name."""
    return lambda text: place(text.replace(named, address))


def shop_of(server):
    """A database with the trips that a page follows."""
    address = server.new_database("shop").replace("+psycopg", "")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("create table trips (id bigint primary key, city text)")
        connection.execute("insert into trips values (1, 'Oslo'), (2, 'Lima')")
    return address


def execute(text, line, page, names, place):
    """What the code prints; a traceback names the page's own lines."""
    code = compile("\n" * (line - 1) + place(text), str(page.relative_to(ROOT)), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def run_python(block, page, names, place):
    expected = None if block.printed is None else ERROR.match(block.printed)
    if expected is None:
        printed = execute(block.text, block.line, page, names, place)
        if block.printed is not None:
            # Shown where the comparison fails.
            print(printed)
            assert masked(printed) == masked(place(block.printed))
        return
    with pytest.raises(Exception) as caught:
        execute(block.text, block.line, page, names, place)
    said = " ".join(masked(str(caught.value)).split())
    assert type(caught.value).__name__ == expected[1], said
    assert said == " ".join(masked(place(expected[2])).split())


def run_sql(block, page, lake):
    """Every statement, with its rows fetched; an error names the line of the page."""
    for statement in statements_of(block.text):
        try:
            lake.sql(statement.text).collect()
        except Exception as error:
            error.add_note(f"{page.name}:{block.line + statement.line - 1}: {statement.text}")
            raise


def run_console(block, page, place, monkeypatch):
    printed = ""
    lines = block.text.replace("\\\n", " ").splitlines()
    for line in lines:
        if not line.startswith("$ "):
            continue
        command = takewhile(lambda word: word != "|", shlex.split(place(line[2:]), comments=True))
        program, *words = command
        if program == "export":
            monkeypatch.setenv(*words[0].split("=", 1))
        elif program == "frazil":
            result = CliRunner().invoke(main, words)
            shown = f"{page.name}:{block.line}: {line}\n{result.output}"
            # Errors are shown on pages too; a wrong command line is never meant.
            assert result.exit_code == 0 or "Error:" in block.text, shown
            assert result.exit_code != 2, shown
            printed += result.output
        else:
            assert program in OTHER_PROGRAMS, f"{page.name}:{block.line}: {line}"
    below = "\n".join(line for line in lines if not line.startswith("$ "))
    if below.strip():
        assert masked(printed) == masked(place(below))


def write_file(block, place):
    """A file whose name is the comment in its first line."""
    first, rest = block.text.split("\n", 1)
    path = Path(first.removeprefix("# ").strip()).expanduser()
    path.write_text(place(rest))


def run_in_a_process(blocks, place, request):
    """The blocks as one program, with a Spark Connect server where they name one."""
    tmp_path = request.getfixturevalue("tmp_path")
    program = tmp_path / "program.py"
    text = "\n".join(block.text for block in blocks if block.language == "python")
    if REMOTE in text:
        text = text.replace(REMOTE, request.getfixturevalue("connect_url"))
    program.write_text(place(text))
    printed = run_program(program)
    expected = "\n".join(block.printed for block in blocks if block.printed)
    assert masked(printed) == masked(expected)


@pytest.mark.check
def test_the_examples_of_docstrings_run(spark, place):
    """Those of public functions, one after the other on one table."""
    names = {}
    first = next(block for block in blocks_of(HERE) if block.language == "python")
    execute(first.text, first.line, HERE, names, place)
    examples = {}
    for path, function in public_functions():
        lines = re.findall(r"^ *(?:>>>|\.\.\.) (.*)$", inspect.getdoc(function) or "", re.MULTILINE)
        if lines:
            examples.setdefault("\n".join(lines), path)
    for text, path in examples.items():
        execute(text, 1, ROOT / path, names, place)
    assert len(examples) > 15


def test_blocks_are_not_wider_than_their_page():
    """A page of 1280 pixels holds 100 letters in a line of code (docs/assets/pages.css)."""
    wide = [
        f"{page.relative_to(ROOT)}:{block.line + number}"
        for page in DOCUMENTS
        for block in blocks_of(page)
        for number, line in enumerate((block.text + (block.printed or "")).splitlines())
        if len(line) > 100
    ]
    assert wide == []


def test_few_blocks_cannot_run():
    left = [
        f"{page.name}:{block.line}"
        for page in DOCUMENTS
        for block in blocks_of(page)
        # One page is of other engines at a server.
        if block.is_left_alone and page.name != "engines.md"
    ]
    assert len(left) <= 13, left
