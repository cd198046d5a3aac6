"""Footers are read where the entries of files do not tell enough, and nowhere else."""

from __future__ import annotations

import uuid

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import ConfigurationError
from frazil.spark.files.layout.footers import FactsCache
from frazil.spark.files.layout.trusted import FOOTERS_SETTING, is_trusted
from frazil.spark.session.facts import temporary_settings

OPERATION = "8f0c0d5e-4a55-4d0c-9a50-5b1a5f3c7c11"
BY_JAVA = f"00000-3-{OPERATION}-0-00001.parquet"
MAPPING = "schema.name-mapping.default"


def asked(table):
    """The files whose footers were read for scans."""
    paths = table.scan().plan().files["file_path"].to_list()
    return sorted(FactsCache(table.io.caches["footers"]).known(paths))


def rows(table):
    return sorted(map(tuple, table.to_df().collect()))


def added(lake, tmp_path, name, *, below="data", **properties):
    """A table with one file that Spark wrote without ids, added to it under a name."""
    place = tmp_path / f"t-{uuid.uuid4()}"
    table = lake.create_table(
        f"db.t{uuid.uuid4().hex}", "id bigint, s string", location=f"file://{place}"
    )
    file = place / below / name
    file.parent.mkdir(parents=True)
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]}), file)
    table.maintenance.add_files(str(file.parent), format="parquet")
    return table.refresh()


@pytest.mark.parametrize("partitions", [[], ["p"]])
def test_files_of_a_table_s_own_writer(spark, lake, partitions):
    table = lake.create_table("db.t", "id bigint, p int", partition_by=partitions)
    table.append(spark.sql("select id, int(id % 2) p from range(4)"))
    with table.update_schema() as update:
        update.add_column("late", "int")
    table.append(spark.sql("select id, int(id % 2) p, 7 late from range(4, 6)"))
    wanted = [(n, n % 2, 7 if n > 3 else None) for n in range(6)]
    assert rows(table) == wanted
    assert asked(table) == []
    with temporary_settings(spark, {FOOTERS_SETTING: "always"}):
        assert rows(table) == wanted
    assert len(asked(table)) == table.scan().plan().files.height


def test_files_that_were_added(spark, lake, tmp_path):
    table = added(lake, tmp_path, BY_JAVA)
    assert rows(table) == [(1, "a"), (2, "b")]
    assert len(asked(table)) == 1


@pytest.mark.parametrize(
    ("name", "below"),
    [("people.parquet", "data"), pytest.param(BY_JAVA, "elsewhere", marks=pytest.mark.check)],
)
def test_a_mapping_that_is_gone(spark, lake, tmp_path, name, below):
    """Files of other names or places are looked at, and read by their columns' places."""
    table = added(lake, tmp_path, name, below=below)
    table.remove_properties(MAPPING)
    assert rows(table) == [(1, "a"), (2, "b")]
    assert len(asked(table)) == 1


def test_a_file_that_is_taken_for_a_writer_s_own_is_refused(spark, lake, tmp_path):
    table = added(lake, tmp_path, BY_JAVA)
    table.remove_properties(MAPPING)
    with pytest.raises(Exception, match="doesn't contain any field Ids"):
        rows(table)
    assert asked(table) == []
    with temporary_settings(spark, {FOOTERS_SETTING: "always"}):
        assert rows(table) == [(1, "a"), (2, "b")]


def test_schemas_that_are_not_all_known(spark, lake):
    """A column of theirs may have had a name that another has now."""
    table = lake.create_table("db.t", "id bigint, gone int", format_version=1)
    table.append(spark.sql("select id, 1 gone from range(3)"))
    assert rows(table) == [(n, 1) for n in range(3)]
    assert asked(table)


def test_a_setting_that_says_nothing(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    table.append(spark.range(1))
    with (
        temporary_settings(spark, {FOOTERS_SETTING: "perhaps"}),
        pytest.raises(ConfigurationError, match="auto or always"),
    ):
        rows(table)


NAMES = {
    # Java, Flink, Frazil.
    f"d/p=1/{BY_JAVA}": True,
    f"00001-1760585154163-{OPERATION}-00002.parquet": True,
    f"0110/1010/0011/10010110-00000-5-{OPERATION}-00001.parquet": True,
    f"{OPERATION}/frazil_p0=a%2Fb/part-00000-{OPERATION}.c000.zstd.parquet": True,
    f"{OPERATION}/part-00000-{OPERATION}-c000.snappy.parquet": True,
    # PyIceberg, Trino, Impala, Spark alone, Hive.
    f"00000-0-{OPERATION}.parquet": False,
    f"20260629_095655_00023_wa2kj-{OPERATION}.parquet": False,
    "b04db6702468bed5-5008bc3600000000_1198296117_data.0.parq": False,
    f"p=1/part-00000-{OPERATION}.c000.snappy.parquet": False,
    "000000_0.parquet": False,
    f"{BY_JAVA}.copy": False,
}


def test_names_of_writers(spark, lake):
    table = lake.create_table("db.t", "id bigint")
    folder = f"{table.location}/data"
    paths = [f"{folder}/{name}" for name in NAMES]
    outside = [f"{folder}2/{BY_JAVA}", f"{table.location}/{BY_JAVA}", BY_JAVA]

    def files(paths, offsets=(4,)):
        given = {"file_path": paths, "file_format": ["parquet"] * len(paths)}
        return pl.DataFrame(given).with_columns(
            pl.lit(None if offsets is None else list(offsets), pl.List(pl.Int64)).alias(
                "split_offsets"
            )
        )

    assert is_trusted(table.metadata, files(paths), None).to_list() == list(NAMES.values())
    assert not is_trusted(table.metadata, files(outside), None).any()
    assert not is_trusted(table.metadata, files(paths, None), None).any()
    assert not is_trusted(
        table.metadata, files(paths).with_columns(file_format=pl.lit("orc")), None
    ).any()
