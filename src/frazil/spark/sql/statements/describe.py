"""DESCRIBE: the columns of a table, and what else there is to tell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import LoadedView
from frazil.errors import ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import unified_partition_type
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.spark.plans.sparks_errors import unresolved_column
from frazil.spark.sql.binding.bind import bind_query
from frazil.spark.sql.context import NamedView, SqlContext
from frazil.spark.sql.functions.routines import describe_procedure
from frazil.spark.sql.results import table_of
from frazil.spark.sql.statements.show import partition_terms, shown_properties, table_facts
from frazil.spark.sql.statements.show_view import view_facts_as_json, view_rows
from frazil.spark.types import COMMENT_KEY, schema_to_spark, struct_to_spark, type_to_spark
from frazil.spark.words import WordReader

_COLUMNS = ("col_name", "data_type", "comment")
_NAMESPACE = ("NAMESPACE", "SCHEMA", "DATABASE")
_QUERIES = ("SELECT", "WITH", "VALUES")
_DIGITS_OF_LONG = 18
_SIZES: Final[Mapping[type[S.DataType], int]] = {
    **dict.fromkeys((S.BooleanType, S.NullType), 1),
    **dict.fromkeys((S.IntegerType, S.FloatType, S.DateType), 4),
    S.StringType: 20,
    S.BinaryType: 100,
    S.VariantType: 2048,
}
"""What Spark takes for the size of a value; of other types it is 8."""

_AFTER_QUERY = ("TABLE", "FROM", "(", "MAP", "REDUCE")


def describe(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """Run a DESCRIBE of the lake's; None where it is Spark's own."""
    reader.word("DESCRIBE")
    if reader.sees("FUNCTION"):
        return None
    if reader.sees("PROCEDURE") and len(reader.words) > 2:
        return describe_procedure(context, reader)
    if _sees_query(reader):
        return _query(context, reader.remaining_text())
    if reader.sees_one_of(*_NAMESPACE):
        reader.word("NAMESPACE")
        return _namespace(context, reader)
    if reader.takes("HISTORY"):
        table = context.load(reader.names("the name of a table"))
        reader.finish()
        return table.inspect.dataframes.history()
    reader.takes("TABLE")
    extended = reader.takes("EXTENDED") or reader.takes("FORMATTED")
    parts = reader.names("the name of a table")
    found = context.find(parts)
    if found is None:
        no_namespace = len(parts) == 1 and not context.current.levels
        if not no_namespace and not context.is_temporary_view(parts):
            context.load(parts)
        return None
    as_json = reader.takes("AS", "JSON")
    column = None if reader.is_done or reader.sees(";") else reader.names("a column")
    reader.finish()
    if isinstance(found, NamedView):
        return _view(context, found.view, column, as_json=as_json, extended=extended)
    metadata = found.table.metadata
    name = found.table.identifier
    if found.metadata_table is not None:
        rows = [
            (field.name, field.dataType.simpleString(), (field.metadata or {}).get(COMMENT_KEY))
            for field in found.metadata_rows(found.version).schema.fields
        ]
        return table_of(context.spark, _COLUMNS, rows)
    if column is not None:
        return _column(context, metadata.schema, column)
    if as_json:
        text = json.dumps(_as_json(context, name, metadata))
        return table_of(context.spark, ("json_metadata",), [(text,)])
    return table_of(context.spark, _COLUMNS, _rows(context, name, metadata, extended))


def _sees_query(reader: WordReader) -> bool:
    """Whether a query is next; the reader goes past QUERY."""
    if reader.sees_one_of(*_QUERIES):
        return True
    says = any(reader.sees("QUERY", word) for word in (*_QUERIES, *_AFTER_QUERY))
    return says and reader.takes("QUERY")


def _query(context: SqlContext, text: str) -> DataFrame:
    """The columns that a query has; no file is opened."""
    bound = bind_query(context, text)
    rows = [
        (field.name, field.dataType.simpleString(), field.metadata.get(COMMENT_KEY))
        for field in bound.run(None, bound.no_rows()).schema.fields
    ]
    return table_of(context.spark, _COLUMNS, rows)


def _rows(
    context: SqlContext, name: Identifier, metadata: TableMetadata, extended: bool
) -> list[tuple[str, str, str | None]]:
    rows: list[tuple[str, str, str | None]] = [
        (field.name, type_to_spark(field.field_type).simpleString(), field.doc)
        for field in metadata.schema.fields
    ]
    rows += _partitioning_rows(metadata)
    if extended:
        rows += [("", "", ""), ("# Metadata Columns", "", "")]
        rows += [(name, kind, "") for name, kind in _metadata_columns(metadata).items()]
        rows += [("", "", ""), ("# Detailed Table Information", "", "")]
        rows += [(key, value, "") for key, value in table_facts(context, name, metadata)]
        statistics = _statistics(metadata)
        rows += [] if statistics is None else [("Statistics", statistics, None)]
    return rows


def _statistics(metadata: TableMetadata) -> str | None:
    """How many rows the table has, and what Spark takes for their size; None if it is not told."""
    snapshot = metadata.current_snapshot
    rows = "0" if snapshot is None else (snapshot.summary or {}).get("total-records", "")
    if not rows.isdigit():
        return None
    columns = schema_to_spark(metadata.schema).fields
    size = int(rows) * sum(_size_of(each.dataType) for each in columns)
    return f"{size} bytes, {rows} rows"


def _size_of(kind: S.DataType) -> int:
    """The bytes that Spark counts for a value of a type."""
    match kind:
        case S.StructType(fields=fields):
            return sum(_size_of(each.dataType) for each in fields)
        case S.ArrayType(elementType=element):
            return _size_of(element)
        case S.MapType(keyType=key, valueType=value):
            return _size_of(key) + _size_of(value)
        case S.DecimalType(precision=precision):
            return 8 if precision <= _DIGITS_OF_LONG else 16
    return _SIZES.get(type(kind), 8)


def _metadata_columns(metadata: TableMetadata) -> dict[str, str]:
    """The columns that every row has besides, with their types."""
    partition = unified_partition_type(metadata.partition_specs, metadata.schema)
    found = {
        "_spec_id": "int",
        "_partition": struct_to_spark(partition).simpleString(),
        "_file": "string",
        "_pos": "bigint",
        "_deleted": "boolean",
    }
    if metadata.format_version >= 3:
        found |= {"_row_id": "bigint", "_last_updated_sequence_number": "bigint"}
    return found


def _partitioning_rows(metadata: TableMetadata) -> list[tuple[str, str, str | None]]:
    """What a table is partitioned by: columns as they are, as Spark tells them, or terms."""
    terms = partition_terms(metadata)
    if not terms:
        return []
    fields = [each for each in metadata.spec.fields if str(each.transform) != "void"]
    if any(not isinstance(each.transform, IdentityTransform) for each in fields):
        rows: list[tuple[str, str, str | None]] = [("", "", ""), ("# Partitioning", "", "")]
        return rows + [(f"Part {number}", term, "") for number, term in enumerate(terms)]
    sources = [metadata.schema.find_field(each.source_id) for each in fields]
    return [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")] + [
        (term, type_to_spark(each.field_type).simpleString(), each.doc)
        for term, each in zip(terms, sources, strict=True)
    ]


def _view(
    context: SqlContext,
    view: LoadedView,
    column: Identifier | None,
    *,
    as_json: bool,
    extended: bool,
) -> DataFrame:
    if column is not None:
        return _column(context, view.metadata.schema, column)
    if as_json:
        found = {
            **_names_as_json(context, view.identifier, view.metadata.schema),
            **view_facts_as_json(context, view),
        }
        return table_of(context.spark, ("json_metadata",), [(json.dumps(found),)])
    return table_of(context.spark, _COLUMNS, view_rows(context, view, extended=extended))


def _column(context: SqlContext, schema: Schema, column: Identifier) -> DataFrame:
    name = ".".join(column)
    found = schema.field_or_none(name, case_sensitive=False)
    if found is None:
        error = ValidationError(schema.missing(name))
        raise unresolved_column(error, name, [each.name for each in schema.fields])
    rows = [
        ("col_name", found.name),
        ("data_type", type_to_spark(found.field_type).simpleString()),
        ("comment", found.doc or "NULL"),
    ]
    return table_of(context.spark, ("info_name", "info_value"), rows)


def _as_json(context: SqlContext, name: Identifier, metadata: TableMetadata) -> dict[str, object]:
    return {
        **_names_as_json(context, name, metadata.schema),
        "partitioning": partition_terms(metadata),
        "location": metadata.location,
        "provider": "iceberg",
        "table_properties": dict(shown_properties(metadata)),
    }


def _names_as_json(context: SqlContext, name: Identifier, schema: Schema) -> dict[str, object]:
    return {
        "table_name": name[-1],
        "catalog_name": context.name,
        "namespace": list(name[:-1]),
        "columns": [
            {
                "name": field.name,
                "type": json.loads(type_to_spark(field.field_type).json()),
                "nullable": not field.required,
                **({"comment": field.doc} if field.doc else {}),
            }
            for field in schema.fields
        ],
    }


def _namespace(context: SqlContext, reader: WordReader) -> DataFrame:
    reader.takes("EXTENDED")
    name = context.namespace(reader.names("a namespace"))
    reader.finish()
    properties = context.catalog.load_namespace_properties(name)
    rows = [("Catalog Name", context.name), ("Namespace Name", ".".join(name))]
    rows += [
        (key.capitalize(), properties[key]) for key in ("comment", "location") if key in properties
    ]
    return table_of(context.spark, ("info_name", "info_value"), rows)
