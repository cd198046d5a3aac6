"""Spark's declarative pipelines, whose materialized views are tables of a lake."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from programs import run_program

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        find_spec("pyspark.pipelines") is None, reason="Spark 4.0 has no declarative pipelines"
    ),
]
SPEC = """\
name: numbers
storage: file://{storage}
catalog: lake
database: pipes
libraries:
  - glob:
      include: transformations/**
"""
SQL = "CREATE MATERIALIZED VIEW top AS SELECT max(id) AS most FROM t;"
VIEWS = """\
from pyspark import pipelines
from pyspark.sql import SparkSession


@pipelines.temporary_view
def few():
    return SparkSession.active().read.table("t").where("id < 2")


@pipelines.materialized_view(name="lake.pipes.of_view")
def of_view():
    return SparkSession.active().read.table("few"){columns}
"""
STREAM = """\
from pyspark import pipelines
from pyspark.sql import SparkSession


@pipelines.table
def copied():
    return SparkSession.active().readStream.table("lake.pipes.t")
"""


def pipeline(folder: Path, port: int, ends: int = 0) -> str:
    """Run the pipeline of a folder; return what it printed."""
    program = Path(find_spec("pyspark.pipelines").origin).with_name("cli.py")
    command = [sys.executable, program, "run", "--spec", "spark-pipeline.yml"]
    variables = {**os.environ, "SPARK_REMOTE": f"sc://127.0.0.1:{port}"}
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    said = done.stdout + done.stderr
    assert done.returncode == ends, said
    return said


def test_materialized_views_are_made_and_made_anew(served, client, tmp_path):
    """The second run has new rows and a new column; a table that streams is refused."""

    def answers(*texts):
        steps = tmp_path / "steps.json"
        steps.write_text(f"[{', '.join(chr(34) + text + chr(34) for text in texts)}]")
        return run_program(client, served.connect, steps, cwd=tmp_path).splitlines()

    made = answers(
        "CREATE NAMESPACE lake.pipes",
        "CREATE TABLE lake.pipes.t (id BIGINT)",
        "INSERT INTO lake.pipes.t VALUES (1), (2)",
    )
    assert made == ["[]"] * 3
    (tmp_path / "spark-pipeline.yml").write_text(SPEC.format(storage=tmp_path / "storage"))
    folder = tmp_path / "transformations"
    folder.mkdir()
    (folder / "top.sql").write_text(SQL)
    (folder / "views.py").write_text(VIEWS.format(columns=""))
    pipeline(tmp_path, served.connect)
    asked = ("SELECT * FROM lake.pipes.top", "SELECT * FROM lake.pipes.of_view")
    assert answers(*asked) == ["[[2]]", "[[1]]"]
    (folder / "views.py").write_text(VIEWS.format(columns=".selectExpr('id', 'id + 1 AS more')"))
    answers("INSERT INTO lake.pipes.t VALUES (7)")
    pipeline(tmp_path, served.connect)
    assert answers(*asked) == ["[[7]]", "[[1, 2]]"]
    (folder / "stream.py").write_text(STREAM)
    assert "Streaming into views" in pipeline(tmp_path, served.connect, ends=1)
