"""SHOW: what there is in the lake and in a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability
from frazil.errors import ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.sql.quoting import (
    SparkForms,
    quote_name,
    quote_name_always,
    spark_text,
    string_text,
)
from frazil.format.properties.table import WRITE_FORMAT
from frazil.format.sorting import SortField
from frazil.format.types import (
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)
from frazil.format.types.forms import form_of
from frazil.spark.sql.context import NamedTable, NamedView, SparksNameError, SqlContext
from frazil.spark.sql.functions.routines import show_functions, show_procedures
from frazil.spark.sql.results import matches, table_of
from frazil.spark.sql.statements.show_view import (
    create_view_statement,
    named_view_facts,
    shown_view_properties,
)
from frazil.spark.types import type_to_spark
from frazil.spark.words import WordReader

_FACTS: Final = ("comment", "owner", "table_type")
"""Properties that DESCRIBE tells of beside the others; Spark gives two of them to what it makes."""

_PLAIN: Final = re.compile(r"(?!\d+$)\w+", re.ASCII)


def show(context: SqlContext, reader: WordReader) -> DataFrame | None:
    """Run a SHOW of the lake's; None where it is Spark's own."""
    reader.expect("SHOW")
    for words, run in _SHOWN.items():
        if reader.takes(*words):
            found = run(context, reader)
            reader.finish()
            return found
    return None


def _tables(context: SqlContext, reader: WordReader) -> DataFrame:
    namespace = _namespace(context, reader)
    pattern = _pattern(reader)
    rows = [
        (_quoted_levels(name[:-1]), name[-1], False)
        for name in context.catalog.list_tables(namespace)
        if matches(name[-1], pattern)
    ]
    return table_of(context.spark, ("namespace", "tableName", "isTemporary"), rows)


def _table_extended(context: SqlContext, reader: WordReader) -> DataFrame:
    namespace = _namespace(context, reader)
    pattern = _pattern(reader)
    catalog = context.catalog
    facts = {
        name: table_facts(context, name, catalog.load_table(name).metadata)
        for name in catalog.list_tables(namespace)
        if matches(name[-1], pattern)
    }
    if catalog.can(Capability.VIEWS):
        facts |= {
            name: named_view_facts(context, catalog.load_view(name))
            for name in catalog.list_views(namespace)
            if matches(name[-1], pattern)
        }
    rows = [
        (
            _quoted_levels(name[:-1]),
            name[-1],
            False,
            "\n".join(f"{key}: {value}" for key, value in shown),
        )
        for name, shown in sorted(facts.items())
    ]
    columns = ("namespace", "tableName", "isTemporary", "information")
    return table_of(context.spark, columns, rows)


def _namespaces(context: SqlContext, reader: WordReader) -> DataFrame:
    parent: Identifier = ()
    if reader.takes("FROM") or reader.takes("IN"):
        parent = context.namespace(reader.names("a namespace"))
    pattern = _pattern(reader)
    rows = [
        (_quoted_levels(name),)
        for name in context.catalog.list_namespaces(parent)
        if matches(name[-1], pattern)
    ]
    return table_of(context.spark, ("namespace",), rows)


def _current(context: SqlContext, reader: WordReader) -> DataFrame:
    row = (context.name, _quoted_levels(context.current.levels))
    return table_of(context.spark, ("catalog", "namespace"), [row])


def _views(context: SqlContext, reader: WordReader) -> DataFrame:
    namespace = _namespace(context, reader)
    pattern = _pattern(reader)
    rows = [
        (_quoted_levels(name[:-1]), name[-1], False)
        for name in context.catalog.list_views(namespace)
        if matches(name[-1], pattern)
    ]
    # They are listed with every database of Spark's; the current one may be a lake's namespace.
    listed = context.spark.catalog.listTables("spark_catalog.default")
    temporary = [each.name for each in listed if each.isTemporary]
    rows += [("", name, True) for name in temporary if matches(name, pattern)]
    return table_of(context.spark, ("namespace", "viewName", "isTemporary"), rows)


def _properties(context: SqlContext, reader: WordReader) -> DataFrame:
    parts = reader.names("the name of a table")
    found = _find_named(context, parts)
    if isinstance(found, NamedView):
        kept = found.view.metadata
        what, facts = f"View {kept.location}", dict(shown_view_properties(kept))
        # One that is asked for by its name is told, whatever is shown of all.
        facts |= {} if not reader.sees("(") else kept.properties
    else:
        metadata = context.load(parts).metadata
        what, facts = f"Table {metadata.location}", dict(shown_properties(metadata))
    if not reader.sees("("):
        return table_of(context.spark, ("key", "value"), sorted(facts.items()))
    inner = reader.inner_reader()
    key = inner.word("a property").text
    while inner.takes("."):
        key += "." + inner.name()
    value = facts.get(key, f"{what} does not have property: {key}")
    return table_of(context.spark, ("key", "value"), [(key, value)])


def _find_named(context: SqlContext, parts: Identifier) -> NamedTable | NamedView | None:
    """What a name means; SparksNameError where it is that of a temporary view."""
    found = context.find(parts)
    if found is None and context.is_temporary_view(parts):
        raise SparksNameError(".".join(parts))
    return found


def shown_properties(metadata: TableMetadata) -> list[tuple[str, str]]:
    """Return a table's properties, with those that its metadata tells."""
    snapshot = metadata.current_snapshot_id
    own = {
        "current-snapshot-id": "none" if snapshot is None else str(snapshot),
        "format": f"iceberg/{metadata.properties.get(WRITE_FORMAT.name, WRITE_FORMAT.default)}",
        "format-version": str(metadata.format_version),
    }
    schema = metadata.schema
    if schema.identifier_field_ids:
        names = (str(schema.find_column_name(i)) for i in sorted(schema.identifier_field_ids))
        own["identifier-fields"] = f"[{','.join(names)}]"
    if not metadata.sort_order.is_unsorted:
        own["sort-order"] = ", ".join(
            _sort_term(metadata, each) for each in metadata.sort_order.fields
        )
    return sorted({**metadata.properties, **own}.items())


