"""SQLMesh's engine Spark: plan, run, a changed model in an environment, a restatement."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import frazil

pytest.importorskip("sqlmesh")

PROJECT = Path(__file__).resolve().parent / "sqlmesh"

RAW = """
CREATE TABLE lake.raw.trips AS SELECT * FROM VALUES
  (1L, 'Oslo', date'2024-03-01', 10.5D), (2L, 'Lima', date'2024-03-01', 7D),
  (3L, 'Oslo', date'2024-03-02', 12.25D), (4L, 'Lima', date'2024-03-02', NULL)
AS trips (id, city, day, fare)
"""
NEW = "INSERT INTO lake.raw.trips VALUES (5L, 'Oslo', date'2024-03-03', 20D)"
LATE = "UPDATE lake.raw.trips SET fare = 70D WHERE id = 2"
"""A row of a day that was loaded already."""


def test_a_project_of_sqlmesh(spark, tmp_path, warehouse, frazil_run):
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)

    def sqlmesh(*arguments: str) -> str:
        return frazil_run(["sqlmesh", *arguments], folder=project, use="lake", MAX_FORK_WORKERS="1")

    def rows(name: str) -> list[tuple[Any, ...]]:
        with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
            return sorted(tuple(row) for row in lake.sql(f"SELECT * FROM lake.{name}").collect())

    def says(*statements: str) -> None:
        with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
            lake.create_namespace_if_not_exists("raw")
            for each in statements:
                lake.sql(each)

    says(RAW)
    sqlmesh("plan", "--auto-apply", "--no-prompts", "--execution-time", "2024-03-03")
    assert [row[0] for row in rows("db.trips")] == [1, 2, 3, 4]
    assert rows("db.by_city") == [("Lima", 2, 7.0), ("Oslo", 2, 22.75)]
    assert _days(rows("db.last_days")) == [("Lima", "2024-03-02"), ("Oslo", "2024-03-02")]
    assert rows("db.dear_trips") == [(1, 10.5), (3, 12.25)]

    says(NEW, LATE)
    # All days since then; those that were loaded are not read again.
    sqlmesh("run", "--ignore-cron")
    fares = {row[0]: row[3] for row in rows("db.trips")}
    assert fares == {1: 10.5, 2: 7.0, 3: 12.25, 4: None, 5: 20.0}
    assert rows("db.by_city") == [("Lima", 2, 7.0), ("Oslo", 3, 42.75)]
    assert _days(rows("db.last_days")) == [("Lima", "2024-03-02"), ("Oslo", "2024-03-03")]
    assert rows("db.dear_trips") == [(1, 10.5), (3, 12.25), (5, 20.0)]

    model = project / "models" / "by_city.sql"
    model.write_text(re.sub(r"SUM\(fare\) AS fares", "MAX(fare) AS dearest", model.read_text()))
    sqlmesh("plan", "dev", "--auto-apply", "--no-prompts")
    assert rows("db__dev.by_city") == [("Lima", 2, 7.0), ("Oslo", 3, 20.0)]
    assert rows("db.by_city") == [("Lima", 2, 7.0), ("Oslo", 3, 42.75)]

    sqlmesh("plan", "--auto-apply", "--no-prompts")
    assert rows("db.by_city") == [("Lima", 2, 7.0), ("Oslo", 3, 20.0)]

    restate = ("--restate-model", "db.trips", "--start", "2024-03-01", "--end", "2024-03-01")
    sqlmesh("plan", "--auto-apply", "--no-prompts", *restate)
    fares = {row[0]: row[3] for row in rows("db.trips")}
    assert fares == {1: 10.5, 2: 70.0, 3: 12.25, 4: None, 5: 20.0}
    assert rows("db.by_city") == [("Lima", 2, 70.0), ("Oslo", 3, 20.0)]


def _days(rows: list[tuple[Any, ...]]) -> list[tuple[str, str]]:
    return [(city, str(day)) for city, day in rows]
