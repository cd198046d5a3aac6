"""Where tables lie: registered by their folders, dropped, and moved."""

import logging
import shutil

import pytest

import frazil
from frazil.errors import MissingFileError, NoSuchTableError


def test_a_dropped_table_comes_back_by_its_folder_and_the_drop_says_how(spark, lake, caplog):
    table = lake.create_table("db.t", "id bigint")
    table.append(spark.range(3))
    with caplog.at_level(logging.WARNING, logger="frazil"):
        lake.sql("DROP TABLE db.t")
    assert table.metadata_location in caplog.text
    assert lake.register_table("db.t", table.location).count() == 3
    lake.drop_table("db.t")
    lake.sql(f"CALL system.register_table('db.t', '{table.location}')")
    assert lake.load_table("db.t").metadata_location == table.metadata_location
    with pytest.raises(NoSuchTableError, match="no metadata file"):
        lake.register_table("db.other", f"{table.location}/data")


def test_the_error_of_a_moved_table_says_how_it_is_read(spark, lake, tmp_path):
    table = lake.create_table("db.t", "id bigint")
    table.append(spark.range(3))
    new = tmp_path / "moved"
    shutil.move(table.location.removeprefix("file://"), new)
    lake.catalog.io.caches.clear()
    for refused in (
        lambda: lake.load_table("db.t"),
        lambda: frazil.open_table(str(new), spark=spark).count(),
    ):
        with pytest.raises(MissingFileError, match=r"moved=.*rewrite_table_path"):
            refused()
    there = frazil.open_table(str(new), spark=spark, moved={table.location: str(new)})
    assert there.count() == 3
