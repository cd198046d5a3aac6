"""Executors find the same orphans as are found beside the session."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from independent_walk import local, lying, reached

from frazil.errors import ValidationError
from frazil.spark.session import costs


@pytest.fixture
def all_on_executors(monkeypatch):
    """Nothing is small."""
    monkeypatch.setattr(costs, "LISTED_FOLDERS", -1)


def old(paths: Any, age: int = 4 * 24 * 3600) -> None:
    moment = time.time() - age
    for path in paths:
        os.utime(path, (moment, moment))


@pytest.mark.parametrize("are_executors_asked", [False, True])
def test_metadata_files_that_only_older_logs_name_are_removed(
    spark, lake, monkeypatch, are_executors_asked
):
    """Also where metadata lay in another folder: that is no sign of another table."""
    if are_executors_asked:
        monkeypatch.setattr(costs, "LISTED_FOLDERS", -1)
    at = f"{lake.catalog.default_table_location('db.t')}/{{}}"
    properties = {"write.metadata.previous-versions-max": "2", "write.metadata.path": at}
    table = lake.create_table(
        "db.t", "id bigint", properties={key: x.format("before") for key, x in properties.items()}
    )
    table.set_properties({"note": "1"})
    table.set_properties({"write.metadata.path": at.format("after")})
    for number in range(4):
        table.set_properties({"note": str(number)})
    old(lying(table.location))
    done = table.maintenance.remove_orphan_files()
    assert done.orphan_files_count == 4
    visible = {path for path in lying(table.location) if not path.name.startswith(".")}
    assert visible == reached(table.metadata_location)
    assert len(visible) == 3


def test_executors_list_compare_and_delete(spark, lake, all_on_executors):
    table = lake.create_table("db.t", "id bigint, part int", partition_by=["part"])
    for start in (0, 10):
        table.append(spark.range(start, start + 10).selectExpr("id", "cast(id % 3 as int) part"))
    table.delete("id = 4")
    put = [f"{table.location}/data/part=1/x.parquet", f"{table.location}/metadata/y.avro"]
    for path in put:
        table.io.create(path, b"123")
    old(lying(table.location))
    young = f"{table.location}/data/young.parquet"
    table.io.create(young, b"")
    told = table.maintenance.remove_orphan_files(dry_run=True)
    assert sorted(told.frame["orphan_file_location"]) == sorted(put)
    assert (told.orphan_files_count, told.orphan_bytes, told.deleted_files_count) == (2, 6, 0)
    listed = spark.createDataFrame([(put[0],)], "file_path string")
    listed = listed.selectExpr("file_path", "timestamp'2020-01-01' as last_modified")
    named = table.maintenance.remove_orphan_files(file_list=listed, dry_run=True)
    assert named.frame["orphan_file_location"].to_list() == put[:1]
    done = table.maintenance.remove_orphan_files()
    assert (done.orphan_files_count, done.deleted_files_count, done.failures) == (2, 2, ())
    visible = {path for path in lying(table.location) if not path.name.startswith((".", "_"))}
    assert visible == reached(table.metadata_location) | {local(young)}
    other = lake.create_table("db.other", "id bigint")
    with pytest.raises(ValidationError, match="another table"):
        table.maintenance.remove_orphan_files(location=other.location)
    assert table.maintenance.remove_orphan_files().orphan_files_count == 0
