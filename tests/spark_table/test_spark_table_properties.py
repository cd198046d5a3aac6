"""Known properties by the public face: refused when they are set, named where they are needed."""

import pyarrow.parquet as pq
import pytest

from frazil.errors import ConfigurationError
from frazil.format.changes import SetProperties

WRONG = {"write.target-file-size-bytes": "10MB"}


def test_wrong_properties_are_refused_by_every_call_that_sets_them(lake, spark, files):
    rows = spark.range(3)
    calls = [
        lambda: lake.create_table("db.new", "id bigint", properties=WRONG),
        lambda: lake.create_table_as_select("db.new", rows, properties=WRONG),
        lambda: lake.create_or_replace_table_as_select("db.new", rows, properties=WRONG),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="target-file-size-bytes is '10MB'"):
            call()
    assert not lake.table_exists("db.new")
    assert files() == set()
    table = lake.create_table_as_select("db.t", rows)
    before = files()
    calls = [
        lambda: table.set_properties(WRONG),
        lambda: table.replace_as_select(rows, properties=WRONG),
        lambda: lake.replace_table_as_select("db.t", rows, properties=WRONG),
    ]
    for call in calls:
        with pytest.raises(ConfigurationError, match="target-file-size-bytes is '10MB'"):
            call()

    def in_a_transaction():
        with table.transaction() as changes:
            changes.append(rows)
            changes.set_properties(WRONG)

    with pytest.raises(ConfigurationError, match="10MB"):
        in_a_transaction()
    assert table.refresh().scan().count() == 3
    assert files() == before


def test_a_table_with_wrong_properties_can_be_read_and_not_written(lake, spark, files):
    table = lake.create_table_as_select("db.t", spark.range(3))
    wrong = {
        "write.wap.enabled": "perhaps",
        "write.parquet.row-group-size-bytes": "128MB",
        "write.metadata.metrics.column.id": "all",
    }
    table.catalog.commit_table(table.identifier, (), [SetProperties(wrong)])
    table.refresh()
    assert sorted(row.id for row in table.to_df().collect()) == [0, 1, 2]
    before = files()
    for name in wrong:
        with pytest.raises(ConfigurationError, match=name):
            table.append(spark.range(3, 5))
        table.remove_properties(name)
    assert files() == before
    table.append(spark.range(3, 5))
    assert table.scan().count() == 5


def test_parquet_settings_reach_the_files(lake, spark, tmp_path):
    properties = {
        "write.parquet.compression-codec": "GZIP",
        "write.parquet.dict-encoding-enabled.column.id": "FALSE",
        "write.parquet.bloom-filter-enabled.column.id": "true",
        "write.parquet.row-group-size-bytes": "4096",
        "write.parquet.row-group-check-min-record-count": "10",
        "write.parquet.row-group-check-max-record-count": "100",
    }
    table = lake.create_table("db.t", "id bigint", properties=properties)
    table.append(spark.range(2_000, numPartitions=1))
    (path,) = tmp_path.rglob("*.parquet")
    footer = pq.ParquetFile(path).metadata
    column = footer.row_group(0).column(0)
    assert column.compression == "GZIP"
    assert not column.has_dictionary_page
    assert column.bloom_filter_offset
    assert footer.num_row_groups > 1
