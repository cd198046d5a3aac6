"""Which sessions know a lake, and what is left when it is detached."""

import inspect
import os
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, DataFrameWriterV2, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.catalog import Catalog
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.merge import MergeIntoWriter

import frazil
from ci_share import in_circles
from frazil.errors import UnsupportedError, ValidationError
from programs import run_program

CLASSES = (SparkSession, ClassicDataFrame, Catalog)


def members():
    return {(owner, name): value for owner in CLASSES for name, value in vars(owner).items()}


def test_detaching_leaves_everything_as_it_was(spark, tmp_path):
    before = members()
    settings = dict(spark.conf.getAll)
    with frazil.connect(spark, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        settings_of_lakes = dict(spark.conf.getAll)
        lake.attach(name="lake")
        lake.attach(name="lake")
        assert members() != before
        with pytest.raises(AnalysisException):
            spark.table("lake.db.nothing")
        lake.attach(name="again")
        spark.sql("USE again.db")
        lake.detach()
        assert members() == before
        assert dict(spark.conf.getAll) == settings_of_lakes
        lake.detach()
        with pytest.raises(AnalysisException, match="lake"):
            spark.table("lake.db.nothing")
        assert spark.catalog.currentCatalog() == "spark_catalog"
        lake.attach(name="lake")
    assert members() == before
    assert settings.keys() <= settings_of_lakes.keys()


def test_another_program_that_replaces_a_method_keeps_it(spark, lake, monkeypatch):
    ours = SparkSession.sql
    monkeypatch.setattr(SparkSession, "sql", lambda self, *a, **k: ours(self, *a, **k))
    theirs = SparkSession.sql
    assert spark.sql("SHOW TABLES IN lake.db").count() == 0
    lake.detach()
    assert SparkSession.sql is theirs
    assert spark.sql("SELECT 1 AS one").columns == ["one"]


def test_faces_stay(spark, lake, rows):
    lake.detach()
    before = {name: inspect.signature(getattr(SparkSession, name)) for name in ("sql", "table")}
    lake.attach(name="lake")
    assert {name: inspect.signature(getattr(SparkSession, name)) for name in before} == before
    assert pickle.loads(pickle.dumps(SparkSession.sql)) is SparkSession.sql
    rows.writeTo("lake.db.t").create()
    assert isinstance(spark.read, DataFrameReader)
    assert isinstance(rows.write, DataFrameWriter)
    assert isinstance(rows.writeTo("lake.db.t"), DataFrameWriterV2)
    merge = rows.mergeInto("lake.db.t", rows.id == 1)
    assert isinstance(merge, MergeIntoWriter)
    assert isinstance(merge.whenMatched(), MergeIntoWriter.WhenMatched)
    assert isinstance(spark.table("lake.db.t"), DataFrame)
    assert rows.write.__class__.__name__ == "DataFrameWriter"


@pytest.mark.check
def test_every_object_of_a_session_is_the_session(spark, lake, rows):
    rows.writeTo("lake.db.t").create()
    same = [SparkSession.builder.getOrCreate(), SparkSession.getActiveSession(), rows.sparkSession]
    assert [each.table("lake.db.t").count() for each in same] == [5, 5, 5]
    another = spark.newSession()
    with pytest.raises(AnalysisException, match="lake"):
        another.table("lake.db.t")
    with pytest.raises(AnalysisException):
        another.range(1).writeTo("lake.db.t").append()
    own = frazil.Lake(another, lake.catalog)
    own.attach(name="mine")
    assert another.sql("SELECT * FROM mine.db.t").count() == 5
    own.detach()
    assert spark.table("lake.db.t").count() == 5


@pytest.mark.check
def test_a_session_made_before_the_lake_is_attached_does_not_know_it(spark, lake, rows):
    """Neither then nor later; one of its own it does."""
    lake.detach()
    before = spark.newSession()
    lake.attach(name="lake")
    rows.writeTo("lake.db.t").create()
    for each in (lambda: before.table("lake.db.t"), lambda: before.sql("SELECT * FROM lake.db.t")):
        with pytest.raises(AnalysisException, match="lake"):
            each()
    own = frazil.Lake(before, lake.catalog)
    own.attach(name="mine")
    assert before.sql("SELECT * FROM mine.db.t").count() == 5
    own.detach()
    assert spark.table("lake.db.t").count() == 5


SERVED = """
import sys
from pyspark.errors import AnalysisException
import frazil
from frazil.spark.catalog.sessions import serve_sessions
from frazil.spark.local.session import local_session
first = local_session(config={"spark.ui.enabled": "false", "spark.master": "local[1]"})
before = first.newSession()
for each in (first, before):
    # A session gets its parser when it is first asked for anything.
    each.sql("SELECT 1")
lakes = []
def attach(spark):
    lakes.append(frazil.connect(spark, warehouse=sys.argv[1]))
    lakes[-1].attach(name="lake")
serve_sessions(first, attach)
after = first.newSession()
after.sql("CREATE NAMESPACE lake.db")
after.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
again = after.newSession()
def answer(session):
    try:
        return session.sql("SELECT * FROM lake.db.t").count()
    except AnalysisException:
        return "unknown"
print("answers", [answer(each) for each in (first, before, after, again)])
"""


@pytest.mark.check
def test_sessions_that_are_made_after_a_server_begins_know_its_lakes(tmp_path):
    """Those of before are as they were."""
    printed = run_program(SERVED, tmp_path / "lake", cwd=tmp_path)
    assert "answers ['unknown', 'unknown', 1, 1]" in printed


def test_a_view_of_a_dataframe_keeps_its_rows_and_one_of_sql_follows(spark, lake, rows):
    """As Spark has it: a DataFrame is a plan of what was there, and a view's text is read again."""
    rows.writeTo("lake.db.t").create()
    spark.table("lake.db.t").createOrReplaceTempView("kept")
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW follows AS SELECT * FROM lake.db.t")
    count = "SELECT (SELECT count(*) FROM kept), (SELECT count(*) FROM follows)"
    assert spark.sql(count).collect() == [(5, 5)]
    spark.sql("INSERT INTO lake.db.t VALUES (9, 'new')")
    assert spark.sql(count).collect() == [(5, 6)]
    spark.sql("DELETE FROM lake.db.t")
    assert spark.sql(count).collect() == [(5, 0)]


@pytest.mark.check
def test_threads(spark, lake, rows):
    rows.writeTo("lake.db.t").create()

    def one(number):
        spark.sql(f"INSERT INTO lake.db.t VALUES ({100 + number}, 'x')")
        return spark.table("lake.db.t").where(f"id = {100 + number}").count()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, range(4))) == [1] * 4
        counts = list(threads.map(spark.sql, ["SELECT count(*) FROM lake.db.t"] * 2))
    assert [each.collect()[0][0] for each in counts] == [9, 9]


