"""Random statements on a lake, beside plain Spark over temporary views of the same rows."""

import pytest
from pyspark.errors import AnalysisException
from random_statements import COLUMNS, TABLES, Statements

import frazil
from ci_share import examples

pytestmark = pytest.mark.soak
SCHEMA = "id bigint, k bigint, s string, p bigint"
VIEW = (
    "SELECT id + 1 AS id, k, s, p FROM {u} WHERE id IN "
    "(WITH t AS (SELECT k FROM {w}) SELECT k FROM t)"
)
GONE = {"u": 4}
"""The id of a row that a delete file takes out of a table."""


def parts_of(name):
    """The rows of each file of a table."""
    shift = TABLES.index(name)
    rows = [(n, None if n == 7 else n % 3, f"s{n + shift}", n // 3) for n in range(12 - 2 * shift)]
    return [rows[start::3] for start in range(3)]


def rows_of(name):
    return [row for part in parts_of(name) for row in part if row[0] != GONE.get(name)]


def fill(spark, lake, namespace, name):
    modes = {f"write.{each}.mode": "merge-on-read" for each in ("delete", "update", "merge")}
    made = lake.create_table((namespace, name), SCHEMA, properties=modes)
    for part in parts_of(name):
        made.append(spark.createDataFrame(part, SCHEMA).coalesce(1))
    if name in GONE:
        made.delete(f"id = {GONE[name]}")


@pytest.fixture(scope="module")
def sides(spark, tmp_path_factory):
    """A lake that is attached too, and temporary views of the same rows in another session."""
    plain = spark.newSession()
    folder = tmp_path_factory.mktemp("lake")
    with frazil.connect(spark, warehouse=str(folder), name="lake") as lake:
        for namespace in ("db", "new"):
            lake.create_namespace(namespace)
            for name in TABLES:
                fill(spark, lake, namespace, name)
        for name in TABLES:
            as_views(plain.createDataFrame(rows_of(name), SCHEMA), name)
        lake.create_view("db.v", VIEW.format(u="db.u", w="db.w"))
        as_views(plain.sql(VIEW.format(u="u", w="w")), "v")
        lake.attach(name="lake")
        yield lake, plain
        spark.sql("USE spark_catalog.default")


def as_views(rows, name):
    """Rows by a short name, which CTEs have too, and by one that none has."""
    rows.createOrReplaceTempView(name)
    rows.createOrReplaceTempView(f"plain_{name}")


def use(lake, spark, namespace):
    lake.sql(f"USE {namespace}")
    spark.sql(f"USE lake.{namespace}")


def said(text, prefix, place="_pos"):
    return text.format(pos=place, **{name: f"{prefix}{name}" for name in (*TABLES, "v")})


def as_text(rows):
    return sorted(str(tuple(row)) for row in rows)


@pytest.mark.parametrize("seed", range(examples(120)))
def test_queries(sides, spark, seed):
    lake, plain = sides
    use(lake, spark, "db")
    text = Statements(seed, views=("v",)).query()
    try:
        wanted = as_text(plain.sql(said(text, "plain_", "p")).collect())
    except AnalysisException as error:
        pytest.skip(f"plain Spark refuses it: {error.getCondition()}")
    assert as_text(spark.sql(said(text, "lake.db.")).collect()) == wanted, text
    assert as_text(lake.sql(said(text, "db.")).collect()) == wanted, text


@pytest.mark.parametrize("by", ["lake", "session"])
@pytest.mark.parametrize("seed", range(examples(24)))
def test_changes(sides, spark, seed, by):
    """Each follows the one before it."""
    lake, plain = sides
    use(lake, spark, "new")
    statements = Statements(seed, places=False)
    lake.sql("DROP TABLE new.t PURGE")
    fill(spark, lake, "new", "t")
    left = plain.createDataFrame(rows_of("t"), SCHEMA)
    before = plain.table("t")
    try:
        for _ in range(3):
            as_views(left, "t")
            text, after = statements.change()
            try:
                rows = plain.sql(said(after, "plain_")).toDF(*COLUMNS).collect()
            except AnalysisException:
                continue
            run, prefix = (lake.sql, "new.") if by == "lake" else (spark.sql, "lake.new.")
            run(said(text, prefix))
            assert as_text(lake.sql("SELECT * FROM new.t").collect()) == as_text(rows), text
            left = plain.createDataFrame(rows, SCHEMA)
    finally:
        as_views(before, "t")
