"""Several INSERTs of one FROM: one commit of all tables, over the rows of before."""

import pytest
from pyspark.errors import PySparkException

import frazil
from ci_share import one_of_each, only_in_check
from frazil.errors import FrazilError

SEVERAL = (
    "FROM {0}a INSERT INTO {0}a SELECT id + 10, 'more' INSERT INTO {0}b SELECT id, 'b' "
    "INSERT OVERWRITE {0}b SELECT id + 20, 'over' INSERT INTO {0}b SELECT max(id), 'last'"
)
FAILS = (
    "FROM {0}a INSERT INTO {0}b SELECT id, n "
    "INSERT INTO {0}a SELECT id, CAST(raise_error('these words') AS STRING)",
    "FROM {0}a INSERT OVERWRITE {0}b SELECT id, n INSERT INTO {0}a SELECT 1",
    "FROM {0}a INSERT INTO {0}b SELECT id, n INSERT INTO {0}none SELECT *",
)


RUNS = ("lake", "attached", "in use")
"""How statements come in: by `lake.sql`, and by an attached session that said USE, or did not."""


@pytest.fixture
def run(request, lake, spark):
    """Runs a statement on two tables, whose names follow what stands in the braces."""
    lake.sql("CREATE TABLE db.a AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(id, n)")
    lake.sql("CREATE TABLE db.b (id INT, n STRING)")
    if request.param == "lake":
        yield lambda text: lake.sql(text.format("db."))
        return
    lake.attach(name="lake")
    prefix = "lake.db."
    if request.param == "in use":
        spark.sql("USE lake.db")
        prefix = ""
    yield lambda text: spark.sql(text.format(prefix))
    spark.sql("USE spark_catalog.default")
    lake.detach()


def rows(lake, name):
    return sorted(tuple(row) for row in lake.load_table(f"db.{name}").to_df().collect())


def snapshots(lake):
    return [len(lake.load_table(f"db.{name}").metadata.snapshots) for name in "ab"]


@pytest.mark.parametrize("run", ["lake", only_in_check("attached"), "in use"], indirect=True)
def test_all_read_the_rows_of_before(lake, run, no_leftovers):
    before = snapshots(lake)
    run(SEVERAL)
    assert rows(lake, "a") == [(1, "x"), (2, "y"), (11, "more"), (12, "more")]
    assert rows(lake, "b") == [(2, "last"), (21, "over"), (22, "over")]
    assert [after - b for after, b in zip(snapshots(lake), before, strict=True)] == [1, 3]


@pytest.mark.parametrize(("run", "text"), one_of_each(RUNS, FAILS), indirect=["run"])
def test_all_or_none(lake, run, no_leftovers, tmp_path, text):
    files = sorted(tmp_path.rglob("*.parquet"))
    before = snapshots(lake)
    with pytest.raises((FrazilError, PySparkException)):
        run(text)
    assert (snapshots(lake), rows(lake, "b")) == (before, [])
    assert sorted(tmp_path.rglob("*.parquet")) == files


@pytest.mark.parametrize(
    "run", ["in use", only_in_check("lake"), only_in_check("attached")], indirect=True
)
def test_in_a_transaction(lake, run):
    run("BEGIN")
    run(SEVERAL)
    assert (rows(lake, "a"), rows(lake, "b")) == ([(1, "x"), (2, "y")], [])
    run("COMMIT")
    assert (len(rows(lake, "a")), len(rows(lake, "b"))) == (4, 3)


def test_one_after_the_other_where_a_catalog_commits_each_table_alone(spark, tmp_path):
    place = {"type": "filesystem", "warehouse": str(tmp_path / "files")}
    with frazil.connect(spark, **place) as lake:
        lake.create_namespace("db")
        lake.sql("CREATE TABLE db.a AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(id, n)")
        lake.sql("CREATE TABLE db.b (id INT, n STRING)")
        lake.sql(SEVERAL.format("db."))
        assert len(rows(lake, "a")) == 4
        assert rows(lake, "b") == [(2, "last"), (21, "over"), (22, "over")]


def test_into_two_lakes_and_a_table_of_sparks(lake, spark, tmp_path):
    lake.sql("CREATE TABLE db.a AS SELECT * FROM VALUES (1, 'x'), (2, 'y') AS v(id, n)")
    lake.attach(name="lake")
    with frazil.connect(spark, warehouse=str(tmp_path / "other")) as other:
        other.create_namespace("db")
        other.attach(name="other")
        spark.sql("CREATE TABLE other.db.b (id INT, n STRING)")
        spark.sql("CREATE TABLE other.db.c (id INT, n STRING)")
        spark.sql("CREATE TABLE spark_catalog.default.of_spark (id INT, n STRING) USING parquet")
        try:
            into = ("lake.db.a", "other.db.b", "spark_catalog.default.of_spark")
            each = " ".join(f"INSERT INTO {name} SELECT id + 10, n" for name in into)
            spark.sql(f"FROM lake.db.a {each}")
            assert [spark.table(name).count() for name in into] == [4, 2, 2]
            # The tables are those of the lake that is not the first one named.
            spark.sql(
                "FROM lake.db.a INSERT INTO other.db.b SELECT * INSERT INTO other.db.c SELECT *"
            )
            assert [spark.table(f"other.db.{name}").count() for name in "bc"] == [6, 4]
        finally:
            spark.sql("DROP TABLE spark_catalog.default.of_spark")
        other.detach()
    lake.detach()
