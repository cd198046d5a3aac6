"""Tables of accounts, whose sums a transaction keeps."""

ROWS = [(1, 10), (2, 20)]
COLUMNS = "id bigint, n bigint"
QUICK = {"commit.retry.min-wait-ms": "1", "commit.status-check.min-wait-ms": "1",
         "commit.status-check.num-retries": "2"}  # fmt: skip


def make_tables(lake, **properties):
    """Make `db.a` and `db.b` with the same rows in one file each."""
    lake.create_namespace_if_not_exists("db")
    for name in ("db.a", "db.b"):
        made = lake.create_table(name, COLUMNS, properties={**QUICK, **properties})
        made.append(frame(lake.spark, ROWS))


def frame(spark, rows, columns=COLUMNS):
    """Rows in one partition."""
    return spark.createDataFrame(list(rows), columns).coalesce(1)


def rows(lake, name):
    """The rows of a table as others see it."""
    return rows_of(lake.load_table(name))


def rows_of(table):
    """The rows of a table, sorted."""
    return sorted(tuple(row) for row in table.to_df().collect())


def both(lake):
    """The rows of both tables."""
    return rows(lake, "db.a"), rows(lake, "db.b")


def collected(frame):
    """The rows of a query, sorted."""
    return sorted(tuple(row) for row in frame.collect())
