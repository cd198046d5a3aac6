"""INSERT: into, overwrite, and in place of some rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as S

from frazil.catalog.protocol import Catalog
from frazil.errors import (
    SchemaMismatchError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.predicates.sql.quoting import (
    quote_name_always,
)
from frazil.format.schema import Schema
from frazil.spark.plans.sparks_errors import sparks_too, unresolved_column
from frazil.spark.row_level.values.store_assignment import StoreAssignment
from frazil.spark.row_level.writes import Append, Overwrite, OverwritePartitions
from frazil.spark.session.facts import is_case_sensitive, type_support
from frazil.spark.sql.context import (
    NamedView,
    OpenTransaction,
    SparksNameError,
    SqlContext,
)
from frazil.spark.sql.query import passed_on, query
from frazil.spark.sql.statements.target import (
    StatementTarget,
    default_text,
    expressions_of,
    names_inside,
    target_of,
)
from frazil.spark.types import type_to_spark
from frazil.spark.words import QUERIES, WordReader, words_of

_ARITY: Final = "INSERT_COLUMN_ARITY_MISMATCH"
_OVERWRITE_MODE: Final = "spark.sql.sources.partitionOverwriteMode"


def insert(context: SqlContext, reader: WordReader, before: str) -> None:
    """Run an INSERT.

    Args:
        before: the CTEs that stand before the statement.
    """
    prepared_insert(context, reader, before)()


def insert_each(context: SqlContext, before: str, inserts: Sequence[str]) -> None:
    """Run the INSERTs of one FROM, whose rows are of the same moment.

    Those into tables of a lake are one commit where its catalog commits several.

    Args:
        before: what stands before the first one.
        inserts: each of them.
    """
    context = replace(context, loaded={})
    into = [(text, catalog_of_insert(context, WordReader(text))) for text in inserts]
    catalogs = {id(each): each for _, each in into if each is not None}
    are_one = len(catalogs) == 1 and len(inserts) > 1
    alone = context.in_new_transaction(*catalogs.values()) if are_one else None
    with nullcontext() if alone is None else _commit_at_end(alone.transaction):
        context = alone or context
        acts = [
            prepared_insert(context, WordReader(text), before)
            for text, catalog in into
            if catalog is not None
        ]
        for text, catalog in into:
            if catalog is None:
                passed_on(context, f"{before}{text}")
        for act in acts:
            act()


@contextmanager
def _commit_at_end(transaction: OpenTransaction | None) -> Iterator[None]:
    """Commit a transaction at the end of the block; after an error nothing of it is."""
    assert transaction is not None
    try:
        yield
    except BaseException:
        transaction.rollback()
        raise
    transaction.commit()


def prepared_insert(context: SqlContext, reader: WordReader, before: str) -> Callable[[], None]:
    """Return what runs an INSERT, of the rows that its query has now."""
    reader.expect("INSERT")
    overwrites = reader.takes("OVERWRITE")
    if not overwrites:
        reader.expect("INTO")
    if reader.sees_one_of("DIRECTORY", "LOCAL"):
        raise SparksNameError("a directory")
    reader.takes("TABLE")
    name = reader.names("the name of a table")
    partition = _partition_spec(reader)
    if reader.takes("IF", "NOT", "EXISTS"):
        raise reader.error("IF NOT EXISTS after PARTITION is not supported; leave it out")
    by_name = reader.takes("BY", "NAME")
    has_names = reader.sees("(") and not sees_query(reader)
    columns = names_inside(reader) if has_names else None
    by_name = by_name or reader.takes("BY", "NAME")
    _expect_query(reader, "REPLACE")
    target = target_of(context, name)
    expressions = expressions_of(context, target, target.name, before)
    where = None
    replaced: tuple[str, ...] | None = None
    if reader.takes("REPLACE", "WHERE"):
        where = expressions.bind(reader.text_to(*QUERIES))
    elif reader.takes("REPLACE", "USING"):
        replaced = names_inside(reader)
    _expect_query(reader)
    given = _static(target, partition)
    if columns is not None:
        _check_names(columns, target.schema, context.spark)
    names = _columns(target.schema, columns, given)
    text = _with_defaults(reader.remaining_text(), target.schema, names)
    rows = query(context, f"{before}{text}")
    if not by_name:
        rows = _by_position(_named_rows(rows, names, target.whole_name), target)
    for column, value in given.items():
        rows = rows.withColumn(column, F.expr(value))
    rows = assigned_rows(rows, target.schema, context.spark)
    options = target.options
    command: Append | Overwrite | OverwritePartitions
    if where is not None:
        command = Overwrite(rows=rows, where=where, options=options)
    elif replaced is not None:
        _check_replaced(target, replaced)
        command = OverwritePartitions(rows=rows, options=options)
    elif not overwrites:
        command = Append(rows=rows, options=options)
    elif is_dynamic(context.spark):
        command = OverwritePartitions(rows=rows, options=options)
    else:
        conditions = [f"{quote_name_always([n])} <=> {value}" for n, value in given.items()]
        command = Overwrite(rows=rows, where=" AND ".join(conditions) or None, options=options)

    def run() -> None:
        with expressions.views():
            command.run(target.table.port)

    return run


def catalog_of_insert(context: SqlContext, reader: WordReader) -> Catalog | None:
    """Return the catalog that the INSERT that is next writes to; None of Spark's own."""
    reader.expect("INSERT")
    if not reader.takes("OVERWRITE"):
        reader.expect("INTO")
    if reader.sees_one_of("DIRECTORY", "LOCAL"):
        return None
    reader.takes("TABLE")
    found = context.find(reader.names("the name of a table"))
    if isinstance(found, NamedView):
        return found.catalog
    return None if found is None else found.table.catalog


