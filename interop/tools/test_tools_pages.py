"""The pages about dbt and notebooks: their files are a project that is built, their cells run."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import frazil
from frazil.spark.attached import sessions
from frazil.spark.attached.sessions import names_of

ROOT = Path(__file__).resolve().parents[2]
HOWTO = ROOT / "docs" / "howto"
sys.path.append(str(ROOT / "tests" / "docs"))

from pages import blocks_of, files_of  # noqa: E402

REFUSED = {
    "incremental_strategy='delete+insert'": "Invalid incremental strategy provided: delete+insert",
    "incremental_strategy='merge', file_format='parquet', unique_key='city'": (
        "You can only choose this strategy when file_format is set to 'delta' or 'iceberg'"
    ),
}
"""Settings of a model, and what dbt says of them, as the page has it."""


def test_the_project_of_the_page_is_built(
    request: Any, spark: Any, tmp_path: Path, warehouse: str, frazil_run: Any, run_plainly: Any
) -> None:
    pytest.importorskip("dbt.adapters.spark")
    project = tmp_path / "project"
    for name, text in files_of(HOWTO / "dbt.md").items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def dbt(*arguments: str, **settings: Any) -> str:
        return frazil_run(
            ["dbt", *arguments], folder=project, DBT_PROFILES_DIR=str(project), **settings
        )

    assert "PASS=6 WARN=0 ERROR=0 SKIP=0" in dbt("build")
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        wanted = {"by_day": 2, "last_order": 2, "prices": 3, "orders": 3, "raw_orders": 3}
        found = {name: lake.load_table(f"db.{name}").count() for name in wanted}
        assert found == wanted
        assert lake.sql("SELECT id FROM lake.db.dear_orders ORDER BY id").collect() == [(1,), (3,)]

    seed = project / "seeds" / "raw_orders.csv"
    seed.write_text(seed.read_text().replace("7.0", "8.0") + "4,Lima,2024-03-03,20\n")
    for _ in range(2):
        assert "PASS=6 WARN=0 ERROR=0 SKIP=0" in dbt("build")
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        wanted = {"by_day": 3, "last_order": 2, "prices": 5, "orders": 4, "raw_orders": 4}
        found = {name: lake.load_table(f"db.{name}").count() for name in wanted}
        assert found == wanted

    port = str(request.getfixturevalue("thrift"))
    profile = project / "profiles.yml"
    profile.write_text(profile.read_text().replace("10000", port))
    settings = {"DBT_PROFILES_DIR": str(project)}
    said = run_plainly(["dbt", "build", "--target", "served"], folder=project, **settings)
    assert "PASS=6 WARN=0 ERROR=0 SKIP=0" in said
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        assert {name: lake.load_table(f"db.{name}").count() for name in wanted} == wanted

    model = project / "models" / "refused.sql"
    for settings, said in REFUSED.items():
        model.write_text(
            f"{{{{ config(materialized='incremental', {settings}) }}}}\n"
            "select city, day from {{ ref('orders') }}\n"
        )
        with pytest.raises(AssertionError, match=said.replace("+", r"\+")):
            dbt("run", "--select", "refused")


def test_the_cells_of_the_page_run(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interactiveshell = pytest.importorskip("IPython.core.interactiveshell")
    for name in ("FRAZIL_HOME", "PYICEBERG_HOME", "HOME", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / ".frazil.yaml").write_text(f"catalog: {{lake: {{warehouse: {tmp_path / 'lake'}}}}}")
    with frazil.connect(spark, warehouse=str(tmp_path / "lake"), name="lake") as lake:
        lake.create_namespace("db")
    shell = interactiveshell.InteractiveShell.instance()
    shell.colors = "nocolor"
    try:
        cells = [block.text for block in blocks_of(HOWTO / "notebooks.md") if _is_cell(block)]
        shown = [_run(shell, cell) for cell in cells]
        assert shown[0] == ""
        assert shown[1] == "done"
        assert [line.split()[0] for line in shown[2].splitlines()] == ["id", "--", "1", "2", "2"]
        assert shown[3] == "'stop 2'"
    finally:
        for each in names_of(spark).lakes.values():
            sessions.detach(each.owner)
        sessions.attach_no_more()
        interactiveshell.InteractiveShell.clear_instance()


def _is_cell(block: Any) -> bool:
    return block.language == "text" and block.text.startswith(("%", "stops."))


def _run(shell: Any, cell: str) -> str:
    """What a cell shows as its result."""
    with redirect_stdout(io.StringIO()):
        result = shell.run_cell(cell)
    result.raise_error()
    return "" if result.result is None else repr(result.result)
