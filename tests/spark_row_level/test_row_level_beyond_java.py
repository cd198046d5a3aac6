"""What docs/coming-from-java.md says of commands that the Java runtime refuses or gets wrong."""

import math

import pytest

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
