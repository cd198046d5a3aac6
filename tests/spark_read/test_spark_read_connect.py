"""Tables read over Spark Connect, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from programs import run_program

HERE = Path(__file__).parent


@pytest.mark.soak
def test_a_table_is_read_over_connect(connect_url: str, tmp_path: Path) -> None:
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}/w")
    catalog.create_namespace("db")
    numbers = [1.0, float("nan"), -0.0]
    data = pa.table(
        {
            "a": pa.array([1, 2, 3], pa.int64()),
            "b": pa.array(["x", "y", "z"]),
            "d": pa.array(numbers),
            "s": pa.array([{"x": x} for x in numbers], pa.struct({"x": pa.float64()})),
        }
    )
    table: Any = catalog.create_table("db.t", schema=data.schema)
    table.append(data)
    (task,) = table.scan().plan_files()
    said = run_program(
        HERE / "connect_scan.py", connect_url, table.metadata_location, task.file.file_path
    )
    assert "ROWS [(2, 'y', 1, True), (3, 'z', 2, True)]" in said
    assert "AGAIN 1" in said
    assert "FLOATS [1, 1, 1, 1] 1" in said


@pytest.mark.check
def test_deletes_apply_over_connect(connect_url: str, tmp_path: Path) -> None:
    said = run_program(HERE / "connect_deletes.py", connect_url, tmp_path)
    (line,) = [line for line in said.splitlines() if line.startswith("RESULT ")]
    found = json.loads(line.removeprefix("RESULT "))
    left = [[0, "a"], [1, "b"], [2, "a"], [4, "a"], [5, "b"], [7, "b"], [8, "a"]]
    assert found == {
        "rows": left,
        "filtered": [7, 8],
        "joined": len(left),
        "deleted": [-1, 1, 3, 6],
        "resolved": left,
        "kept": left,
    }
