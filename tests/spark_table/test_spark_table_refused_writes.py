"""Stores that refuse a write, by Spark's writer and by Arrow's: typed errors and no commit."""

import pytest
from pyspark.errors import PySparkException

from ci_share import one_of_each
from frazil.errors import FrazilError, StorageError, UnsupportedError
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField, StringType, UUIDType

NATIVE = Schema((NestedField(1, "id", IntegerType()), NestedField(2, "v", StringType())))
BY_ARROW = Schema((NestedField(1, "id", IntegerType()), NestedField(2, "v", UUIDType())))
WAYS = {"native": (NATIVE, ()), "partitioned": (NATIVE, ("v",)), "arrow": (BY_ARROW, ())}
ROWS = "select 1 as id, '8b4c0d44-5d4a-4f3b-9d35-6d0f0a3f2a11' as v"


PLACES = [
    ("file:///dev/null/data", StorageError, "[Nn]ot a directory"),
    ("gibberish://there/data", (StorageError, UnsupportedError), "scheme .*gibberish"),
]


@pytest.mark.parametrize(("way", "case"), one_of_each(WAYS, PLACES))
def test_a_place_that_cannot_be_written(lake, spark, way, case):
    place, kind, reason = case
    schema, spec = WAYS[way]
    properties = {"write.data.path": place}
    table = lake.create_table("db.t", schema, partition_by=spec, properties=properties)
    with pytest.raises(kind, match=reason) as told:
        table.append(spark.sql(ROWS))
    assert place in str(told.value)
    assert "\n" not in str(told.value)
    assert table.refresh().metadata.snapshots == ()


def test_what_the_rows_come_from_keeps_its_own_errors(lake, spark, tmp_path):
    table = lake.create_table("db.t", NATIVE)
    source = str(tmp_path / "source")
    spark.sql(ROWS).write.parquet(source)
    rows = spark.read.parquet(source)
    for file in (tmp_path / "source").glob("part-*"):
        file.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as told:
        table.append(rows)
    assert not isinstance(told.value, FrazilError)
    with pytest.raises(PySparkException, match="no more"):
        table.append(spark.sql("select cast(raise_error('no more') as int) as id, 'a' as v"))
    assert table.refresh().metadata.snapshots == ()
