"""Columns that no file holds: what they are made of is evaluated as plain Spark would."""

import pyarrow.parquet as pq
import pytest

from ci_share import one_in
from frazil.storage.files import local_path

FAILING = [
    ("v void", "raise_error('boom') as v"),
    ("v string", "raise_error('boom') as v"),
    ("v struct<a bigint, v void>", "named_struct('a', id, 'v', raise_error('boom')) as v"),
    ("v struct<a bigint, v string>", "named_struct('a', id, 'v', raise_error('boom')) as v"),
    ("v array<struct<a bigint, v void>>",
     "array(named_struct('a', id, 'v', raise_error('boom'))) as v"),
    ("v map<string, struct<a bigint, v void>>",
     "map('k', named_struct('a', id, 'v', raise_error('boom'))) as v"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "expression"), one_in(2, FAILING), ids=[column for column, _ in FAILING]
)
def test_expressions_that_fail_stop_the_write(spark, lake, tmp_path, column, expression):
    table = lake.create_table("db.t", f"id bigint, {column}", format_version=3)
    df = spark.range(3).selectExpr("id", expression)
    with pytest.raises(Exception, match="boom"):
        df.write.format("noop").mode("overwrite").save()
    with pytest.raises(Exception, match="boom"):
        table.append(df)
    assert table.current_snapshot is None
    assert not list(tmp_path.rglob("*.parquet"))
    # Without rows nothing is evaluated.
    table.append(df.where("id < 0"))


def test_nulls_of_any_form_are_written(spark, lake):
    ddl = "id bigint, v void, s struct<a bigint, v void>, l array<struct<a bigint, v void>>, t int"
    table = lake.create_table("db.t", ddl, format_version=3)
    table.append(spark.range(1).selectExpr("id", "null v", "null s", "null l", "null t"))
    table.append(
        spark.range(1, 2).selectExpr(
            "id", "null v", "named_struct('v', null, 'a', id) s",
            "array(named_struct('a', id, 'v', null)) l", "int(id) t",
        )
    )  # fmt: skip
    assert sorted(tuple(row) for row in table.to_df().collect()) == [
        (0, None, None, None, None),
        (1, None, (1, None), [(1, None)], 1),
    ]
    for path in table.scan().plan().files["file_path"]:
        columns = pq.ParquetFile(local_path(path)).schema
        names = {columns.column(index).path for index in range(len(columns))}
        assert names == {"id", "s.a", "l.list.element.a", "t"}
