"""The prompt: statements are typed, and their rows are shown."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output as Screen
from prompt_toolkit.styles import Style
from pygments.lexers.sql import SqlLexer

from frazil.cli.layout import TextColumn, one_line
from frazil.cli.output import Output
from frazil.cli.sql.completion import SqlCompleter
from frazil.cli.sql.engine import CancelledError, Engine, LeftError
from frazil.cli.sql.mistakes import said_of
from frazil.cli.sql.names import Names
from frazil.cli.sql.results import FirstRows, show_answer
from frazil.cli.sql.run import print_outcome
from frazil.cli.sql.statements import is_complete, statements_of
from frazil.errors import FrazilError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.spark.procedures import call as procedures
    from frazil.spark.words import WordReader
else:
    procedures = later("frazil.spark.procedures.call")
    WordReader = later("frazil.spark.words", "WordReader")


HELP: Final = """\
A statement ends with ; and may have several lines. Statements are in Spark's and Iceberg's syntax.

  tables [NAMESPACE]  the tables of a namespace, or of all
  help                this text
  quit                leave; so does Ctrl-D

  Tab      completes names and keywords    Up, Ctrl-R  earlier statements
  Ctrl-C   clears what is typed, and ends a statement that runs
"""
_STYLE: Final = Style.from_dict(
    {
        "pygments.keyword": "bold ansiblue",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.comment": "italic ansibrightblack",
        "prompt": "bold",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)

Run = Callable[[str], str]


class Prompt:
    """Reads statements until the user leaves.

    Args:
        engine: runs them.
        out: where rows go.
        run: runs one statement, prints its rows, and returns what is said of their number.
        keys: where keys come from; the terminal unless given.
        screen: where the prompt is drawn; the terminal unless given.
    """

    def __init__(
        self,
        engine: Engine,
        out: Output,
        run: Run,
        *,
        keys: Input | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._engine = engine
        self._out = out
        self._run = run
        self._names = Names(engine)
        self._start_is_shown = False
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            lexer=PygmentsLexer(SqlLexer),
            completer=ThreadedCompleter(SqlCompleter(self._names, self._procedures)),
            complete_while_typing=True,
            multiline=True,
            prompt_continuation=lambda width, _, __: "> ".rjust(width),
            key_bindings=_keys(),
            bottom_toolbar=self._state,
            refresh_interval=0.5,
            style=_STYLE,
            input=keys,
            output=screen,
        )

    def run(self) -> None:
        """Read and run statements until the user leaves.

        Raises:
            ConfigurationError: there is no catalog.
        """
        click.echo("frazil: statements end with ; and help shows the rest")
        while True:
            try:
                text = self._session.prompt(self._message, pre_run=self._begin)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            try:
                if self._is_left_after(text):
                    return
            except KeyboardInterrupt:
                click.echo()
            except FrazilError as error:
                self._complain(error)

    def _is_left_after(self, text: str) -> bool:
        """Do what a line says, and tell whether it is to leave."""
        words = text.strip().rstrip(";").split()
        if not words:
            return False
        match [words[0].lower(), *words[1:]]:
            case ["quit" | "exit"]:
                return True
            case ["help"]:
                click.echo(HELP, nl=False)
            case ["tables", *rest] if len(rest) < 2:
                self._show_tables(rest)
            case _:
                for statement in statements_of(text):
                    if not self._run_or_report(statement.text):
                        break
        return False

    def _run_or_report(self, text: str) -> bool:
        begun = perf_counter()
        try:
            said = self._run(text)
        except CancelledError:
            click.secho("cancelled", fg="yellow")
            return False
        except (FrazilError, LeftError, click.ClickException, BrokenPipeError):
            raise
        except Exception as error:
            # Spark raises several kinds that share no base.
            self._complain(error)
            return False
        finally:
            self._names.forget()
        print_outcome(said, perf_counter() - begun)
        self._follow_use(text)
        return True

    def _follow_use(self, text: str) -> None:
        reader = WordReader(text)
        if not reader.takes("USE"):
            return
        for word in ("NAMESPACE", "DATABASE", "SCHEMA"):
            reader.takes(word)
        parts = tuple(reader.names("a namespace"))
        own = parts[1:] if parts and parts[0] == self._names.catalog_name() else parts
        self._names.current = own

    def _show_tables(self, said: Sequence[str]) -> None:
        catalog = self._engine.catalog.result()
        found = catalog.list_tables(said[0]) if said else catalog.list_tables_below()
        columns = (TextColumn("namespace", "text"), TextColumn("table", "text"))
        rows = tuple((".".join(each[:-1]), each[-1]) for each in found)
        show_answer(self._out, FirstRows(columns, rows))
        click.secho("1 table" if len(rows) == 1 else f"{len(rows)} tables", dim=True)

    def _message(self) -> FormattedText:
        name = ".".join(self._names.current) or "frazil"
        return FormattedText([("class:prompt", f"{one_line(name)}> ")])

    def _state(self) -> str:
        lake = self._engine.lake
        if not lake.done():
            return "Spark starts; type meanwhile"
        return "Spark did not start" if lake.exception() else ""

    def _begin(self) -> None:
        """Start Spark as soon as the prompt is drawn, and say in it what goes wrong."""
        self._engine.start()
        app = get_app()
        loop = app.loop

        def leave(catalog: Future[Any]) -> None:
            error = catalog.exception()
            if error is not None and loop is not None and app.is_running:
                loop.call_soon_threadsafe(partial(app.exit, exception=error))

        self._engine.catalog.add_done_callback(leave)

    def _procedures(self) -> Mapping[str, Sequence[str]]:
        if not self._engine.lake.done():
            return {}
        return {
            name: [each.name for each in procedure.signature.parameters]
            for name, procedure in procedures.PROCEDURES.items()
        }

    def _complain(self, error: BaseException) -> None:
        said = said_of(error, self._engine.settings.properties, self._names)
        lake = self._engine.lake
        if lake.done() and error is lake.exception():
            said = "Spark did not start" if self._start_is_shown else said
            self._start_is_shown = True
        click.echo(click.style("error: ", fg="red", bold=True) + said)


def history_file() -> Path:
    """Return the file of earlier statements, in the user's folder of state."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "state"
    )
    return Path(state) / "frazil" / "sql_history"


def _history() -> History:
    """The history of a file that only its owner may read; of this session where there is none."""
    file = history_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))


def _keys() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def accept(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
        elif _is_whole(buffer):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings


def _is_whole(buffer: Buffer) -> bool:
    """Whether what is typed can run: it ends with ``;``, or is a word of the prompt."""
    text = buffer.text.strip()
    first = text.split(maxsplit=1)[0].lower() if text else ""
    return first in ("", "quit", "exit", "help", "tables") or is_complete(text)
