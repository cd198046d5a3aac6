"""Rows in and out of tables, as plain values."""

SIMPLE = "id bigint not null, city string, x double"


def frame(spark, rows, schema=SIMPLE):
    """A DataFrame of tuples."""
    return spark.createDataFrame(list(rows), schema)


def rows_of(source, *columns):
    """The rows of a DataFrame, table or scan as sorted tuples; nulls first."""
    df = source if hasattr(source, "collect") else source.to_df()
    found = [tuple(row) for row in (df.select(*columns) if columns else df).collect()]
    return sorted(found, key=in_order)


def in_order(row):
    """A key by which rows with nulls can be sorted."""
    return tuple((value is not None, str(type(value)), value) for value in row)
