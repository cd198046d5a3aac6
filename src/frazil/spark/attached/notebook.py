"""``%load_ext frazil``: lakes in a notebook, with ``%%sql`` and completion of table names."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession

from frazil.catalog.identifiers import Identifier
from frazil.errors import FrazilError, SqlSyntaxError
from frazil.format.predicates.sql.quoting import quote_name
from frazil.spark.attached.configured import configured_lakes
from frazil.spark.attached.names import SessionNames
from frazil.spark.attached.sessions import names_of
from frazil.spark.attached.statements import run_statement
from frazil.spark.session.messages import lines_for_people

MOST_ROWS: Final = 50
"""Rows that a cell shows."""

_MOST_LETTERS: Final = 200
_MOST_LINES: Final = 12
_LAST_NAME: Final = re.compile(r"(?:[\w.]|`[^`\n]*(?:`|$))*$")
_IS_SQL: Final = re.compile(r"\s*%%sql\b|(?:.*\n)*[^\n]*%sql\b[^\n]*$")


@dataclass(frozen=True, slots=True)
class ShownRows:
    """The first rows of a statement, for people to read; `frame` has all of them.

    Attributes:
        frame: the statement's rows.
        columns: their names.
        rows: the first ones.
        has_more: whether there are others.
    """

    frame: DataFrame
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[Any]] = field(default=(), repr=False)
    has_more: bool = False

    @classmethod
    def of(cls, frame: DataFrame, most: int = MOST_ROWS) -> ShownRows:
        """Read the first rows."""
        if not frame.columns:
            return cls(frame)
        rows = [tuple(row) for row in frame.limit(most + 1).collect()]
        return cls(frame, frame.columns, rows[:most], len(rows) > most)

    def __repr__(self) -> str:
        if not self.columns:
            return "done"
        texts = [[_text(value).replace("\n", "\\n") for value in row] for row in self.rows]
        widths = [
            max(len(line[place]) for line in [list(self.columns), *texts])
            for place in range(len(self.columns))
        ]
        lines = [list(self.columns), ["-" * width for width in widths], *texts]
        shown = "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )
        return f"{shown}\n{self._footer}"

    def _repr_html_(self) -> str:
        if not self.columns:
            return "<p>done</p>"
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row) + "</tr>"
            for row in self.rows
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{html.escape(self._footer)}</p>"

    @property
    def _footer(self) -> str:
        count = len(self.rows)
        if self.has_more:
            return f"the first {count} rows"
        return "1 row" if count == 1 else f"{count} rows"


def load_ipython_extension(shell: Any) -> None:
    """Attach the configured lakes to every session of a notebook, and give it ``%%sql``.

    Args:
        shell: IPython's.

    Raises:
        ConfigurationError: a setting is malformed, or nothing is configured.
    """
    configured_lakes().attach_each()

    def sql(line: str, cell: str | None = None) -> ShownRows:
        """Run a statement; ``%%sql name`` keeps its rows as a DataFrame of that name."""
        variable, text = ("", line) if cell is None else (line.strip(), cell)
        with _without_a_trace():
            shown = ShownRows.of(_run(_session(), text))
        if variable:
            shell.push({variable: shown.frame})
        return shown

    shell.register_magic_function(sql, "line_cell", "sql")
    shell.Completer.custom_matchers.append(complete_sql)


@dataclass(frozen=True, slots=True)
class OfferedName:
    """A completion as IPython takes it.

    Attributes:
        text: what takes the place of what is typed.
        type: what IPython writes beside it.
    """

    text: str
    type: str = "table"


def complete_sql(context: Any) -> dict[str, Any]:
    """Return names of lakes, namespaces and tables for a cell of SQL, as IPython's matchers do.

    Args:
        context: IPython's: the cell, and where the cursor is in it.
    """
    lines = context.full_text.split("\n")[: context.cursor_line + 1]
    before = "\n".join([*lines[:-1], lines[-1][: context.cursor_position]])
    if _IS_SQL.match(before) is None:
        return {"completions": []}
    names = complete_names(names_of(_session()), before)
    typed = _LAST_NAME.search(before)
    return {
        "completions": [OfferedName(name) for name in names],
        "matched_fragment": "" if typed is None else typed[0],
        # Words of Python are none of SQL.
        "suppress": bool(names),
    }


# How IPython tells a matcher of a cell from one of a word.
complete_sql.matcher_api_version = 2  # type: ignore[attr-defined]


def complete_names(names: SessionNames | None, text: str) -> list[str]:
    """Return the names of lakes, namespaces and tables that a text may go on to.

    Args:
        names: the lakes of the session.
        text: what is typed so far; its last name counts.
    """
    found = _LAST_NAME.search(text)
    typed = "" if found is None else found[0]
    if names is None:
        return []
    try:
        return sorted({each for each in _names(names, typed) if each.startswith(typed)})
    except FrazilError:  # What cannot be listed is not offered.
        return []


def _names(names: SessionNames, typed: str) -> Iterator[str]:
    before = tuple(part.strip("`") for part in typed.split(".")[:-1])
    lakes: Mapping[str, Any] = names.lakes
    if not before:
        yield from lakes
    levels: Identifier
    if before and before[0] in lakes:
        lake, levels = lakes[before[0]], before[1:]
    elif names.lake is not None:
        lake, levels = lakes[names.lake], before or names.namespace.levels
    else:
        return
    # The names as they are typed: a prefix that USE has made needless is not put in.
    for below in lake.catalog.list_namespaces(levels):
        yield quote_name([*before, below[-1]])
    if levels and lake.catalog.namespace_exists(levels):
        for table in lake.catalog.list_tables(levels):
            yield quote_name([*before, table[-1]])


def _session() -> SparkSession:
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def _run(spark: SparkSession, text: str) -> DataFrame:
    names, plain = names_of(spark), type(spark).sql
    text = text.strip().removesuffix(";")
    if not text:
        raise SqlSyntaxError("the statement is empty")
    return plain(spark, text) if names is None else run_statement(names, plain, spark, text)


@contextmanager
def _without_a_trace() -> Iterator[None]:
    """Have IPython show of an error what it says alone; it is raised as it is."""
    # PySpark writes each error of a query to standard error too, as JSON.
    log = PySparkLogger.getLogger("SQLQueryContextLogger")
    before, log.disabled = log.disabled, True
    try:
        yield
    except (FrazilError, PySparkException) as error:
        said = "\n".join(lines_for_people(str(error))[:_MOST_LINES])
        lines = f"{type(error).__name__}: {said}".splitlines()
        error._render_traceback_ = lambda: lines  # type: ignore[union-attr]
        raise
    finally:
        log.disabled = before


def _text(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 1]}…"
