"""Many statements: nothing is left behind, and what is kept stays."""

from __future__ import annotations

import os
import tempfile
import threading

import pytest
from pyspark.errors import PySparkException
from sql_cases import as_text

from frazil.errors import FrazilError

pytestmark = pytest.mark.soak


@pytest.fixture
def filled(lake):
    """A lake with a table of three rows, one of them deleted by a vector."""
    lake.sql(
        "CREATE TABLE db.t (id INT, name STRING) TBLPROPERTIES ('format-version' = '3', "
        "'write.delete.mode' = 'merge-on-read')"
    )
    lake.sql("INSERT INTO db.t SELECT /*+ COALESCE(1) */ CAST(id AS INT), 'n' FROM range(4)")
    lake.sql("DELETE FROM db.t WHERE id = 3")
    return lake


def _statements(spark):
    """Cheap statements of all kinds; some are refused."""
    one = spark.createDataFrame([(1, "x")], "id int, name string")
    return (
        lambda lake: lake.sql("SELECT t.id FROM db.t JOIN db.t u ON t.id = u.id WHERE t.id = 1"),
        lambda lake: lake.sql("SELECT id FROM db.t WHERE id = :id", {"id": 2}),
        lambda lake: lake.sql("SELECT t.id FROM db.t JOIN {one} o ON t.id = o.id", one=one),
        lambda lake: lake.sql("WITH c AS (SELECT count(*) AS n FROM db.t.files) SELECT n FROM c"),
        lambda lake: lake.sql("SHOW TABLES IN db"),
        lambda lake: lake.sql("SELECT nope FROM db.t"),
        lambda lake: lake.sql("SELECT raise_error('no') FROM db.t"),
        lambda lake: lake.sql("DELETE FROM db.t WHERE id = 77"),
        lambda lake: lake.sql("UPDATE db.t SET nope = 1"),
        lambda lake: lake.sql("MERGE INTO db.t USING {one} o ON t.id = o.nope "
                              "WHEN MATCHED THEN DELETE", one=one),
    )  # fmt: skip


@pytest.mark.parametrize("times", [3, 100])
def test_nothing_is_left_behind(filled, spark, times, no_leftovers):
    statements = _statements(spark)
    kept = filled.sql("SELECT id, name FROM db.t WHERE id < 3")
    before = sorted(as_text(kept.collect()))

    def all_of_them():
        for run in statements:
            try:
                run(filled).collect()
            except (FrazilError, PySparkException):
                continue

    all_of_them()
    first = _left_behind(filled)
    for _ in range(times):
        all_of_them()
    filled.sql("INSERT INTO db.t VALUES (9, 'later')")
    filled.sql("UPDATE db.t SET name = 'changed'")
    assert sorted(as_text(kept.collect())) == before == ["0|n", "1|n", "2|n"]
    after = _left_behind(filled)
    assert after[:2] == first[:2]
    # A pool may start another of its threads; a second pool would have threads of the same names.
    assert len(set(after[2])) == len(after[2])
    assert _kinds(after[2]) <= _kinds(first[2])


def _kinds(threads):
    """The names of threads without their numbers."""
    return {name.rstrip("0123456789") for name in threads}


def _left_behind(lake):
    """Folders, files of the table that no commit of the test explains, and names of threads."""
    folders = {each for each in os.listdir(tempfile.gettempdir()) if "frazil" in each}
    location = lake.load_table("db.t").metadata.location
    data = os.path.join(location.removeprefix("file://"), "data")
    statements = [each for each in os.listdir(data) if os.path.isdir(os.path.join(data, each))]
    empty = [each for each in statements if not os.listdir(os.path.join(data, each))]
    return folders, empty, [each.name for each in threading.enumerate()]
