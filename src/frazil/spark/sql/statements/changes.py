"""DELETE, UPDATE and TRUNCATE."""

from __future__ import annotations

from frazil.spark.row_level.delete import Delete
from frazil.spark.row_level.update import Update
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.statements.target import (
    alias_of,
    assignments_of,
    condition_of_rows,
    expressions_of,
    target_of,
)
from frazil.spark.words import WordReader


def delete(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run a DELETE."""
    reader.expect("DELETE", "FROM")
    target = target_of(context, reader.names("the name of a table"))
    alias = alias_of(reader, "WHERE") or target.name
    expressions = expressions_of(context, target, alias, before)
    where = "true"
    if reader.takes("WHERE"):
        where = condition_of_rows(context, target, alias, expressions, reader.text_to(";"))
    reader.finish()
    with expressions.views():
        Delete(where=where, alias=alias, options=target.options).run(target.table.port)


def update(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run an UPDATE."""
    reader.expect("UPDATE")
    target = target_of(context, reader.names("the name of a table"))
    alias = alias_of(reader, "SET") or target.name
    expressions = expressions_of(context, target, alias, before)
    reader.expect("SET")
    values = assignments_of(reader, target, alias, expressions, ("WHERE",))
    where = None
    if reader.takes("WHERE"):
        where = condition_of_rows(context, target, alias, expressions, reader.text_to(";"))
    reader.finish()
    with expressions.views():
        command = Update(assignments=values, where=where, alias=alias, options=target.options)
        command.run(target.table.port)


def truncate(context: SqlContext, reader: WordReader) -> None:
    """Run a TRUNCATE TABLE."""
    reader.expect("TRUNCATE", "TABLE")
    target = target_of(context, reader.names("the name of a table"))
    if reader.sees("PARTITION"):
        raise reader.error("a partition cannot be truncated: write DELETE FROM … WHERE")
    reader.finish()
    Delete(where="true", options=target.options).run(target.table.port)