def sees_query(reader: WordReader) -> bool:
    """Return whether parentheses are next with a query, not with names, which may be its words."""
    inner = WordReader(reader.text, reader.words)
    inner.at = reader.at
    while inner.takes("("):
        pass
    is_name = inner.sees_after_one(",") or inner.sees_after_one(")")
    return reader.sees("(") and inner.sees_one_of(*QUERIES) and not is_name


def _expect_query(reader: WordReader, *others: str) -> None:
    if not (reader.sees_one_of(*others, *QUERIES) or reader.sees("(")):
        raise reader.error("a query is expected")


def _partition_spec(reader: WordReader) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    if reader.takes("PARTITION"):
        inner = reader.inner_reader()
        while not inner.is_done:
            name = inner.name("a column")
            found[name] = inner.text_to(",") if inner.takes("=") else None
            if not inner.is_done:
                inner.expect(",")
    return found


def _columns(
    schema: Schema, columns: Sequence[str] | None, given: dict[str, str]
) -> tuple[str, ...]:
    """The columns that a query's columns go into, in order."""
    if columns is not None:
        return tuple(columns)
    taken = {name.lower() for name in given}
    return tuple(f.name for f in schema.fields if f.name.lower() not in taken)


def _check_names(columns: Sequence[str], schema: Schema, spark: SparkSession) -> None:
    """Check that the columns that an INSERT lists are the table's."""
    strict = is_case_sensitive(spark)
    known = {f.name if strict else f.name.lower() for f in schema.fields}
    for name in columns:
        if (name if strict else name.lower()) not in known:
            error = _missing_column(name, schema)
            raise unresolved_column(error, name, [f.name for f in schema.fields])


def _missing_column(name: str, schema: Schema) -> SchemaMismatchError:
    known = ", ".join(f.name for f in schema.fields)
    return SchemaMismatchError(
        f"the table has no column {name!r}, only {known}; nothing was written"
    )


def _named_rows(rows: DataFrame, names: Sequence[str], whole_name: Sequence[str]) -> DataFrame:
    own = rows.schema.names
    if len(own) != len(names):
        error = SchemaMismatchError(
            f"the query has {len(own)} columns ({', '.join(own)}) and the insert "
            f"takes {len(names)} ({', '.join(names)}); nothing was written"
        )
        said = {
            "tableName": f"{quote_name_always(whole_name)} (nothing was written)",
            "tableColumns": ", ".join(quote_name_always([each]) for each in names),
            "dataColumns": ", ".join(quote_name_always([each]) for each in own),
        }
        of_many = "TOO_MANY" if len(own) > len(names) else "NOT_ENOUGH"
        raise sparks_too(error, AnalysisException, f"{_ARITY}.{of_many}_DATA_COLUMNS", said)
    return rows if own == [*names] else rows.toDF(*names)


def in_order(rows: DataFrame, target: StatementTarget) -> DataFrame:
    """Return rows whose columns go into the table's by their places.

    Raises:
        SchemaMismatchError: there are more or fewer than the table has.
    """
    names = _columns(target.schema, None, {})
    return _by_position(_named_rows(rows, names, target.whole_name), target)


