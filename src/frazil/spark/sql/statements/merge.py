"""MERGE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import DataFrame

from frazil.format.predicates.sql.quoting import (
    quote_name,
    quote_name_always,
)
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.expressions import Expressions
from frazil.spark.sql.query import query
from frazil.spark.sql.statements.target import (
    StatementTarget,
    alias_of,
    assignments_of,
    default_text,
    expressions_of,
    names_inside,
    target_of,
)
from frazil.spark.words import WordReader

_MAY_FOLLOW: Final = {
    "when_matched": "WHEN MATCHED takes UPDATE and DELETE",
    "when_not_matched": "WHEN NOT MATCHED takes INSERT",
    "when_not_matched_by_source": (
        "WHEN NOT MATCHED BY SOURCE takes DELETE and UPDATE SET column = value"
    ),
}
"""What a clause can do, by the beginning of the method's name."""


def merge(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run a MERGE."""
    reader.expect("MERGE")
    evolves = reader.takes("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = target_of(context, reader.names("the name of a table"))
    alias = alias_of(reader, "USING") or target.name
    reader.expect("USING")
    source, source_alias = _source(context, reader, before)
    expressions = expressions_of(context, target, alias, before)
    expressions.sides[source_alias] = lambda: source
    reader.expect("ON")
    on = expressions.bind(reader.text_to("WHEN"))
    builder = target.table.merge(
        source, on=on, target_alias=alias, source_alias=source_alias, branch=target.branch
    )
    if evolves:
        builder = builder.with_schema_evolution()
    clauses = 0
    while reader.takes("WHEN"):
        _clause(reader, builder, target, alias, expressions)
        clauses += 1
    reader.finish()
    if not clauses:
        raise reader.error("WHEN is expected")
    with expressions.views():
        builder.execute()


def _source(context: SqlContext, reader: WordReader, before: str) -> tuple[DataFrame, str]:
    begin = reader.place
    name = "source"
    if reader.sees("("):
        reader.inner_reader()
    else:
        name = reader.names("the name of a table")[-1]
        while not (reader.is_done or reader.sees_one_of("AS", "ON")) and reader.sees_one_of(
            "VERSION", "TIMESTAMP", "FOR", "SYSTEM_VERSION", "SYSTEM_TIME"
        ):
            reader.text_to("AS")
            reader.expect("AS", "OF")
            reader.word("a version or a time")
    stop = reader.words[reader.at - 1].stop
    text = reader.text[begin:stop]
    name = alias_of(reader, "ON") or name
    quoted = quote_name_always([name])
    rows = query(context, f"{before}SELECT * FROM {text} AS {quoted}")  # noqa: S608
    return rows, name


def _clause(
    reader: WordReader, builder: Any, target: StatementTarget, alias: str, expressions: Expressions
) -> None:
    if reader.takes("MATCHED"):
        kind = "when_matched"
    elif reader.takes("NOT", "MATCHED", "BY", "SOURCE"):
        kind = "when_not_matched_by_source"
    else:
        reader.expect("NOT", "MATCHED")
        reader.takes("BY", "TARGET")
        kind = "when_not_matched"
    condition = None
    if reader.takes("AND"):
        condition = expressions.bind(reader.text_to("THEN"))
    reader.expect("THEN")
    if reader.takes("DELETE"):
        _method(reader, builder, kind, "delete")(condition=condition)
    elif reader.takes("UPDATE", "SET"):
        if reader.takes("*"):
            _method(reader, builder, kind, "update_all")(condition=condition)
        else:
            values = assignments_of(reader, target, alias, expressions, ("WHEN",))
            _method(reader, builder, kind, "update")(values, condition=condition)
    else:
        reader.expect("INSERT")
        if reader.takes("*"):
            _method(reader, builder, kind, "insert_all")(condition=condition)
            return
        names = names_inside(reader)
        reader.expect("VALUES")
        inner = reader.inner_reader()
        texts = inner.list_of(inner.text_to, ",")
        if len(texts) != len(names):
            raise inner.error(f"{len(names)} values are expected")
        values = {
            quote_name([name]): default_text(target.schema, name)
            if text.strip().upper() == "DEFAULT"
            else expressions.bind(text)
            for name, text in zip(names, texts, strict=True)
        }
        _method(reader, builder, kind, "insert")(values, condition=condition)


def _method(reader: WordReader, builder: Any, kind: str, action: str) -> Callable[..., Any]:
    """The method of a clause.

    Raises:
        SqlSyntaxError: rows of this kind cannot have that done.
    """
    found: Callable[..., Any] | None = getattr(builder, f"{kind}_{action}", None)
    if found is None:
        raise reader.error(_MAY_FOLLOW[kind])
    return found