def _sort_term(metadata: TableMetadata, field: SortField) -> str:
    """A key of a sort order in the words of the Java runtime, as ``days(ts) ASC NULLS FIRST``."""
    column = str(metadata.schema.find_column_name(field.source_id))
    kind, _, width = str(field.transform).partition("[")
    width = width.rstrip("]")
    terms = {
        "identity": column,
        "bucket": f"bucket({width}, {column})",
        "truncate": f"truncate({column}, {width})",
    }
    order = f"{field.direction.value} {field.null_order.value.replace('-', ' ')}".upper()
    return f"{terms.get(kind, f'{kind}s({column})')} {order}"


def _columns(context: SqlContext, reader: WordReader) -> DataFrame:
    if not (reader.takes("FROM") or reader.takes("IN")):
        raise reader.error("FROM is expected")
    name = reader.names("the name of a table")
    if len(name) == 1 and (reader.takes("FROM") or reader.takes("IN")):
        name = (*reader.names("a namespace"), *name)
    found = _find_named(context, name)
    view = found.view if isinstance(found, NamedView) else None
    fields = (view or context.load(name)).metadata.schema.fields
    return table_of(context.spark, ("col_name",), [(field.name,) for field in fields])


def _partitions(context: SqlContext, reader: WordReader) -> DataFrame:
    table = context.load(reader.names("the name of a table"))
    spec = table.metadata.spec
    if not spec.fields:
        raise ValidationError(f"{table.name} is not partitioned")
    shown = [
        F.concat(
            F.lit(f"{each.name}="),
            F.coalesce(F.col("partition")[each.name].cast("string"), F.lit("null")),
        )
        for each in spec.fields
    ]
    rows = table.inspect.dataframes.partitions().where(f"spec_id = {spec.spec_id}")
    return rows.select(F.concat_ws("/", *shown).alias("partition")).orderBy("partition")


def _create_table(context: SqlContext, reader: WordReader) -> DataFrame:
    parts = reader.names("the name of a table")
    reader.takes("AS", "SERDE")
    found = context.find(parts)
    if isinstance(found, NamedView):
        text = create_view_statement(context, found.view)
    else:
        name = context.identifier(parts)
        text = create_statement(context, name, context.load(parts).metadata)
    return table_of(context.spark, ("createtab_stmt",), [(text,)])


def create_statement(context: SqlContext, name: Identifier, metadata: TableMetadata) -> str:
    """Return the CREATE TABLE that makes such a table."""
    columns = [
        f"  {quote_name([field.name])} {_field_text(field, _default_text(field))}"
        for field in metadata.schema.fields
    ]
    lines = [
        f"CREATE TABLE {quote_name([context.name, *name])} (",
        ",\n".join(columns) + ")",
        "USING iceberg",
    ]
    terms = partition_terms(metadata)
    if terms:
        lines.append(f"PARTITIONED BY ({', '.join(terms)})")
    said = metadata.properties.get("comment")
    if said:
        lines.append(f"COMMENT {string_text(said)}")
    lines.append(f"LOCATION {string_text(metadata.location)}")
    pairs = [
        f"  {string_text(key)} = {string_text(value)}"
        for key, value in shown_properties(metadata)
        if key != "comment"
    ]
    lines.append("TBLPROPERTIES (\n" + ",\n".join(pairs) + ")")
    return "\n".join(lines) + "\n"