def assigned_rows(rows: DataFrame, schema: Schema, spark: SparkSession) -> DataFrame:
    """Return rows as a table of a schema stores them, by Spark's ANSI store assignment.

    Raises:
        SchemaMismatchError: a column cannot hold what the query gives.
    """
    strict = is_case_sensitive(spark)
    assignment = StoreAssignment(type_support(spark), case_sensitive=strict)
    fields = {f.name if strict else f.name.lower(): f for f in schema.fields}
    given = [(each, fields.get(each.name if strict else each.name.lower())) for each in rows.schema]
    if all(
        found is not None and found.name == each.name and assignment.fits(each.dataType, found)
        for each, found in given
    ):
        return rows
    columns = []
    for each, found in given:
        column = F.col(quote_name_always([each.name]))
        if found is None:
            raise _missing_column(each.name, schema)
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


def is_dynamic(spark: SparkSession) -> bool:
    """Whether an overwrite replaces the partitions of its rows alone, as the session is set."""
    mode = str(spark.conf.get(_OVERWRITE_MODE, "static"))
    return mode.lower() == "dynamic"


def _static(target: StatementTarget, partition: Mapping[str, str | None]) -> dict[str, str]:
    """The values that PARTITION gives, as the columns have them.

    Raises:
        ValidationError: a column is none that the table is partitioned by.
    """
    own = {name.lower(): name for name in _identity_columns(target)}
    unknown = [name for name in partition if name.lower() not in own]
    if unknown:
        raise ValidationError(
            f"PARTITION names {', '.join(unknown)}; the table is partitioned by the columns "
            f"{', '.join(own.values()) or 'none'} as they are"
        )
    schema = target.schema
    kinds = {
        name: type_to_spark(schema.find_field(name, case_sensitive=False).field_type)
        for name in partition
    }
    return {
        name: f"CAST({value} AS {kinds[name].simpleString()})"
        for name, value in partition.items()
        if value is not None
    }


def _identity_columns(target: StatementTarget) -> list[str]:
    """The columns that the table is partitioned by as they are."""
    schema = target.schema
    return [
        str(schema.find_column_name(field.source_id))
        for field in target.table.metadata.spec.fields
        if isinstance(field.transform, IdentityTransform)
    ]


def _by_position(rows: DataFrame, target: StatementTarget) -> DataFrame:
    """Rows whose structs have the table's names for their fields, in the order of the query."""
    fields = {field.name.lower(): field for field in target.schema.fields}
    named = []
    for each in rows.schema.fields:
        field = fields.get(each.name.lower())
        wanted = each.dataType if field is None else type_to_spark(field.field_type)
        named.append(_with_names(each.dataType, wanted))
    if named == [each.dataType for each in rows.schema.fields]:
        return rows
    columns = []
    for each, kind in zip(rows.schema.fields, named, strict=True):
        column = F.col(quote_name_always([each.name]))
        columns.append(column if kind == each.dataType else column.cast(kind).alias(each.name))
    return rows.select(*columns)


def _with_names(given: S.DataType, wanted: S.DataType) -> S.DataType:
    """A type with the names of another one's fields, place by place."""
    match given, wanted:
        case S.StructType(), S.StructType() if len(given.fields) == len(wanted.fields):
            return S.StructType(
                [
                    S.StructField(w.name, _with_names(g.dataType, w.dataType), g.nullable)
                    for g, w in zip(given.fields, wanted.fields, strict=True)
                ]
            )
        case S.ArrayType(), S.ArrayType():
            inner = _with_names(given.elementType, wanted.elementType)
            return S.ArrayType(inner, given.containsNull)
        case S.MapType(), S.MapType():
            key = _with_names(given.keyType, wanted.keyType)
            value = _with_names(given.valueType, wanted.valueType)
            return S.MapType(key, value, given.valueContainsNull)
    return given


def _check_replaced(target: StatementTarget, names: tuple[str, ...]) -> None:
    """Check that REPLACE USING names the columns that the table is partitioned by."""
    own = {name.lower() for name in _identity_columns(target)}
    if len(own) != len(target.table.metadata.spec.fields) or own != {
        name.lower() for name in names
    }:
        raise UnsupportedError(
            f"REPLACE USING ({', '.join(names)}) needs a table that is partitioned by these "
            "columns and no others: use REPLACE WHERE"
        )
