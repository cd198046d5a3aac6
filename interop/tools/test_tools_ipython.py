"""A real IPython: `%load_ext frazil`, cells of SQL, completion, and what errors look like."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest

from frazil.spark.attached import sessions
from frazil.spark.attached.sessions import names_of

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")


@pytest.fixture
def shell(spark, tmp_path, monkeypatch):
    """A shell with the extension, whose configuration has one lake."""
    for name in ("FRAZIL_HOME", "PYICEBERG_HOME", "HOME", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / ".frazil.yaml").write_text(
        f"catalog: {{lake: {{warehouse: {tmp_path / 'warehouse'}}}}}"
    )
    made = interactiveshell.InteractiveShell.instance()
    made.colors = "nocolor"
    _run(made, "%load_ext frazil")
    yield made
    [owner] = {each.owner for each in names_of(spark).lakes.values()}
    sessions.attach_no_more()
    sessions.detach(owner)
    interactiveshell.InteractiveShell.clear_instance()


def test_cells_completion_and_errors(shell):
    assert _run(shell, "%sql CREATE NAMESPACE lake.db") == "done"
    _run(shell, "%%sql\nCREATE TABLE lake.db.trips AS\nSELECT id, 'Oslo' AS city FROM range(3);")
    shown = _run(shell, "%%sql mine\nSELECT *\nFROM lake.db.trips\nORDER BY id")
    assert shown.splitlines() == [
        "id  city", "--  ----", "0   Oslo", "1   Oslo", "2   Oslo", "3 rows"
    ]  # fmt: skip
    assert _run(shell, "mine.where('id > 0').count()") == "2"
    assert _run(shell, "%sql DESCRIBE lake.db.trips").splitlines()[0].split()[0] == "col_name"

    assert _completed(shell, "%%sql\nSELECT *\nFROM lake.db.") == ["FROM lake.db.trips"]
    assert _completed(shell, "%%sql\nSELECT *\nFROM la") == ["FROM lake"]
    assert _completed(shell, "%sql SELECT * FROM lake.d") == ["%sql SELECT * FROM lake.db"]
    assert "lake" not in _completed(shell, "x = la")


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        ("%%sql\nSELECT * FROM lake.db.nothing", "AnalysisException", "nothing"),
        ("%%sql\nSELECT nothing FROM range(3)", "AnalysisException", "nothing"),
        ("%%sql\nSELEC 1", "ParseException", "SELEC"),
        ("%%sql\nDROP NAMESPACE lake.nothing", "AnalysisException", "nothing"),
        ("%sql SELECT assert_true(id > 1) FROM range(3)", "SparkRuntimeException", "id"),
        ("%sql ", "SqlSyntaxError", "the statement is empty"),
    ],
)
def test_an_error_is_a_few_lines(shell, cell, kind, words):
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        result = shell.run_cell(cell)
    assert not result.success
    lines = output.getvalue().strip().splitlines()
    assert lines[0].startswith(f"{kind}: ")
    assert words in output.getvalue()
    assert "Traceback" not in output.getvalue()
    assert len(lines) <= 12


def _run(shell: Any, cell: str) -> str:
    """What a cell shows as its result."""
    with redirect_stdout(io.StringIO()):
        result = shell.run_cell(cell)
    result.raise_error()
    return "" if result.result is None else repr(result.result)


def _completed(shell: Any, cell: str) -> list[str]:
    """The cell's last line with each of the completions at its end."""
    from IPython.core.completer import provisionalcompleter

    with provisionalcompleter():
        found = list(shell.Completer.completions(cell, len(cell)))
    last = cell.rfind("\n") + 1
    return [cell[last : each.start] + each.text for each in found]