def _default_text(field: NestedField) -> str:
    """The default of a column as DDL; a struct's has no text."""
    if field.write_default is None or field.field_type.is_nested:
        return ""
    forms = SparkForms(time="long")
    return f" DEFAULT {spark_text(field.field_type, field.write_default, forms)}"


def _field_text(field: NestedField, default: str = "") -> str:
    """What follows the name of a column, or of a field of a struct, as DDL."""
    required = " NOT NULL" if field.required else ""
    comment = f" COMMENT {string_text(field.doc)}" if field.doc else ""
    return f"{_type_text(field.field_type)}{required}{default}{comment}"


def _type_text(kind: IcebergType) -> str:
    """A type as DDL, which can be run again."""
    match kind:
        case StructType(fields=fields):
            inner = [f"{quote_name([each.name])}: {_field_text(each)}" for each in fields]
            return f"STRUCT<{', '.join(inner)}>"
        case ListType(element_type=element):
            return f"ARRAY<{_type_text(element)}>"
        case MapType(key_type=key, value_type=value):
            return f"MAP<{_type_text(key)}, {_type_text(value)}>"
        case FixedType(length=length):
            return f"FIXED({length})"
    form = form_of(kind)
    if form.sql and not form.in_spark and form.meaning != "decimal":
        return form.sql[0].upper()
    return type_to_spark(kind).simpleString().upper()


def partition_terms(metadata: TableMetadata) -> list[str]:
    """Return the terms of the current partition spec, as ``days(ts)``."""
    terms = []
    for field in metadata.spec.fields:
        column = quote_name(str(metadata.schema.find_column_name(field.source_id)).split("."))
        text = str(field.transform)
        if text == "void":
            continue
        kind, _, width = text.partition("[")
        if kind == "identity":
            terms.append(column)
        elif width:
            terms.append(f"{kind}({width.rstrip(']')}, {column})")
        else:
            terms.append(f"{kind}s({column})")
    return terms


def table_facts(
    context: SqlContext, name: Identifier, metadata: TableMetadata
) -> list[tuple[str, str]]:
    """Return what DESCRIBE EXTENDED tells of a table beside its columns."""
    shown = dict(shown_properties(metadata))
    own = {key: shown.pop(key) for key in _FACTS if key in shown}
    properties = ",".join(f"{key}={value}" for key, value in shown.items())
    facts = [("Name", ".".join((context.name, *name))), ("Type", "MANAGED")]
    comment = own.pop("comment", None)
    if comment:
        facts.append(("Comment", comment))
    facts += [("Location", metadata.location), ("Provider", "iceberg")]
    facts += [(key.capitalize(), value) for key, value in own.items()]
    return [*facts, ("Table Properties", f"[{properties}]")]


def _namespace(context: SqlContext, reader: WordReader) -> Identifier:
    if reader.takes("FROM") or reader.takes("IN"):
        return context.namespace(reader.names("a namespace"))
    if not context.current.levels:
        raise reader.error("IN namespace is expected, or a USE before")
    return context.current.levels


def _quoted_levels(parts: Identifier) -> str:
    """The levels of a namespace as Spark shows them: in backticks what is no plain word."""
    plain = [part if _PLAIN.fullmatch(part) else quote_name_always([part]) for part in parts]
    return ".".join(plain)


def _pattern(reader: WordReader) -> str | None:
    if reader.takes("LIKE") or (not reader.is_done and reader.words[reader.at].is_string):
        return reader.string()
    return None


_SHOWN: Final[Mapping[tuple[str, ...], Callable[[SqlContext, WordReader], DataFrame]]] = {
    ("TABLES",): _tables,
    ("VIEWS",): _views,
    ("TABLE", "EXTENDED"): _table_extended,
    ("NAMESPACES",): _namespaces,
    ("SCHEMAS",): _namespaces,
    ("DATABASES",): _namespaces,
    ("CURRENT", "NAMESPACE"): _current,
    ("TBLPROPERTIES",): _properties,
    ("COLUMNS",): _columns,
    ("PARTITIONS",): _partitions,
    ("CREATE", "TABLE"): _create_table,
    ("PROCEDURES",): show_procedures,
    ("FUNCTIONS",): partial(show_functions, scope="ALL"),
    ("ALL", "FUNCTIONS"): partial(show_functions, scope="ALL"),
    ("USER", "FUNCTIONS"): partial(show_functions, scope="USER"),
    ("SYSTEM", "FUNCTIONS"): partial(show_functions, scope="SYSTEM"),
}
