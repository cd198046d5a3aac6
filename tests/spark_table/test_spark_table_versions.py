"""The life of a table of each version: every command once, its rows worked out by hand."""

import logging
import shutil

import pytest

import frazil
from frazil.errors import MissingFileError, NoSuchTableError

DDL = "id bigint, city string"


@pytest.mark.parametrize("version", [1, 3])
def test_every_command_once(lake, spark, version):
    def frame(*rows):
        return spark.createDataFrame(rows, DDL).coalesce(1)

    def rows():
        return sorted(tuple(row) for row in table.to_df().collect())

    table = lake.create_table("db.t", DDL, partition_by=["city"], format_version=version)
    table.append(frame((1, "a"), (2, "b"), (3, "c"), (4, "d")))
    table.overwrite(frame((9, "z")), where="id = 4")
    assert rows() == [(1, "a"), (2, "b"), (3, "c"), (9, "z")]
    table.delete("id = 1")
    table.update({"city": "'q'"}, "id = 2")
    assert rows() == [(2, "q"), (3, "c"), (9, "z")]
    merge = table.merge(frame((3, "m"), (5, "n")), on=["id"])
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows() == [(2, "q"), (3, "m"), (5, "n"), (9, "z")]
    table.overwrite_partitions(frame((7, "q"), (8, "new")))
    assert rows() == [(3, "m"), (5, "n"), (7, "q"), (8, "new"), (9, "z")]
    table.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1)
    assert (len(table.metadata.snapshots), len(rows())) == (1, 5)


# Where tables lie: registered by their folders, dropped, and moved.


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