def test_names_of_lakes(spark, lake, tmp_path):
    with frazil.connect(spark, warehouse=str(tmp_path / "second")) as second:
        for name, words in (
            ("lake", "another lake"),
            ("spark_catalog", "Spark's own"),
            ("a.b", "no name"),
            ("global_temp", "Spark's own"),
        ):
            with pytest.raises(ValidationError, match=words):
                second.attach(name=name)
        assert [each.name for each in spark.catalog.listCatalogs()] == ["lake", "spark_catalog"]


def test_a_writer_of_before_and_an_exception_in_the_middle(spark, lake, rows):
    rows.writeTo("lake.db.t").create()
    reader = spark.read
    with pytest.raises(UnsupportedError):
        rows.write.sortBy("id").saveAsTable("lake.db.t", mode="append")
    lake.detach()
    with pytest.raises(AnalysisException, match="lake"):
        reader.table("lake.db.t")
    lake.attach(name="lake")
    assert spark.read.table("lake.db.t").count() == 5


@pytest.mark.parametrize("reader", in_circles([{}, {"checkpointLocation": "{folder}"}], test=1))
def test_streams(spark, lake, rows, tmp_path, reader):
    rows.writeTo("lake.db.t").create()
    folder = str(tmp_path / "checkpoint")
    given = {key: value.format(folder=folder) for key, value in reader.items()}

    def run(mode="append"):
        stream = spark.readStream.options(**given).table("lake.db.t")
        query = (
            stream.writeStream.option("checkpointLocation", folder)
            .trigger(availableNow=True)
            .outputMode(mode)
            .toTable("lake.db.copy")
        )
        query.awaitTermination()

    run()
    rows.selectExpr("id + 10 AS id", "n").writeTo("lake.db.t").append()
    run()
    run()
    assert sorted(row.id for row in spark.table("lake.db.copy").collect()) == [
        1, 2, 3, 4, 5, 11, 12, 13, 14, 15
    ]  # fmt: skip


