"""Footers are read where the entries of files do not tell enough, and nowhere else."""

from __future__ import annotations

import uuid

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.errors import ConfigurationError
from frazil.format.changes import RemoveSchemas
from frazil.spark.files import file_layouts
from frazil.spark.files.layout.trusted import FOOTERS_SETTING, is_trusted
from frazil.spark.session.facts import temporary_settings
from frazil.table.commit.operation import MetadataOperation

OPERATION = "8f0c0d5e-4a55-4d0c-9a50-5b1a5f3c7c11"
BY_JAVA = f"00000-3-{OPERATION}-0-00001.parquet"
MAPPING = "schema.name-mapping.default"


def asked(table):
    """The files whose footers were read for scans."""
    paths = table.scan().plan().files["file_path"].to_list()
    return sorted(path for path in paths if table.io.caches["footers"].get(path) is not None)


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
    [
        (BY_JAVA, "data"),
        pytest.param("people.parquet", "data", marks=pytest.mark.check),
        pytest.param(BY_JAVA, "elsewhere", marks=pytest.mark.check),
    ],
)
def test_a_mapping_that_is_gone(spark, lake, tmp_path, name, below):
    """Files that were added are looked at, and read by their columns' places."""
    table = added(lake, tmp_path, name, below=below)
    table.remove_properties(MAPPING)
    assert rows(table) == [(1, "a"), (2, "b")]
    assert len(asked(table)) == 1


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


JAVA = {"iceberg-version": "Apache Iceberg 1.10.0 (commit 2114bf6)"}


def entries(paths, **values):
    """Entries of files that a table's own writer made, but for these values."""
    given = {
        "file_path": paths,
        "file_format": "parquet",
        "split_offsets": [4],
        "snapshot_id": None,
        "spec_id": 0,
    } | values
    offsets = given.pop("split_offsets")
    return pl.DataFrame(given).with_columns(
        pl.lit(offsets, pl.List(pl.Int64())).alias("split_offsets"),
        pl.col("snapshot_id").cast(pl.Int64),
    )


def made(lake, spark, *, partitions=(), schema="id bigint, p int", **properties):
    """A table, and the id of a snapshot with such properties in its summary."""
    table = lake.create_table(f"db.t{uuid.uuid4().hex}", schema, partition_by=list(partitions))
    table.append(spark.sql("select id, 1 p from range(1)"), snapshot_properties=properties)
    return table, table.metadata.current_snapshot_id


def test_names_of_writers(spark, lake):
    table, snapshot = made(lake, spark)
    folder = f"{table.location}/data"
    outside = [f"{folder}2/{BY_JAVA}", f"{table.location}/{BY_JAVA}", BY_JAVA]

    def trusted(paths, **values):
        found = entries(paths, **{"snapshot_id": snapshot} | values)
        return is_trusted(table.metadata, found, None).to_list()

    assert trusted([f"{folder}/{name}" for name in NAMES]) == list(NAMES.values())
    assert trusted(outside) == [False] * 3
    for values in ({"split_offsets": None}, {"file_format": "orc"}, {"snapshot_id": None}):
        assert trusted([f"{folder}/{BY_JAVA}"], **values) == [False]


@pytest.mark.parametrize(
    ("properties", "partitions", "expected"),
    [
        ({}, [], True),
        ({}, ["p"], True),
        (JAVA, [], True),
        (JAVA, ["bucket(4, id)"], True),
        (JAVA, ["p"], False),
        ({"iceberg-version": "0.7.0"}, [], False),
        ({"engine-name": "frazil"}, [], False),
    ],
)
def test_who_made_the_snapshot(spark, lake, properties, partitions, expected):
    """Values that partitions have may be left out of files; Frazil's have them."""
    table, snapshot = made(lake, spark, partitions=partitions, **properties)
    files = entries([f"{table.location}/data/{BY_JAVA}"], snapshot_id=snapshot)
    assert is_trusted(table.metadata, files, None).to_list() == [expected]


def test_a_column_that_another_writer_leaves_to_the_partition(spark, lake):
    """As DuckDB writes a file of Java's anew, and under its name."""
    table, _ = made(lake, spark, partitions=["p"], **JAVA)
    (path,) = table.scan().plan().files["file_path"]
    local = path.removeprefix("file://")
    stored = pq.read_table(local)
    pq.write_table(stored.drop_columns(["p"]), local)
    assert rows(table) == [(0, 1)]


def test_a_file_that_is_taken_for_a_writer_s_own_is_refused(spark, lake):
    table, _ = made(lake, spark)
    (path,) = table.scan().plan().files["file_path"]
    stored = pa.table({"id": [0], "p": pa.array([1], pa.int32())})
    pq.write_table(stored, path.removeprefix("file://"))
    with pytest.raises(Exception, match="doesn't contain any field Ids"):
        rows(table)
    assert asked(table) == []
    with temporary_settings(spark, {FOOTERS_SETTING: "always"}):
        assert rows(table) == [(0, 1)]


def removed_by_java(table):
    """Every schema but the current one."""
    gone = table.metadata.schemas_by_id.keys() - {table.metadata.current_schema_id}
    table.port.run(MetadataOperation(lambda base: [RemoveSchemas(tuple(gone))]))


def removed_by_frazil(table):
    table.maintenance.remove_unused_specs_and_schemas()


@pytest.mark.parametrize(("remove", "footers"), [(removed_by_java, 64), (removed_by_frazil, 1)])
def test_names_of_schemas_that_are_gone(spark, lake, monkeypatch, remove, footers):
    """A file with the names of two columns the other way round is read by its ids alone."""
    monkeypatch.setattr(file_layouts, "CHECKED_FILES", footers)
    table = lake.create_table("db.t", "a int, b int")

    def swap():
        for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
            with table.update_schema() as update:
                update.rename_column(old, new)

    swap()
    table.append(spark.sql("select 1 b, 2 a"))
    swap()
    table.append(spark.sql("select 3 a, 4 b"))
    table.append(spark.sql("select 1 a, 5 b"))
    head = table.metadata.current_snapshot_id
    table.maintenance.expire_snapshots(older_than="2999-01-01", retain_last=1)
    assert list(table.metadata.snapshots_by_id) == [head]
    remove(table)
    assert sorted(map(tuple, table.to_df().where("a = 1").collect())) == [(1, 2), (1, 5)]
