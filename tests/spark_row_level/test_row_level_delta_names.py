"""The merge builder's names in camel case, as of delta-spark, beside those in snake case."""

from pyspark.sql import functions as F


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
