"""INSERT, DELETE, UPDATE, MERGE and TRUNCATE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.errors import (
    SchemaMismatchError,
    SqlSyntaxError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.predicates.sql.quoting import (
    SparkForms,
    quote_name,
    quote_name_always,
    spark_text,
)
from frazil.format.schema import Schema
from frazil.spark.row_level.delete import Delete
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.store_assignment import StoreAssignment
from frazil.spark.row_level.update import Update
from frazil.spark.row_level.writes import Append, Overwrite, OverwritePartitions
from frazil.spark.session.facts import is_case_sensitive, type_support
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.expressions import Expressions
from frazil.spark.sql.qualifiers import with_short_qualifiers
from frazil.spark.sql.query import query
from frazil.spark.sql.words import WordReader, words_of
from frazil.spark.table import Table

_QUERIES: Final = ("SELECT", "VALUES", "FROM", "TABLE", "WITH", "MAP", "REDUCE")
_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


@dataclass(frozen=True, slots=True)
class Target:
    """The table that a statement changes.

    Attributes:
        branch: the one that its name says, as ``t.branch_x`` does.
        name: what columns can be qualified with.
    """

    table: Table
    branch: str | None
    name: str

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self.table.metadata.schema

    @property
    def whole_name(self) -> tuple[str, ...]:
        """The catalog, the namespace and the table."""
        return (self.table.catalog.name, *self.table.identifier)

    @property
    def options(self) -> CommitOptions:
        """Where a change is committed."""
        return CommitOptions(branch=self.branch)


def target_of(context: SqlContext, parts: tuple[str, ...]) -> Target:
    """Return the table of a name, which may say a branch.

    Raises:
        NoSuchTableError: there is none.
        ValidationError: the name says a tag, a snapshot or a metadata table, which do not change.
    """
    found = context.find(parts)
    if found is None:
        return Target(context.load(parts), None, parts[-1])
    said = found.version
    ref = said.ref
    refs = found.table.metadata.refs
    is_tag = ref is not None and ref in refs and not refs[ref].is_branch
    if found.metadata_table or said.snapshot_id or said.as_of or is_tag:
        raise ValidationError(f"{'.'.join(parts)} cannot be changed: name the table or a branch")
    name = parts[-2] if ref is not None and len(parts) > 1 else parts[-1]
    return Target(found.table, ref, name)


# -- INSERT --------------------------------------------------------------------------------------


def insert(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run an INSERT.

    Args:
        before: the CTEs that stand before the statement.
    """
    reader.expect("INSERT")
    overwrites = reader.takes("OVERWRITE")
    if not overwrites:
        reader.expect("INTO")
    reader.takes("TABLE")
    target = target_of(context, reader.names("the name of a table"))
    partition = _partition_spec(reader)
    if reader.takes("IF", "NOT", "EXISTS"):
        raise reader.error("IF NOT EXISTS after PARTITION is not supported; leave it out")
    by_name = reader.takes("BY", "NAME")
    columns = None
    if reader.sees("(") and not _is_query(reader):
        columns = _names_inside(reader)
    if not by_name:
        by_name = reader.takes("BY", "NAME")
    expressions = Expressions(context)
    where = None
    replaced: tuple[str, ...] | None = None
    if reader.takes("REPLACE", "WHERE"):
        where = expressions.bound(reader.until(*_QUERIES))
    elif reader.takes("REPLACE", "USING"):
        replaced = _names_inside(reader)
    if not (reader.sees_one_of(*_QUERIES) or reader.sees("(")):
        raise reader.error("a query is expected")
    given = {name: value for name, value in partition.items() if value is not None}
    names = _columns(target.schema, columns, given)
    text = _with_defaults(reader.rest(), target.schema, names)
    rows = query(context, f"{before}{text}")
    if not by_name:
        rows = _named(rows, names)
    for name, value in given.items():
        rows = rows.withColumn(name, F.expr(value))
    rows = assigned(rows, target)
    port, options = target.table.port, target.options
    with expressions.views():
        if where is not None:
            Overwrite(rows=rows, where=where, options=options).run(port)
        elif replaced is not None:
            _check_replaced(target, replaced)
            OverwritePartitions(rows=rows, options=options).run(port)
        elif not overwrites:
            Append(rows=rows, options=options).run(port)
        elif _is_dynamic(context, partition):
            OverwritePartitions(rows=rows, options=options).run(port)
        else:
            conditions = [f"{quote_name_always([n])} <=> {value}" for n, value in given.items()]
            where = " AND ".join(conditions) or None
            Overwrite(rows=rows, where=where, options=options).run(port)


def _is_query(reader: WordReader) -> bool:
    inner = WordReader(reader.text, reader.words)
    inner.at = reader.at
    while inner.takes("("):
        pass
    return inner.sees_one_of(*_QUERIES)


