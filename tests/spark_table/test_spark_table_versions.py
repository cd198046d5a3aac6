"""The life of a table of each version: every command once, its rows worked out by hand."""

import pytest

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
