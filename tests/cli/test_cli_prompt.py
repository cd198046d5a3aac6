"""The prompt of `frazil sql`: typed keys, and what is printed; and the program in a terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from time import monotonic

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import frazil
from frazil.cli.app import Settings
from frazil.cli.output import Output
from frazil.cli.sql.engine import Engine
from frazil.cli.sql.prompt import Prompt, history_file
from frazil.cli.sql.run import Runner
from frazil.errors import ConfigurationError
from programs import run_program

ENTER = "\r"
CTRL_C = "\x03"
CTRL_D = "\x04"


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    """A folder for the history."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def warehouse(spark, tmp_path):
    folder = str(tmp_path / "lake")
    with frazil.connect(spark, warehouse=folder) as lake:
        lake.create_namespace("db")
        lake.create_table("db.trips", "id bigint, city string")
    return folder


@pytest.fixture
def typed(spark, warehouse, capsys):
    """Types keys into a prompt on a warehouse, and returns what it printed."""

    def run(*keys, place=warehouse):
        engine = Engine(Settings(None, {"warehouse": place}))
        with create_pipe_input() as pipe:
            pipe.send_text("".join(keys))
            runner = Runner(engine, Output())
            prompt = Prompt(engine, Output(), runner.run, keys=pipe, screen=DummyOutput())
            try:
                prompt.run()
            finally:
                engine.close()
        assert engine.catalog.done()
        return capsys.readouterr().out

    return run


def test_statements_in_several_lines_and_words_of_the_prompt(typed):
    said = typed(
        "tables", ENTER, "help", ENTER, ENTER,
        "insert into db.trips values (1, 'a;b'),", ENTER, "(2, null); select *", ENTER,
        "from db.trips", ENTER, "order by id;", ENTER, "USE db;", ENTER,
        "select count(*) as trips from trips;", ENTER,
        "select nope", ENTER, "from db.trips;", ENTER, "select 1 as after;", ENTER, "quit", ENTER,
    )  # fmt: skip
    assert re.search(r"db +trips", said)
    assert "Ctrl-D" in said
    assert [line.split() for line in said.splitlines() if "a;b" in line or "NULL" in line] == [
        ["1", "a;b"], ["2", "NULL"]
    ]  # fmt: skip
    assert "2 rows, " in said
    assert "error: " in said
    assert "nope" in said
    assert said.index("error: ") < said.index("after")
    lines = history_file().read_text()
    assert "+order by id;" in lines
    assert oct(history_file().stat().st_mode & 0o777) == "0o600"
    assert oct(history_file().parent.stat().st_mode & 0o777) == "0o700"


def test_ctrl_c_clears_what_is_typed_and_ctrl_d_leaves(typed):
    said = typed("select 'open", ENTER, CTRL_C, "select 41 + 1 as x;", ENTER, CTRL_D)
    assert "42" in said
    assert "error" not in said


def test_what_is_open_at_the_end_is_rolled_back(typed, spark, warehouse):
    typed("begin transaction;", ENTER, "insert into db.trips values (1, 'a');", ENTER, CTRL_D)
    with frazil.connect(spark, warehouse=warehouse) as lake:
        assert lake.load_table("db.trips").count() == 0


def test_a_catalog_that_is_not_there_ends_the_prompt(typed, tmp_path):
    with pytest.raises(ConfigurationError, match="there is no catalog"):
        typed(place=str(tmp_path / "nowhere"))


def test_the_prompt_is_there_before_what_takes_long_to_import():
    """It is to be ready within a second; Spark and the catalogs alone take longer than that."""
    code = (
        "import sys, frazil.cli.app, frazil.cli.commands.sql, frazil.cli.sql.prompt\n"
        "print(*sys.modules.keys() & {'pyspark', 'polars', 'pyarrow', 'sqlalchemy', 'sqlglot'})"
    )
    assert run_program(code) == "\n"


class Terminal:
    """`frazil sql` in a terminal of the system."""

    def __init__(self, *words):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "frazil.cli", *words],
            stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
            env={key: value for key, value in os.environ.items() if key != "COLUMNS"}
            | {"TERM": "xterm", "NO_COLOR": "1"},
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.fd = ours
        self.text = ""

    def types(self, keys):
        os.write(self.fd, keys.encode())

    def waits_for(self, what, seconds=120):
        """Return what came before it, which is forgotten."""
        end = monotonic() + seconds
        while what not in self.text:
            assert monotonic() < end, f"{what!r} is not in {self.text[-2000:]!r}"
            if not select.select([self.fd], [], [], 0.2)[0]:
                continue
            piece = os.read(self.fd, 65536)
            if b"\x1b[6n" in piece:
                self.types("\x1b[1;1R")
            self.text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", piece.decode(errors="replace"))
        before, _, self.text = self.text.partition(what)
        return before


@pytest.mark.soak
def test_the_program_in_a_terminal(warehouse):
    terminal = Terminal("--warehouse", warehouse, "sql")
    try:
        terminal.waits_for("frazil>")
        terminal.types("tables" + ENTER)
        terminal.waits_for("1 table")
        terminal.types("select id, 'spark' as word from range(3);" + ENTER)
        before = terminal.waits_for("3 rows, ")
        shown = re.sub(r".*Spark starts[^\n]*", "", before)
        assert not re.search(r"WARN|INFO|Using|log4j|incubator", shown)
        terminal.types(
            "select count(*) from range(1e8) a join range(1e6) b on a.id % 7 = b.id % 7;" + ENTER
        )
        terminal.waits_for("Ctrl-C cancels")
        os.killpg(terminal.process.pid, signal.SIGINT)
        terminal.waits_for("cancelled")
        terminal.types("select 6 * 7 as answer;" + ENTER)
        before = terminal.waits_for("1 row, ")
        assert "42" in before
        # Between two prompts the terminal itself takes the key.
        terminal.waits_for("frazil>")
        terminal.types(CTRL_D)
        assert terminal.process.wait(60) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.fd)