def test_a_stream_adds_columns_as_a_batch_does(spark, lake, rows, tmp_path):
    rows.writeTo("lake.db.copy").create()
    rows.withColumn("x", F.lit(1.5)).writeTo("lake.db.t").create()
    stream = spark.readStream.table("lake.db.t").writeStream.trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    stream.option("mergeSchema", "true").toTable("lake.db.copy").awaitTermination()
    assert spark.table("lake.db.copy").where("x = 1.5").count() == 5
    assert spark.table("lake.db.copy").where("x IS NULL").count() == 5
    # The columns come with the rows, in one commit.
    assert len(lake.load_table("db.copy").metadata.metadata_log) == 1


def test_a_stream_that_replaces_all_rows_adds_columns_too(spark, lake, rows, tmp_path):
    rows.writeTo("lake.db.t").create()
    rows.select("n").writeTo("lake.db.counts").create()
    counts = spark.readStream.table("lake.db.t").groupBy("n").agg(F.count("*").alias("rows"))
    writer = counts.writeStream.outputMode("complete").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.option("merge-schema", "true").toTable("lake.db.counts").awaitTermination()
    found = {(row.n, row.rows) for row in spark.table("lake.db.counts").collect()}
    assert found == {("n0", 1), ("n1", 2), ("n2", 2)}


REFUSED_OPTIONS = {
    "unknown": ("append", {"nope": "1"}, "nope"),
    "malformed": ("append", {"merge-schema": "1"}, "true or false"),
    "of one write": ("append", {"validate-from-snapshot-id": "7"}, "of one write"),
    "all rows or partitions": ("complete", {"partitionOverwriteMode": "dynamic"}, "complete"),
}


@pytest.mark.parametrize("case", REFUSED_OPTIONS)
def test_options_that_a_stream_refuses_are_refused_before_it_starts(spark, lake, tmp_path, case):
    mode, options, words = REFUSED_OPTIONS[case]
    stream = spark.readStream.format("rate").load()
    stream = stream.groupBy("value").count() if mode == "complete" else stream
    writer = stream.writeStream.outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises((frazil.ConfigurationError, UnsupportedError), match=words):
        writer.toTable("lake.db.made")


def test_a_stream_makes_its_table_where_it_is_told(spark, lake, rows, tmp_path):
    rows.writeTo("lake.db.t").create()
    stream = spark.readStream.table("lake.db.t").writeStream.trigger(availableNow=True)
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    place = str(tmp_path / "elsewhere")
    stream.option("path", place).toTable("lake.db.copy").awaitTermination()
    assert lake.load_table("db.copy").location.endswith(place)
    assert spark.table("lake.db.copy").count() == 5


def test_a_stream_that_cannot_be_placed_is_an_error_of_start(spark, lake, rows, tmp_path):
    rows.writeTo("lake.db.t").create()
    rows.writeTo("lake.db.u").create()
    folder = str(tmp_path / "checkpoint")

    def start(name, checkpoint=folder):
        stream = spark.readStream.table(name) if isinstance(name, str) else name
        writer = stream.writeStream.option("checkpointLocation", checkpoint).format("noop")
        return writer.start()

    frame = spark.readStream.table("lake.db.t")
    query = start(frame)
    try:
        with pytest.raises(frazil.ValidationError, match="read the table again"):
            start(frame, str(tmp_path / "second"))
        assert query.isActive
    finally:
        query.stop()
    with pytest.raises(frazil.ValidationError, match="is of a stream of db"):
        start("lake.db.u")
    start("lake.db.t").stop()


