"""Maintenance beside writers and readers: in the end every engine reads what the model holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from interop_engines import DuckDB
from maintenance_soak import Soak
from pyiceberg.table import StaticTable

from frazil.spark.lake import Lake

SOAK_SECONDS = float(os.environ.get("FRAZIL_SOAK_SECONDS", "600"))


@pytest.mark.parametrize(
    ("version", "seconds"),
    [
        pytest.param(2, 8.0, marks=pytest.mark.interop),
        pytest.param(2, SOAK_SECONDS, marks=pytest.mark.soak),
        pytest.param(3, SOAK_SECONDS, marks=pytest.mark.soak),
    ],
)
def test_maintenance_beside_upserts_and_readers_loses_and_revives_nothing(
    spark: Any, sql_lake: Lake, duck: DuckDB, tmp_path: Path, version: int, seconds: float
) -> None:
    name = f"db.soak_{version}_{int(seconds)}"
    soak = Soak(
        lake=sql_lake, name=name, folder=tmp_path / "soak", version=version,
        retention=max(60.0, min(120.0, seconds / 4)),
    )  # fmt: skip
    soak.run(seconds)
    print({key: soak.counts[key] for key in sorted(soak.counts)}, len(soak.states) - 1, "batches")
    assert not soak.wrong, "\n".join(soak.wrong[:20])
    for done in ("files compacted", "newest batch", "long-lived reads", "batches streamed"):
        assert soak.counts[done], done
    expected = soak.rows()
    location = sql_lake.load_table(name).metadata_location
    columns = "id, v"
    java = spark.sql(f"select {columns} from java_sql.{name}").collect()
    assert sorted(map(tuple, java)) == sorted(expected)
    path = location.removeprefix("file://")
    assert sorted(duck.run(f"select {columns} from iceberg_scan('{path}')")) == sorted(expected)
    # PyIceberg reads position deletes and vectors, but no equality deletes.
    table = sql_lake.load_table(name)
    table.convert_equality_deletes()
    read = StaticTable.from_metadata(table.metadata_location).scan().to_arrow()
    shown = zip(*(read[column].to_pylist() for column in columns.split(", ")), strict=True)
    assert sorted(shown) == sorted(expected)
