"""Statements run on a lake, and what comes back of their rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from frazil.cli.layout import TextColumn
from frazil.cli.local_spark import plain_value
from frazil.cli.sql.results import FirstRows, Form, export, kind_of
from frazil.spark.lake import Lake


def first_rows_of(lake: Lake, text: str, limit: int) -> FirstRows:
    """Run a statement, and return its first rows."""
    found = lake.sql(text)
    if not found.columns:
        return FirstRows()
    rows = found.limit(limit + 1).collect()
    fields = found.schema.fields
    return FirstRows(
        tuple(TextColumn(each.name, kind_of(each.dataType.simpleString())) for each in fields),
        tuple(
            tuple(
                plain_value(value, each.dataType) for value, each in zip(row, fields, strict=True)
            )
            for row in rows[:limit]
        ),
        len(rows) > limit,
    )


def export_rows_of(lake: Lake, text: str, form: Form, limit: int | None) -> None:
    """Run a statement, and print its rows as JSON or CSV; a partition at a time is in memory."""
    found: DataFrame = lake.sql(text)
    if not found.columns:
        return
    fields = found.schema.fields
    limited = found if limit is None else found.limit(limit)
    rows = (
        [plain_value(value, each.dataType) for value, each in zip(row, fields, strict=True)]
        for row in limited.toLocalIterator()
    )
    export(form, found.columns, rows)
