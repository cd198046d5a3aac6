"""``%load_ext frazil``, with a shell that notes what it is given."""

import logging
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

import frazil
from frazil.spark.attached import sessions
from frazil.spark.attached.notebook import ShownRows, complete_names
from frazil.spark.attached.sessions import names_of


class Shell:
    """What an extension sees of IPython."""

    def __init__(self):
        self.magics, self.variables = {}, {}
        self.Completer = SimpleNamespace(custom_matchers=[])

    def register_magic_function(self, function, kind, name):
        """Note a magic."""
        self.magics[name] = (kind, function)

    def push(self, variables):
        """Note variables."""
        self.variables.update(variables)


@pytest.fixture
def shell(spark, tmp_path, monkeypatch):
    """A notebook whose configuration has one lake."""
    for name in ("FRAZIL_HOME", "PYICEBERG_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / ".frazil.yaml").write_text(
        f"catalog: {{my-lake: {{warehouse: {tmp_path / 'lake'}}}}}"
    )
    made = Shell()
    frazil.load_ipython_extension(made)
    yield made
    [owner] = {each.owner for each in names_of(spark).lakes.values()}
    sessions.attach_no_more()
    sessions.detach(owner)


def test_a_cell_shows_a_table(shell, spark):
    kind, sql = shell.magics["sql"]
    assert kind == "line_cell"
    assert repr(sql("CREATE NAMESPACE my_lake.db")) == "done"
    sql("", "CREATE TABLE my_lake.db.t AS SELECT id, '<b>' AS n FROM range(1, 61);")
    shown = sql(" kept ", "SELECT * FROM my_lake.db.t WHERE id < 3 ORDER BY id")
    assert repr(shown).splitlines() == ["id  n", "--  ---", "1   <b>", "2   <b>", "2 rows"]
    assert "<td>&lt;b&gt;</td>" in shown._repr_html_()
    assert shell.variables["kept"].count() == 2
    assert "the first 50 rows" in repr(sql("SELECT * FROM my_lake.db.t"))
    names = names_of(spark)
    assert complete_names(names, "SELECT * FROM my") == ["my_lake"]
    assert complete_names(names, "SELECT * FROM my_lake.") == ["my_lake.db"]
    assert complete_names(names, "SELECT * FROM my_lake.db.") == ["my_lake.db.t"]
    [matcher] = shell.Completer.custom_matchers
    assert matcher.matcher_api_version == 2
    cell = "%%sql\nSELECT *\nFROM my_lake.d WHERE id = 1"
    context = SimpleNamespace(full_text=cell, cursor_line=2, cursor_position=14)
    found = matcher(context)
    assert [each.text for each in found["completions"]] == ["my_lake.db"]
    assert found["matched_fragment"] == "my_lake.d"
    python = SimpleNamespace(full_text="x = my_lake.d", cursor_line=0, cursor_position=13)
    assert matcher(python)["completions"] == []
    assert ShownRows.of(spark.range(1)).rows == [(0,)]


def test_an_error_shows_what_it_says(shell, spark):
    _, sql = shell.magics["sql"]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND") as raised:
        sql("SELECT * FROM my_lake.db.nothing")
    shown = raised.value._render_traceback_()
    assert shown[0].startswith("AnalysisException: ")
    assert "nothing" in shown[0]
    assert not [line for line in shown if "Traceback" in line or "File" in line]
    with pytest.raises(frazil.SqlSyntaxError) as empty:
        sql("")
    assert empty.value._render_traceback_() == ["SqlSyntaxError: the statement is empty"]


def test_errors_after_a_cell_are_sparks(shell, spark):
    # PySpark gives its log a class of its own, where nobody made the log before.
    logging.Logger.manager.loggerDict.pop("SQLQueryContextLogger", None)
    with pytest.raises(AnalysisException):
        shell.magics["sql"][1]("SELECT * FROM nothing")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nothing")
