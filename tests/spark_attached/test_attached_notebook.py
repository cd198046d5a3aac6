"""``%load_ext frazil``, with a shell that notes what it is given."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import frazil
from frazil.spark.attached import sessions
from frazil.spark.attached.notebook import ShownRows, complete_names
from frazil.spark.attached.sessions import names_of

pytestmark = pytest.mark.spark


class Shell:
    """What an extension sees of IPython."""

    def __init__(self):
        self.magics, self.hooks, self.variables = {}, {}, {}

    def register_magic_function(self, function, kind, name):
        """Note a magic."""
        self.magics[name] = (kind, function)

    def set_hook(self, name, function, str_key):
        """Note a hook."""
        self.hooks[str_key] = function

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
    event = SimpleNamespace(line="SELECT * FROM my_lake.d", symbol="my_lake.d")
    assert shell.hooks["%%sql"](None, event) == ["my_lake.db"]
    assert ShownRows.of(spark.range(1)).rows == [(0,)]
