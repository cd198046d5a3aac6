"""What was really written is looked at before anything is committed."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from ci_share import one_of_each
from frazil.errors import FrazilError, InvalidDataFileError, StorageError, UnsupportedError
from frazil.format.schema import Schema
from frazil.format.types import IntegerType, NestedField, StringType, UUIDType
from frazil.spark.session import costs
from frazil.spark.write import files as writing
from programs import run_program


@pytest.fixture
def after_writing(monkeypatch):
    """Does something to the folder that Spark wrote before Frazil looks at it."""

    def do(act):
        real = writing.FileWrite.write_natively

        def natively(self, spark, aligned):
            real(self, spark, aligned)
            act(Path(self.folder.removeprefix("file://")))

        monkeypatch.setattr(writing.FileWrite, "write_natively", natively)

    return do


def refused(lake, table, df, *words, tmp_path):
    """The append fails with these words, commits nothing and leaves no file."""
    before = len(list(tmp_path.rglob("*.parquet")))
    with pytest.raises(InvalidDataFileError) as caught:
        table.append(df)
    for word in words:
        assert word in str(caught.value)
    assert lake.load_table("db.t").current_snapshot is None
    assert len(list(tmp_path.rglob("*.parquet"))) == before


HIDDEN = [
    "_temporary/0/_temporary/attempt_202401010000000000000000000000_0001_m_000000_7",
    ".spark-staging-1",
    "__magic/job-1/tasks/attempt_1/__base",
]


@pytest.mark.parametrize("place", HIDDEN, ids=["late-attempt", "staging", "magic"])
def test_files_in_hidden_folders_are_not_taken(spark, lake, after_writing, place):
    table = lake.create_table("db.t", "id bigint")

    def late(folder):
        (folder / place).mkdir(parents=True)
        shutil.copy(next(folder.glob("*.parquet")), folder / place / "late.parquet")
        shutil.copy(next(folder.glob("*.parquet")), folder / "_late.parquet")

    after_writing(late)
    table.append(spark.range(0, 10, 1, 2))
    assert sorted(row["id"] for row in table.to_df().collect()) == list(range(10))


def test_more_files_than_the_job_wrote(spark, lake, after_writing, tmp_path):
    table = lake.create_table("db.t", "id bigint")

    def double(folder):
        written = next(folder.glob("*.parquet"))
        shutil.copy(written, folder / f"again-{written.name}")

    after_writing(double)
    df = spark.range(0, 10, 1, 2)
    refused(lake, table, df, "Spark wrote 10 rows", "hold 15", tmp_path=tmp_path)


def test_fewer_files_than_the_job_wrote(spark, lake, after_writing, tmp_path):
    table = lake.create_table("db.t", "id bigint, p int", partition_by=["p"])
    after_writing(lambda folder: next(folder.rglob("*.parquet")).unlink())
    df = spark.range(10).selectExpr("id", "int(id % 2) p")
    refused(lake, table, df, "Spark wrote 10 rows", "hold 5", tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("spark.sql.parquet.outputTimestampType", ("'ts' is INT96", "INT64 as Timestamp")),
        ("spark.sql.parquet.fieldId.write.enabled", ("'id' has no field id, not 1",)),
        ("spark.sql.parquet.writeLegacyFormat", ("'d' is FIXED_LEN_BYTE_ARRAY", "INT32")),
    ],
    ids=["int96", "no-ids", "legacy-decimals"],
)
def test_other_types_or_ids_than_the_schema_s(spark, lake, monkeypatch, tmp_path, setting, words):
    table = lake.create_table("db.t", "id bigint, ts timestamp, d decimal(5, 2)")
    wrong = {
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.fieldId.write.enabled": "false",
        "spark.sql.parquet.writeLegacyFormat": "true",
    }
    settings = {**writing.WRITE_SETTINGS, setting: wrong[setting]}
    monkeypatch.setattr(writing, "WRITE_SETTINGS", settings)
    df = spark.sql("select id, timestamp_micros(id) ts, cast(id as decimal(5, 2)) d from range(3)")
    refused(lake, table, df, *words, ".parquet", tmp_path=tmp_path)


def test_rows_of_several_partitions_in_one_file(spark, lake, after_writing, tmp_path):
    table = lake.create_table("db.t", "id bigint", partition_by=["truncate(10, id)"])

    metadata = {"parquet.field.id": 1}
    settings = {"spark.sql.parquet.fieldId.write.enabled": "true"}

    def mix(folder):
        shutil.rmtree(folder)
        rows = spark.range(0, 20, 1, 1).select(F.col("id").alias("id", metadata=metadata))
        with writing.temporary_settings(spark, settings):
            rows.write.parquet(str(folder))

    after_writing(mix)
    words = ("several partitions of 'id_trunc'", "0 and 10")
    refused(lake, table, spark.range(20), *words, tmp_path=tmp_path)


def test_rows_in_the_folder_of_another_partition(spark, lake, after_writing, tmp_path):
    table = lake.create_table("db.t", "id bigint", partition_by=["bucket(4, id)"])

    def misplace(folder):
        one, *_ = sorted(folder.iterdir())
        one.rename(one.with_name(one.name.partition("=")[0] + "=7"))

    after_writing(misplace)
    refused(lake, table, spark.range(20), "id_bucket=", "laid them out as 7", tmp_path=tmp_path)


def test_many_files_are_checked_on_executors_alike(
    spark, lake, after_writing, monkeypatch, tmp_path
):
    table = lake.create_table("db.t", "id bigint", partition_by=["bucket(4, id)"])
    monkeypatch.setattr(costs, "LOCAL_FOOTERS", replace(costs.LOCAL_FOOTERS, here=0))
    table.append(spark.range(20))
    assert table.scan().count() == 20

    def misplace(folder):
        one, *_ = sorted(folder.iterdir())
        one.rename(one.with_name(one.name.partition("=")[0] + "=7"))

    after_writing(misplace)
    with pytest.raises(InvalidDataFileError, match="laid them out as 7"):
        table.append(spark.range(20))
    assert lake.load_table("db.t").scan().count() == 20


@pytest.mark.soak  # `make test` leaves files of such attempts, in `test_spark_write_files`
def test_tasks_that_fail_after_they_wrote_are_tried_again(tmp_path):
    # A local session tries a task once; another number of tries is a session of its own.
    program = Path(__file__).with_name("retried_tasks.py")
    assert run_program(program, tmp_path).split()[-1] == "right"


def test_codecs_that_this_spark_lacks(spark, lake, tmp_path):
    table = lake.create_table(
        "db.t", "id bigint", properties={"write.parquet.compression-codec": "brotli"}
    )
    read = spark.sparkContext.accumulator(0)
    rows = spark.range(3).rdd.map(lambda row: (read.add(1), row)[1]).toDF("id bigint")
    with pytest.raises(UnsupportedError, match=r"brotli.*compression-codec.*zstd"):
        table.append(rows)
    assert read.value == 0
    assert not list(tmp_path.rglob("*.parquet"))
    for codec in ("lz4", "gzip", "uncompressed", "snappy", "zstd"):
        table.append(spark.range(1), options={"compression-codec": codec})
    assert table.scan().count() == 5


# Stores that refuse a write, by Spark's writer and by Arrow's: typed errors and no commit.


NATIVE = Schema((NestedField(1, "id", IntegerType()), NestedField(2, "v", StringType())))
BY_ARROW = Schema((NestedField(1, "id", IntegerType()), NestedField(2, "v", UUIDType())))
WAYS = {"native": (NATIVE, ()), "partitioned": (NATIVE, ("v",)), "arrow": (BY_ARROW, ())}
WRITTEN = "select 1 as id, '8b4c0d44-5d4a-4f3b-9d35-6d0f0a3f2a11' as v"


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
        table.append(spark.sql(WRITTEN))
    assert place in str(told.value)
    assert "\n" not in str(told.value)
    assert table.refresh().metadata.snapshots == ()


def test_what_the_rows_come_from_keeps_its_own_errors(lake, spark, tmp_path):
    table = lake.create_table("db.t", NATIVE)
    source = str(tmp_path / "source")
    spark.sql(WRITTEN).write.parquet(source)
    rows = spark.read.parquet(source)
    for file in (tmp_path / "source").glob("part-*"):
        file.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as told:
        table.append(rows)
    assert not isinstance(told.value, FrazilError)
    with pytest.raises(PySparkException, match="no more"):
        table.append(spark.sql("select cast(raise_error('no more') as int) as id, 'a' as v"))
    assert table.refresh().metadata.snapshots == ()
