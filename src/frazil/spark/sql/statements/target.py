"""The table that a statement changes, and what is written of its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from frazil.errors import (
    SqlSyntaxError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.predicates import AlwaysTrue
from frazil.format.predicates.sql.quoting import (
    SparkForms,
    quote_name,
    spark_text,
)
from frazil.format.schema import Schema
from frazil.spark.conditions import is_read_as_here
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.session.facts import is_case_sensitive, time_zone_of, type_support
from frazil.spark.sql.context import LakeTable, NamedView, SqlContext
from frazil.spark.sql.expressions import Expressions
from frazil.spark.sql.functions.calls import may_call
from frazil.spark.sql.pruning.function_terms import FunctionReader
from frazil.spark.sql.qualifiers import with_short_qualifiers
from frazil.spark.types import schema_to_spark
from frazil.spark.words import WordReader, words_of


@dataclass(frozen=True, slots=True)
class StatementTarget:
    """The table that a statement changes.

    Attributes:
        branch: the one that its name says, as ``t.branch_x`` does.
        name: what columns can be qualified with.
        catalog: what can stand before the table's name.
    """

    table: LakeTable
    branch: str | None
    name: str
    catalog: str

    @property
    def schema(self) -> Schema:
        """The table's columns."""
        return self.table.metadata.schema

    @property
    def whole_name(self) -> tuple[str, ...]:
        """The catalog, the namespace and the table."""
        return (self.catalog, *self.table.identifier)

    @property
    def options(self) -> CommitOptions:
        """Where a change is committed."""
        return CommitOptions(branch=self.branch)


def target_of(context: SqlContext, parts: tuple[str, ...]) -> StatementTarget:
    """Return the table of a name, which may say a branch.

    Raises:
        NoSuchTableError: there is none.
        UnsupportedError: the name is that of a view.
        ValidationError: the name says a tag, a snapshot or a metadata table, which do not change,
            or the table is of another lake than the transaction.
    """
    found = context.find(parts)
    if isinstance(found, NamedView):
        raise UnsupportedError(
            f"{'.'.join(parts)} is a view: its rows change with the tables that it reads"
        )
    if found is None:
        table = context.to_change(parts)
        return StatementTarget(table, None, parts[-1], context.name_of(table.catalog))
    context.check_changes(found.table.catalog)
    said = found.version
    ref = said.ref
    refs = found.table.metadata.refs
    is_tag = ref is not None and ref in refs and not refs[ref].is_branch
    if found.metadata_table or said.snapshot_id or said.as_of or is_tag:
        raise ValidationError(f"{'.'.join(parts)} cannot be changed: name the table or a branch")
    name = parts[-2] if ref is not None and len(parts) > 1 else parts[-1]
    return StatementTarget(found.table, ref, name, context.name_of(found.table.catalog))


def default_text(schema: Schema, name: str) -> str:
    """Return the default of a column as text of SQL; NULL where it has none."""
    found = schema.find_field(name, case_sensitive=False)
    if found.write_default is None:
        return "NULL"
    return spark_text(found.field_type, found.write_default, SparkForms())


def names_inside(reader: WordReader) -> tuple[str, ...]:
    inner = reader.inner_reader()
    names = [inner.name("a column")]
    while inner.takes(","):
        name = inner.name("a column")
        if name in names:
            raise SqlSyntaxError(f"the column {name} is named twice")
        names.append(name)
    inner.finish()
    return tuple(names)


def alias_of(reader: WordReader, *stops: str) -> str | None:
    if reader.takes("AS"):
        return reader.name("an alias")
    if reader.is_done or reader.sees_one_of(*stops, ";"):
        return None
    return reader.name("an alias")


def expressions_of(
    context: SqlContext, target: StatementTarget, alias: str, before: str
) -> Expressions:
    """Return what binds the expressions of a statement.

    Args:
        alias: what the statement calls the target.
        before: the CTEs before it.
    """
    columns = [field.name for field in target.schema.fields]
    outer = {target.whole_name: columns} if alias == target.name else {}
    return Expressions(context, before, outer, {alias: partial(no_rows, context, target)})


def condition_of_rows(
    context: SqlContext, target: StatementTarget, alias: str, expressions: Expressions, text: str
) -> str:
    """Return a condition on the rows of a table as Spark reads it.

    What functions of the lake say of columns stands before it, since that leaves out files.
    """
    bound = expressions.bind(text)
    text = with_short_qualifiers(text, expressions.outer)
    if not may_call(words_of(text)) or not is_read_as_here(text, context.spark):
        return bound
    implied = FunctionReader(
        schema=target.schema,
        case_sensitive=is_case_sensitive(context.spark),
        time_zone=time_zone_of(context.spark),
        alias=alias,
        is_lake=context.is_lake,
    ).implied_by_functions(text)
    if isinstance(implied.predicate, AlwaysTrue):
        return bound
    said = implied.predicate.to_sql()
    return said if implied.is_exact else f"({said}) AND ({bound})"


def no_rows(context: SqlContext, target: StatementTarget) -> DataFrame:
    """Return a relation of a table's columns without rows."""
    columns = schema_to_spark(target.schema, support=type_support(context.spark))
    return context.spark.createDataFrame([], columns)


def own_column(parts: tuple[str, ...], whole: tuple[str, ...]) -> tuple[str, ...]:
    """Return the column that is set, less the names of the table, of which `whole` is all."""
    for start in range(len(whole)):
        names = [name.lower() for name in whole[start:]]
        if len(parts) > len(names) and [name.lower() for name in parts[: len(names)]] == names:
            return parts[len(names) :]
    return parts


def assignments_of(
    reader: WordReader,
    target: StatementTarget,
    alias: str,
    expressions: Expressions,
    stops: tuple[str, ...],
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    whole = target.whole_name if alias == target.name else (alias,)
    while True:
        name = quote_name(own_column(reader.names("a column"), whole))
        reader.expect("=")
        text = reader.text_to(",", *stops, ";")
        if name in values:
            raise SqlSyntaxError(f"the column {name} is set twice")
        is_default = text.strip().upper() == "DEFAULT"
        values[name] = default_text(target.schema, name) if is_default else expressions.bind(text)
        if not reader.takes(","):
            return values
