"""The columns of a query's rows: those that Spark would give, and nothing of the scans below."""

import pyspark
import pytest
from pyspark.errors import AnalysisException

from ci_share import one_of_each

CREATE = """
CREATE TABLE db.t (id BIGINT NOT NULL, k INT, x DOUBLE, word STRING DEFAULT 'w')
USING iceberg TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')
"""
VALUES = [(n, n % 3, n / 2, f"w{n}") for n in range(12)]


@pytest.fixture(scope="module")
def filled(shared_lake, spark):
    lake = shared_lake
    lake.sql(CREATE)
    rows = spark.createDataFrame(VALUES, "id BIGINT, k INT, x DOUBLE, word STRING")
    lake.sql("INSERT INTO db.t SELECT * FROM {rows} WHERE id < 6", rows=rows)
    lake.sql("INSERT INTO db.t SELECT * FROM {rows} WHERE id >= 6", rows=rows)
    lake.sql("DELETE FROM db.t WHERE id = 7")
    return lake


def test_columns_are_found_by_their_tables(filled):
    for _ in range(2):
        found = filled.sql("SELECT t.*, u.word AS other FROM db.t JOIN db.t u ON t.id = u.k")
        assert {row.id for row in found.where("t.id < 2").select("t.id").collect()} == {0, 1}


def test_sparks_column_of_files_is_not_there(filled):
    with pytest.raises(AnalysisException, match="_metadata"):
        filled.sql("SELECT _metadata.file_path FROM db.t")
    schema = filled.sql("SELECT * FROM db.t").schema
    assert "_metadata" not in schema.names
    assert "parquet.field.id" not in schema.json()
    assert "DEFAULT" not in schema.json()


@pytest.mark.skipif(
    pyspark.__version__ < "4.1", reason="Spark 4.0 keeps a column's metadata, as the page says"
)
def test_what_spark_makes_of_a_result_knows_nothing_of_the_table(filled, spark, tmp_path):
    results = filled.sql("SELECT * FROM db.t"), filled.load_table("db.t").to_df()
    for number, rows in enumerate(results):
        folder = str(tmp_path / str(number))
        rows.write.parquet(folder)
        # Another column of the same name: Spark would find it by the field id of the first.
        rows.selectExpr("cast(k AS BIGINT) AS id").write.mode("append").parquet(folder)
        read = spark.read.parquet(folder)
        assert "field.id" not in read.schema.json()
        assert read.where("id IS NULL").count() == 0
    filled.sql("CREATE TEMPORARY VIEW of_t AS SELECT * FROM db.t")
    try:
        assert "field.id" not in spark.table("of_t").schema.json()
        assert spark.table("of_t").count() == 11
    finally:
        spark.catalog.dropTempView("of_t")


def test_a_spark_that_makes_plans_in_another_way(filled, monkeypatch):
    def fail(*_):
        raise TypeError("'JavaPackage' object is not callable")

    query = "SELECT id, k, struct(word) AS s FROM db.t WHERE id > 9"
    monkeypatch.setattr("frazil.spark.sql.new_columns._named_anew", fail)
    found = filled.sql(query)
    assert "field.id" not in found.schema.json()
    assert sorted(map(tuple, found.collect())) == [(10, 1, ("w10",)), (11, 2, ("w11",))]


@pytest.mark.parametrize(("name", "word"), one_of_each(["db.t", "db.u"], ["x", "word"]))
def test_equal_parts_of_a_query_are_read_once(filled, name, word):
    filled.sql("CREATE TABLE IF NOT EXISTS db.u USING iceberg AS SELECT * FROM db.t")
    query = f"""
        WITH c AS (SELECT k, {word}, max(id) AS n FROM {name} GROUP BY k, {word})
        SELECT k, {word}, n FROM c
        UNION ALL SELECT k, NULL, min(n) FROM c GROUP BY k
        UNION ALL SELECT NULL, min({word}), min(n) FROM c
    """
    rows = filled.sql(query)
    assert len(rows.collect()) == 11 + 3 + 1
    adaptive = rows._jdf.queryExecution().executedPlan()
    assert adaptive.executedPlan().toString().count("ReusedExchange") == 2