def _partition_spec(reader: WordReader) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    if reader.takes("PARTITION"):
        inner = reader.inside()
        while not inner.is_done:
            name = inner.name("a column")
            found[name] = inner.until(",") if inner.takes("=") else None
            if not inner.is_done:
                inner.expect(",")
    return found


def _names_inside(reader: WordReader) -> tuple[str, ...]:
    inner = reader.inside()
    names = [inner.name("a column")]
    while inner.takes(","):
        names.append(inner.name("a column"))
    inner.finish()
    return tuple(names)


def _columns(
    schema: Schema, columns: Sequence[str] | None, given: dict[str, str]
) -> tuple[str, ...]:
    """The columns that a query's columns go into, in order."""
    if columns is not None:
        return tuple(columns)
    taken = {name.lower() for name in given}
    return tuple(f.name for f in schema.fields if f.name.lower() not in taken)


def _named(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    if len(rows.columns) != len(names):
        raise SchemaMismatchError(
            f"the query has {len(rows.columns)} columns ({', '.join(rows.columns)}) and the insert "
            f"takes {len(names)} ({', '.join(names)}); nothing was written"
        )
    return rows.toDF(*names)


def assigned(rows: DataFrame, target: Target) -> DataFrame:
    """Return rows as the table stores them, by Spark's ANSI store assignment.

    Raises:
        SchemaMismatchError: a column cannot hold what the query gives.
    """
    spark = target.table.spark
    strict = is_case_sensitive(spark)
    assignment = StoreAssignment(type_support(spark), case_sensitive=strict)
    fields = {f.name if strict else f.name.lower(): f for f in target.schema.fields}
    columns = []
    for each in rows.schema.fields:
        column = F.col(quote_name_always([each.name]))
        found = fields.get(each.name if strict else each.name.lower())
        if found is None:
            known = ", ".join(f.name for f in target.schema.fields)
            raise SchemaMismatchError(
                f"the table has no column {each.name!r}, only {known}; nothing was written"
            )
        value = assignment.value(column, each.dataType, found, found.name)
        columns.append(value.alias(found.name))
    assignment.finish()
    return rows.select(*columns)


def _with_defaults(text: str, schema: Schema, names: Sequence[str]) -> str:
    """A list of VALUES with the columns' defaults in place of DEFAULT."""
    words = words_of(text)
    if not words or words[0].keyword != "VALUES":
        return text
    depth = place = 0
    changes = []
    for at, word in enumerate(words):
        key = word.keyword
        if key == "(":
            depth, place = depth + 1, 0 if depth == 0 else place
        elif key == ")":
            depth -= 1
        elif key == "," and depth == 1:
            place += 1
        around = (words[at - 1].keyword, words[at + 1].keyword if at + 1 < len(words) else "")
        alone = around[0] in ("(", ",", "VALUES") and around[1] in (")", ",", "")
        if key == "DEFAULT" and depth <= 1 and alone and place < len(names):
            changes.append((word, default_text(schema, names[place])))
    for word, value in reversed(changes):
        text = text[: word.start] + value + text[word.stop :]
    return text


def default_text(schema: Schema, name: str) -> str:
    """Return the default of a column as text of SQL; NULL where it has none."""
    found = schema.find_field(name, case_sensitive=False)
    if found.write_default is None:
        return "NULL"
    return spark_text(found.field_type, found.write_default, SparkForms())


def _is_dynamic(context: SqlContext, partition: dict[str, str | None]) -> bool:
    if partition and all(value is not None for value in partition.values()):
        return False
    mode = str(context.spark.conf.get(_OVERWRITE_MODE, "static"))
    return mode.lower() == "dynamic"


def _check_replaced(target: Target, names: tuple[str, ...]) -> None:
    """Check that REPLACE USING names the columns that the table is partitioned by."""
    spec, schema = target.table.metadata.spec, target.schema
    own = {
        str(schema.find_column_name(f.source_id)).lower()
        for f in spec.fields
        if isinstance(f.transform, IdentityTransform)
    }
    if len(own) != len(spec.fields) or own != {name.lower() for name in names}:
        raise UnsupportedError(
            f"REPLACE USING ({', '.join(names)}) needs a table that is partitioned by these "
            "columns and no others: use REPLACE WHERE"
        )


# -- DELETE, UPDATE, TRUNCATE --------------------------------------------------------------------


def delete(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run a DELETE."""
    reader.expect("DELETE", "FROM")
    target = target_of(context, reader.names("the name of a table"))
    alias = _alias(reader, "WHERE") or target.name
    expressions = Expressions(context)
    where = "true"
    if reader.takes("WHERE"):
        where = expressions.bound(_qualified(reader.until(";"), target, alias))
    reader.finish()
    with expressions.views():
        Delete(where=where, alias=alias, options=target.options).run(target.table.port)


def update(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run an UPDATE."""
    reader.expect("UPDATE")
    target = target_of(context, reader.names("the name of a table"))
    alias = _alias(reader, "SET") or target.name
    expressions = Expressions(context)
    reader.expect("SET")
    values = _assignments(reader, target, alias, expressions, ("WHERE",))
    where = None
    if reader.takes("WHERE"):
        where = expressions.bound(_qualified(reader.until(";"), target, alias))
    reader.finish()
    with expressions.views():
        command = Update(values=values, where=where, alias=alias, options=target.options)
        command.run(target.table.port)


def truncate(context: SqlContext, reader: WordReader) -> None:
    """Run a TRUNCATE TABLE."""
    reader.expect("TRUNCATE", "TABLE")
    target = target_of(context, reader.names("the name of a table"))
    if reader.sees("PARTITION"):
        raise reader.error("a partition cannot be truncated: write DELETE FROM … WHERE")
    reader.finish()
    Delete(where="true", options=target.options).run(target.table.port)


def _alias(reader: WordReader, *stops: str) -> str | None:
    if reader.takes("AS"):
        return reader.name("an alias")
    if reader.is_done or reader.sees_one_of(*stops, ";"):
        return None
    return reader.name("an alias")


def _qualified(text: str, target: Target, alias: str) -> str:
    """A text with the target's full name less what an alias leaves of it."""
    return with_short_qualifiers(text, [target.whole_name]) if alias == target.name else text


def _assignments(
    reader: WordReader,
    target: Target,
    alias: str,
    expressions: Expressions,
    stops: tuple[str, ...],
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    while True:
        parts = reader.names("a column")
        if len(parts) > 1 and parts[0].lower() == alias.lower():
            parts = parts[1:]
        reader.expect("=")
        text = _qualified(reader.until(",", *stops, ";"), target, alias)
        name = quote_name(parts)
        if name in values:
            raise SqlSyntaxError(f"the column {name} is set twice")
        is_default = text.strip().upper() == "DEFAULT"
        values[name] = default_text(target.schema, name) if is_default else expressions.bound(text)
        if not reader.takes(","):
            return values


# -- MERGE ---------------------------------------------------------------------------------------


def merge(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run a MERGE."""
    reader.expect("MERGE")
    evolves = reader.takes("WITH", "SCHEMA", "EVOLUTION")
    reader.expect("INTO")
    target = target_of(context, reader.names("the name of a table"))
    alias = _alias(reader, "USING") or target.name
    reader.expect("USING")
    source, source_alias = _source(context, reader, before)
    expressions = Expressions(context)
    reader.expect("ON")
    on = expressions.bound(_qualified(reader.until("WHEN"), target, alias))
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
        reader.inside()
    else:
        name = reader.names("the name of a table")[-1]
        while not (reader.is_done or reader.sees_one_of("AS", "ON")) and reader.sees_one_of(
            "VERSION", "TIMESTAMP", "FOR", "SYSTEM_VERSION", "SYSTEM_TIME"
        ):
            reader.until("AS")
            reader.expect("AS", "OF")
            reader.word("a version or a time")
    stop = reader.words[reader.at - 1].stop
    text = reader.text[begin:stop]
    name = _alias(reader, "ON") or name
    quoted = quote_name_always([name])
    rows = query(context, f"{before}SELECT * FROM {text} AS {quoted}")  # noqa: S608
    return rows, name


def _clause(
    reader: WordReader, builder: Any, target: Target, alias: str, expressions: Expressions
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
        condition = expressions.bound(_qualified(reader.until("THEN"), target, alias))
    reader.expect("THEN")
    method: Callable[..., Any]
    if reader.takes("DELETE"):
        method = getattr(builder, f"{kind}_delete")
        method(condition=condition)
    elif reader.takes("UPDATE", "SET"):
        if reader.takes("*"):
            getattr(builder, f"{kind}_update_all")(condition=condition)
        else:
            values = _assignments(reader, target, alias, expressions, ("WHEN",))
            getattr(builder, f"{kind}_update")(values, condition=condition)
    else:
        reader.expect("INSERT")
        if reader.takes("*"):
            getattr(builder, f"{kind}_insert_all")(condition=condition)
            return
        names = _names_inside(reader)
        reader.expect("VALUES")
        inner = reader.inside()
        texts = [inner.until(",")]
        while inner.takes(","):
            texts.append(inner.until(","))
        if len(texts) != len(names):
            raise inner.error(f"{len(names)} values are expected")
        values = {
            quote_name([name]): default_text(target.schema, name)
            if text.strip().upper() == "DEFAULT"
            else expressions.bound(text)
            for name, text in zip(names, texts, strict=True)
        }
        getattr(builder, f"{kind}_insert")(values, condition=condition)
