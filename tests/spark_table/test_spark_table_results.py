"""What appends and overwrites return: the rows and files that came and went."""

from __future__ import annotations

import pytest

from ci_share import in_circles
from frazil import ChangeResult


@pytest.fixture
def days(lake, spark):
    """Three files of ten rows: ids 0 to 9 on day 0, 10 to 19 on day 1, 20 to 29 on day 2."""
    table = lake.create_table("db.days", "id bigint, day int", partition_by="day")
    table.append(spark.range(30).selectExpr("id", "int(id / 10) as day").coalesce(1))
    return table


def rows(spark, count, day=1):
    return spark.range(100, 100 + count).selectExpr("id", f"{day} as day").coalesce(1)


def counts(result: ChangeResult) -> tuple[int | None, ...]:
    return (
        result.rows_inserted,
        result.rows_deleted,
        result.rows_copied,
        result.files_added,
        result.files_removed,
    )


def test_an_append_tells_what_came(days, spark):
    before = days.current_snapshot.snapshot_id
    result = days.append(rows(spark, 4))
    assert (result.command, result.snapshot_id) == ("append", before)
    assert counts(result) == (4, 0, 0, 1, 0)
    assert repr(result).startswith("APPEND\n  rows   4 inserted")
    assert not result.changes_nothing


@pytest.mark.parametrize(
    ("where", "mode", "expected"),
    in_circles(
        [
            pytest.param(None, "metadata", (4, 30, 0, 1, 3), id="everything"),
            pytest.param("day = 1", "metadata", (4, 10, 0, 1, 1), id="whole files"),
            # A file that metadata says to match in part is written anew, its rows not looked at.
            pytest.param(
                "id >= 25", "copy-on-write", (None, None, None, 2, 1), id="parts of files"
            ),
            pytest.param("id % 10 = 3", "copy-on-write", (4, 3, 27, 4, 3), id="what Spark finds"),
        ],
        test=1,
    ),
)
def test_an_overwrite_tells_what_came_and_went(days, spark, where, mode, expected):
    result = days.overwrite(rows(spark, 4), where=where)
    assert (result.command, result.mode) == ("overwrite", mode)
    files = days.files().count()
    assert counts(result)[:3] == expected[:3]
    assert result.files_removed == expected[4]
    assert files == 3 + result.files_added - result.files_removed


def test_an_overwrite_of_partitions_tells_what_came_and_went(days, spark):
    result = days.overwrite_partitions(rows(spark, 4))
    assert counts(result) == (4, 10, 0, 1, 1)
    assert days.overwrite_partitions(rows(spark, 4).where("false")).changes_nothing


@pytest.mark.check
def test_rows_that_only_a_look_would_tell_are_not_counted(days, spark):
    days.set_properties({"write.delete.mode": "merge-on-read"})
    days.delete("id in (11, 21)")
    assert days.overwrite_partitions(rows(spark, 4)).rows_deleted is None
    assert "some deleted" in repr(days.overwrite(rows(spark, 4), where="day = 2"))
