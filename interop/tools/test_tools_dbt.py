"""dbt with dbt-spark's methods `session` and `thrift`: one project, three days, what is right."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import frazil

pytest.importorskip("dbt.adapters.spark")

PROJECT = Path(__file__).resolve().parent / "dbt"

LAST_DAY = {
    "raw_trips": "5,Oslo,2024-03-03,1.5\n6,Quito,2024-03-03,20\n",
    "raw_cities": (
        "city,country,changed\n"
        "Oslo,Norge,2024-03-03 10:00:00\n"
        "Lima,Peru,2024-02-01 08:00:00\n"
        "Quito,Ecuador,2024-03-03 11:00:00\n"
    ),
}
"""What the sources get on the third day: new trips; a country changes, Ghent goes, Quito comes."""

KEYS = {
    "2024-03-01": {
        "trips": [1, 2], "appended": [1, 2], "overwritten": [1, 2], "dear_trips": [1],
        "by_city": ["Lima", "Oslo"], "merged": ["Lima", "Oslo"],
        "cities": ["Lima", "Oslo"], "countries": ["Ghent", "Lima", "Oslo"],
    },
    "2024-03-02": {
        "trips": [1, 2, 3, 4], "appended": [1, 2, 3, 4], "overwritten": [1, 2, 3, 4],
        "dear_trips": [1, 3], "by_city": ["Lima", "Oslo"], "merged": ["Lima", "Oslo"],
        "cities": ["Lima", "Lima", "Oslo", "Oslo"], "countries": ["Ghent", "Lima", "Oslo"],
    },
    "2024-03-03": {
        "trips": [1, 2, 3, 4, 5, 6], "appended": [1, 2, 3, 4, 5, 6],
        "overwritten": [1, 2, 3, 4, 5, 6], "dear_trips": [1, 3, 6],
        "by_city": ["Lima", "Oslo", "Quito"], "merged": ["Lima", "Oslo", "Quito"],
        "cities": ["Lima", "Lima", "Oslo", "Oslo", "Oslo", "Quito"],
        "countries": ["Ghent", "Lima", "Oslo", "Oslo", "Quito"],
    },
}  # fmt: skip
"""The first columns of all rows, after the build of each day."""


@pytest.mark.parametrize("method", ["session", "thrift"])
def test_a_project_of_dbt_day_by_day(request, spark, tmp_path, warehouse, method):
    project = tmp_path / "project"
    shutil.copytree(PROJECT, project)
    if method == "session":
        run, port = request.getfixturevalue("frazil_run"), 0
    else:
        run, port = request.getfixturevalue("run_plainly"), request.getfixturevalue("thrift")
    settings = {"DBT_PROFILES_DIR": str(project), "DBT_TARGET": method, "THRIFT_PORT": str(port)}

    def dbt(*arguments: str) -> str:
        return run(["dbt", *arguments], folder=project, **settings)

    for day, expected in KEYS.items():
        if day == "2024-03-03":
            trips, cities = (project / "seeds" / f"{name}.csv" for name in LAST_DAY)
            trips.write_text(trips.read_text() + LAST_DAY["raw_trips"])
            cities.write_text(LAST_DAY["raw_cities"])
        began = _now()
        said = dbt("build", "--vars", f"{{until: {day}}}")
        ended = _now()
        assert "PASS=18 WARN=0 ERROR=0 SKIP=0" in said, said[-3000:]
        found = {name: sorted(row[0] for row in _rows(spark, warehouse, name)) for name in expected}
        assert found == expected, day

    rows = {name: _rows(spark, warehouse, name) for name in KEYS["2024-03-03"]}
    # The column came with the third day: rows of before have none.
    assert [(row.id, row.fare) for row in sorted(rows["appended"])] == [
        (1, None), (2, None), (3, None), (4, None), (5, 1.5), (6, 20.0)
    ]  # fmt: skip
    assert sorted((row.city, str(row.last_day), row.trips) for row in rows["merged"]) == [
        ("Lima", "2024-03-02", 2), ("Oslo", "2024-03-03", 3), ("Quito", "2024-03-03", 1)
    ]  # fmt: skip
    _check_counts(rows["cities"])
    _check_countries(rows["countries"], began, ended)
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        appended = lake.load_table("db.appended").metadata.snapshots
        assert [each.operation for each in appended] == ["append"] * 3
        trips = lake.load_table("db.trips").metadata
        assert trips.properties["comment"] == "Trips until the day of the run, one's own."
        assert trips.schema.find_field("id").doc == "The trip's number."

    dbt("docs", "generate", "--vars", "{until: 2024-03-03}")
    catalog = json.loads((project / "target" / "catalog.json").read_text())
    columns = catalog["nodes"]["model.lake.trips"]["columns"]
    assert {name: column["type"] for name, column in columns.items()} == {
        "id": "bigint", "city": "string", "day": "date", "fare": "double"
    }  # fmt: skip
    dbt("run", "--full-refresh", "--vars", "{until: 2024-03-03}")
    assert [(row.id, row.fare) for row in sorted(_rows(spark, warehouse, "appended"))] == [
        (1, 10.5), (2, 7.0), (3, 12.25), (4, None), (5, 1.5), (6, 20.0)
    ]  # fmt: skip


def _check_counts(rows: list[Any]) -> None:
    """Each count is valid until the next one of its city, and the last one still is."""
    for city, counts in {"Lima": [1, 2], "Oslo": [1, 2, 3], "Quito": [1]}.items():
        own = sorted((row for row in rows if row.city == city), key=lambda row: row.trips)
        assert [row.trips for row in own] == counts
        ends = [row.dbt_valid_to for row in own]
        assert ends == [*(row.dbt_valid_from for row in own[1:]), None], city


def _check_countries(rows: list[Any], began: datetime, ended: datetime) -> None:
    first, moved = datetime(2024, 2, 1, 8), datetime(2024, 3, 3, 10)
    found = {(row.city, row.country): (row.dbt_valid_from, row.dbt_valid_to) for row in rows}
    start, gone = found.pop(("Ghent", "Belgium"))
    assert start == datetime(2024, 2, 2, 9, 30)
    assert began <= gone <= ended
    assert found == {
        ("Lima", "Peru"): (first, None),
        ("Oslo", "Norway"): (first, moved),
        ("Oslo", "Norge"): (moved, None),
        ("Quito", "Ecuador"): (datetime(2024, 3, 3, 11), None),
    }


def _now() -> datetime:
    """The time in UTC, as rows of a session in UTC show it."""
    return datetime.now(UTC).replace(tzinfo=None)


def _rows(spark: Any, warehouse: str, name: str) -> list[Any]:
    with frazil.connect(spark, warehouse=warehouse, name="lake") as lake:
        return lake.sql(f"SELECT * FROM lake.db.{name}").collect()