@pytest.mark.check
def test_batches_of_a_stream_know_the_lake(spark, lake, rows, tmp_path):
    rows.writeTo("lake.db.t").create()
    rows.writeTo("lake.db.by_hand").create()
    folder = str(tmp_path / "checkpoint")

    def take(batch, _):
        batch.writeTo("lake.db.by_hand").append()
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql("DELETE FROM lake.db.by_hand WHERE id IN (SELECT id FROM batch)")

    stream = spark.readStream.option("checkpointLocation", folder).table("lake.db.t")
    started = stream.writeStream.foreachBatch(take).option("checkpointLocation", folder)
    started.trigger(availableNow=True).start().awaitTermination()
    assert spark.table("lake.db.by_hand").count() == 0


PROGRAM = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sql("CREATE NAMESPACE IF NOT EXISTS db")
spark.sql("CREATE TABLE lake.db.t AS SELECT 1 AS id")
first = spark.newSession().table("lake.db.t").count()
spark.stop()
again = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
again.range(3).selectExpr("CAST(id AS INT) AS id").writeTo("t").append()
print("rows", first, again.table("lake.db.t").count(), sys.argv[1:])
again.stop()
sys.exit(3)
"""


@pytest.mark.check
def test_frazil_run(tmp_path):
    """A program with two sessions, one after the other, that makes the namespace of --use."""
    (tmp_path / "job.py").write_text(PROGRAM)
    lake = ["--catalog", "lake", "--warehouse", tmp_path / "lake"]
    words = ["run", "--use", "lake.db", "--", "job.py", "--day", "1"]
    printed = run_program("frazil.cli", *lake, *words, cwd=tmp_path, code=3)
    assert "rows 1 4 ['--day', '1']" in printed


OTHERS = {
    "spark-sql": "a shell script",
    "machine": "a program of this machine",
    "perl": "a script of perl",
    "bash": "a shell script",
    "home": "a shell script",
}
LINES = {
    "perl": "#!/usr/bin/perl -w\nprint 1;\n",
    "bash": "#!/usr/bin/env -S bash -e\ntrue\n",
    "home": "#!/opt/python/bin/zsh\n",
    "plain": "print('ran', 1)\n",
    "python": "#!/usr/bin/env -S python3 -u\nprint('ran', 2)\n",
    "by_shell": "#!/bin/sh\n'''exec' \"/a folder/python\" \"$0\" \"$@\"\n' '''\nprint('ran', 3)\n",
}
RUN_EACH = """
import sys
from click.testing import CliRunner
from frazil.cli import main
for each in sys.argv[1:]:
    print(CliRunner().invoke(main, ["--warehouse", "lake", "run", "--", each]).output, end="")
"""


def test_frazil_run_of_what_is_no_python(tmp_path):
    """Another program is named as what it is, with what to give instead; Python's run."""
    for name, text in LINES.items():
        (tmp_path / name).write_text(text)
    shutil.copy(os.path.realpath(sys.executable), tmp_path / "machine")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    words = [*OTHERS, "plain", "python", "by_shell", "nowhere"]
    printed = run_program(RUN_EACH, *words, cwd=tmp_path, variables={"PATH": path}).splitlines()
    for said, (name, kind) in zip(printed, OTHERS.items(), strict=False):
        assert f"{name} is {kind}, which starts a process of its own" in said
        assert said.endswith("a file, -m and a module, or a script of a package")
    assert printed[len(OTHERS) : -1] == ["ran 1", "ran 2", "ran 3"]
    assert "nowhere is no file, and no script of a package" in printed[-1]
