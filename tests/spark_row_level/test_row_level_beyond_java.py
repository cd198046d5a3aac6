"""What docs/coming-from-java.md says of commands that the Java runtime refuses or gets wrong."""

import math

import pytest
from pyspark.sql import functions as F

MODES = {f"write.{each}.mode": "copy-on-write" for each in ("delete", "update", "merge")}


@pytest.fixture
def table_settings():
    rows = "select id as k, double(id) as d, 'old' as v from range(0, 6)"
    return {"schema": "k bigint, d double, v string", "properties": MODES, "appends": [rows]}


def rows_of(table, *columns):
    return sorted(tuple(row) for row in table.scan(columns=list(columns)).to_df().collect())


def test_a_file_is_not_dropped_with_its_nulls(table, spark):
    table.append(spark.sql("select 10L as k, 1.0D as d, v from values ('x'), (null) t(v)"))
    table.delete("v <> 'w'")
    assert rows_of(table, "k", "v") == [(10, None)]


@pytest.mark.check
def test_nan_is_the_largest_double(table, spark):
    table.append(spark.sql("select 20L as k, d, 'n' as v from values (1.0D), (double('NaN')) t(d)"))
    assert table.delete("d > 5").rows_deleted == 1
    assert all(not math.isnan(d) for _, d in rows_of(table, "k", "d"))


@pytest.mark.check
def test_a_row_that_matches_often_is_kept_once_by_clauses_by_source(table, spark):
    source = spark.sql("select * from values (1L), (1L), (2L) s(k)")
    table.merge(source, on="target.k = source.k").when_not_matched_by_source_delete().execute()
    assert rows_of(table, "k") == [(1,), (2,)]


@pytest.mark.check
def test_a_random_source_and_random_values_mean_one_thing(table, spark):
    source = spark.range(6).selectExpr("id as k", "rand() as d", "'new' as v").where("d < 2")
    merge = table.merge(source, on="target.k = source.k").when_matched_update_all()
    done = merge.execute()
    assert done.rows_updated == 6
    assert table.update({"d": "rand() + 7"}, "k < 3").rows_updated == 3
    drawn = rows_of(table, "k", "d")
    assert [7 <= d < 8 for _, d in drawn] == [True] * 3 + [False] * 3
    assert rows_of(table, "k", "d") == drawn


def test_sub_queries_in_on_and_in_clauses(table, spark):
    spark.range(2, 4).selectExpr("id as n").createOrReplaceTempView("allowed")
    source = spark.sql("select id as k from range(0, 6)")
    on = "target.k = source.k and target.k in (select n from allowed)"
    merge = table.merge(source, on=on)
    merge.when_matched_delete(condition="source.k = (select max(n) from allowed)").execute()
    assert rows_of(table, "k") == [(0,), (1,), (2,), (4,), (5,)]


def test_new_columns_have_names_with_dots(table, spark):
    table.set_properties({"write.spark.accept-any-schema": "true"})
    source = spark.sql("select 1L as k, 'x' as other, 'y' as `a.b`")
    merge = table.merge(source, on="target.k = source.k").with_schema_evolution()
    merge.when_matched_update({"`a.b`": "source.`a.b`"}).execute()
    assert table.to_df().where("k = 1").collect()[0]["a.b"] == "y"


# The merge builder's names in camel case, as of delta-spark, beside those in snake case.


def merged(lake, spark, name, in_snake_case):
    """Merge by every clause, with a new column in the source."""
    table = lake.create_table(f"db.{name}", "k int, v string")
    table.append(spark.sql("select int(id) as k, 'old' as v from range(8)"))
    source = spark.sql("select int(id) as k, 'new' as v, id * 10 as n from range(4, 12)")
    matched, new, rest = "source.k < 6", "source.k > 10", "target.k < 2"
    merge = table.merge(source, on="target.k = source.k")
    if in_snake_case:
        (
            merge.when_matched_delete(condition="source.k = 4")
            .when_matched_update({"v": "source.v || '!'"}, condition=matched)
            .when_matched_update_all(condition="source.k = 6")
            .when_not_matched_insert({"k": "source.k", "v": F.lit("one")}, condition=new)
            .when_not_matched_insert_all(condition="source.k > 8")
            .when_not_matched_by_source_update({"v": "target.v || '?'"}, condition=rest)
            .when_not_matched_by_source_delete(condition="target.k = 2")
            .with_schema_evolution()
        )
    else:
        (
            merge.whenMatchedDelete("source.k = 4")
            .whenMatchedUpdate(matched, {"v": "source.v || '!'"})
            .whenMatchedUpdateAll("source.k = 6")
            .whenNotMatchedInsert(new, {"k": "source.k", "v": F.lit("one")})
            .whenNotMatchedInsertAll("source.k > 8")
            .whenNotMatchedBySourceUpdate(rest, {"v": "target.v || '?'"})
            .whenNotMatchedBySourceDelete("target.k = 2")
            .withSchemaEvolution()
        )
    return table, merge.execute()


@pytest.mark.check
def test_each_name_is_its_twin(lake, spark):
    twins = [merged(lake, spark, f"t{snake:d}", snake) for snake in (False, True)]
    expected = [
        *[(0, "old?", None), (1, "old?", None), (3, "old", None)],
        *[(5, "new!", None), (6, "new", 60), (7, "old", None)],
        *[(9, "new", 90), (10, "new", 100), (11, "one", None)],
    ]
    figures = []
    for table, done in twins:
        assert [tuple(row) for row in table.to_df().orderBy("k").collect()] == expected
        assert table.to_df().columns == ["k", "v", "n"]
        figures.append((done.rows_updated, done.rows_deleted, done.rows_inserted))
    assert figures == [(4, 2, 3), (4, 2, 3)]
