"""dbt-spark's method `session`: the project in interop/dbt, twice.

It needs a Python with dbt-core, dbt-spark and what Frazil needs; FRAZIL_DBT_PYTHON names it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import frazil

PROJECT = Path(__file__).resolve().parents[2] / "interop" / "dbt"
PYTHON = os.environ.get("FRAZIL_DBT_PYTHON")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.soak,
    pytest.mark.skipif(PYTHON is None, reason="FRAZIL_DBT_PYTHON names no Python with dbt"),
]

AFTER = {
    "2024-03-01": {
        "trips": [1, 2], "appended": [1, 2], "overwritten": [1, 2],
        "by_city": ["Lima", "Oslo"], "merged": ["Lima", "Oslo"], "cities": ["Lima", "Oslo"],
    },
    "2024-03-02": {
        "trips": [1, 2, 3, 4], "appended": [1, 2, 3, 4], "overwritten": [1, 2, 3, 4],
        "by_city": ["Lima", "Oslo"], "merged": ["Lima", "Oslo"],
        # A snapshot that goes on makes a view in the catalog, which is not there yet.
        "cities": ["Lima", "Oslo"],
    },
}  # fmt: skip


def test_a_project_of_dbt(spark, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    warehouse = str(tmp_path / "lake")
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        lake.create_namespace("db")
        for until, expected in AFTER.items():
            first = until == "2024-03-01"
            more = [] if first else ["--exclude", "resource_type:snapshot"]
            _dbt(project, warehouse, "build", "--vars", f"{{until: {until}}}", *more)
            for name, keys in expected.items():
                rows = lake.load_table(f"db.{name}").to_df()
                assert sorted(row[0] for row in rows.collect()) == keys, name
        appended = lake.load_table("db.appended").metadata.snapshots
        assert [each.operation for each in appended] == ["append", "append"]
        merged = lake.load_table("db.merged").to_df()
        assert {str(row.last_day) for row in merged.collect()} == {"2024-03-02"}


def _dbt(project, warehouse, *arguments):
    command = [str(PYTHON), "-m", "frazil.cli", "--catalog", "lake", "--warehouse", warehouse,
               "run", "--use", "lake", "--", "dbt", *arguments]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "DBT_PROFILES_DIR": str(project), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
