"""CREATE, REPLACE and DROP of tables, and of namespaces; USE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Capability
from frazil.catalog.registration import drop_and_tell
from frazil.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
    SqlSyntaxError,
    TableAlreadyExistsError,
    UnsupportedError,
    ValidationError,
)
from frazil.format.new_table import new_table_metadata
from frazil.format.predicates.sql.quoting import quote_name
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    METADATA_PATH,
    NAME_MAPPING,
    OBJECT_STORAGE_PATH,
    RESERVED,
    WRITE_FORMAT,
)
from frazil.format.schema import Schema
from frazil.format.schema.ddl import schema_of_ddl
from frazil.format.schema.defaults import check_default_value
from frazil.format.types import NestedField, StructType
from frazil.format.values import coerce
from frazil.spark.creation import CreateTable, ReplaceTable
from frazil.spark.session.facts import is_case_sensitive
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.context import NamedTable, SqlContext
from frazil.spark.sql.query import query
from frazil.spark.sql.statements.columns import (
    ColumnDefinition,
    column_definition,
    column_definitions,
    lacks,
)
from frazil.spark.sql.statements.defaults import default_value
from frazil.spark.types import query_schema_from_spark
from frazil.spark.words import WordReader, properties_of
from frazil.spark.write.write_audit_publish import refuse_replacement
from frazil.storage.files import normalize_location
from frazil.table.updates.replacement import ReplaceDefinition

_FORMATS: Final = frozenset({"orc", "avro"})
"""Formats of files that Iceberg knows besides, and Frazil does not write."""

_TOLD: Final = RESERVED | {"format", "sort-order", "identifier-fields"}
"""Properties that SHOW CREATE TABLE tells of what the metadata holds elsewhere."""

_OF_THE_SOURCE: Final = frozenset(
    each.name
    for each in (
        NAME_MAPPING,
        DATA_PATH,
        METADATA_PATH,
        FOLDER_STORAGE_PATH,
        OBJECT_STORAGE_PATH,
    )
)
"""Properties that say where a table's own files are, or how their columns are found."""

_LACKING: Final = {
    ("CLUSTER", "BY"): "CLUSTER BY: say PARTITIONED BY, and ALTER TABLE … WRITE ORDERED BY",
    ("SKEWED", "BY"): "SKEWED BY",
    ("ROW", "FORMAT"): "ROW FORMAT: its files are Parquet",
    ("STORED", "BY"): "STORED BY: its files are Parquet",
}
"""Clauses of Spark's and Hive's that tables of lakes have not, and what is said of them."""

_MARKS: Final = "frazil."
"""What tells of changes that a table took over."""


@dataclass(slots=True)
class TableDefinition:
    """What a CREATE or REPLACE says of a table."""

    columns: list[ColumnDefinition] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)
    location: str | None = None
    rows: str | None = None
    provider: str | None = None

    @property
    def format_version(self) -> str | None:
        """The version that a property asks for."""
        return self.properties.get("format-version")

    @property
    def own_properties(self) -> dict[str, str]:
        """The properties that the table keeps."""
        given = {k: v for k, v in without_told(self.properties).items() if k != "format-version"}
        return {**given, **format_properties(self.provider)}


def create_table(context: SqlContext, reader: WordReader) -> None:
    """Run a CREATE TABLE or REPLACE TABLE."""
    creates = reader.takes("CREATE")
    replaces = reader.takes("OR", "REPLACE") if creates else reader.takes("REPLACE")
    reader.takes("EXTERNAL")
    reader.expect("TABLE")
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = context.identifier(reader.names("the name of a table"))
    if reader.takes("LIKE"):
        _create_like(context, reader, name, if_not_exists)
        return
    definition = _definition(reader, name)
    format_properties(definition.provider)
    exists = context.catalog.table_exists(name)
    if exists and if_not_exists:
        return
    if exists and not replaces:
        raise TableAlreadyExistsError(f"there is a table {'.'.join(name)}")
    if not exists and not creates:
        raise NoSuchTableError(f"there is no table {'.'.join(name)} to replace")
    rows = None if definition.rows is None else query(context, definition.rows)
    if exists:
        _replace(context, name, definition, rows)
    else:
        _create(context, name, definition, rows)


def format_properties(provider: str | None) -> dict[str, str]:
    """Return what the properties of a new table say of the format that it is made in.

    Raises:
        UnsupportedError: Frazil does not write it, or it is none of Iceberg's.
    """
    said = "iceberg" if provider is None else provider.lower()
    if said == "iceberg":
        return {}
    if said == WRITE_FORMAT.default:
        return {WRITE_FORMAT.name: said}
    if said in _FORMATS:
        raise UnsupportedError(
            f"USING {provider}: a table of the lake is an iceberg table of Parquet files, and "
            f"Frazil writes no {said}; say USING iceberg or USING parquet"
        )
    raise UnsupportedError(
        f"USING {provider}: tables of the lake are Iceberg's; a table of Spark is made under "
        "spark_catalog"
    )


def without_told(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a new table less those that tell what the metadata holds.

    Text of SHOW CREATE TABLE has such, and the Java runtime keeps none of them either.
    """
    return {key: value for key, value in properties.items() if key not in _TOLD}


def _definition(reader: WordReader, table: Identifier) -> TableDefinition:
    found = TableDefinition()
    if reader.sees("("):
        found.columns = column_definitions(reader.inner_reader(), table)
    while not reader.is_done:
        if reader.takes("USING") or reader.takes("STORED", "AS"):
            found.provider = reader.name("a format")
        elif reader.takes("PARTITIONED", "BY"):
            _read_partitions(reader.inner_reader(), found, table)
        elif reader.takes("CLUSTERED", "BY"):
            found.partition_by.append(_bucket(reader, table))
        elif reader.takes("DEFAULT", "COLLATION"):
            refuse_collation(reader)
        elif reader.takes("LOCATION"):
            found.location = reader.string()
        elif reader.takes("COMMENT"):
            found.properties["comment"] = reader.string()
        elif reader.takes("TBLPROPERTIES") or reader.takes("OPTIONS"):
            found.properties.update(properties_of(reader.inner_reader()))
        elif reader.takes("AS") or reader.sees_one_of("SELECT", "WITH", "VALUES", "FROM", "("):
            found.rows = reader.remaining_text()
        else:
            refused = next((what for words, what in _LACKING.items() if reader.sees(*words)), None)
            if refused is not None:
                raise lacks(table, refused)
            reader.finish()
            break
    if found.rows is not None and found.columns:
        raise SqlSyntaxError(
            "a table AS SELECT has the query's columns: leave the list out, and types of partitions"
        )
    return found


def refuse_collation(reader: WordReader) -> None:
    """Read a collation, which has to be the one that compares bytes.

    Raises:
        UnsupportedError: it is another one.
    """
    schema_of_ddl(f"c STRING COLLATE {reader.name('a collation')}")


def _read_partitions(reader: WordReader, found: TableDefinition, table: Identifier) -> None:
    """Read terms of columns that are there, or new columns with their types as Hive has them."""
    columns: list[ColumnDefinition] = []
    terms: list[str] = []
    while True:
        if _sees_column(reader):
            columns.append(column_definition(reader, table))
        else:
            terms.append(reader.text_to(","))
        if not reader.takes(","):
            break
    if columns and terms:
        raise reader.error(
            "PARTITION BY: Cannot mix partition expressions and partition columns: "
            f"{', '.join(terms)} and {', '.join(each.name for each in columns)}"
        )
    found.columns += columns
    found.partition_by += [*terms, *(quote_name([each.name]) for each in columns)]


def _bucket(reader: WordReader, table: Identifier) -> str:
    """Read what follows CLUSTERED BY, as the term of a partition."""
    inner = reader.inner_reader()
    columns = inner.list_of(inner.text_to, ",")
    if reader.sees("SORTED"):
        raise lacks(table, "SORTED BY: say ALTER TABLE … WRITE ORDERED BY")
    if len(columns) > 1:
        raise lacks(table, f"a bucket of several columns: {', '.join(columns)}")
    reader.expect("INTO")
    number = reader.number()
    reader.expect("BUCKETS")
    return f"bucket({number}, {columns[0]})"


def _sees_column(reader: WordReader) -> bool:
    """Whether a name with its type is next."""
    after = reader.words[reader.at + 1 : reader.at + 2]
    return bool(after) and after[0].keyword not in (",", "(", ".", "AS")


def _create(
    context: SqlContext, name: tuple[str, ...], definition: TableDefinition, rows: DataFrame | None
) -> None:
    context.create(
        CreateTable(
            identifier=name,
            schema=_schema(context, definition, rows),
            rows=rows,
            partition_by=definition.partition_by,
            properties=definition.own_properties,
            location=definition.location,
            format_version=definition.format_version,
        )
    )


def _schema(context: SqlContext, definition: TableDefinition, rows: DataFrame | None) -> Schema:
    if rows is not None:
        return query_schema_from_spark(rows.schema)
    if not definition.columns:
        raise SqlSyntaxError("a table needs columns, or AS SELECT")
    _check_names([each.name for each in definition.columns], context)
    schema = schema_of_ddl(", ".join(each.text for each in definition.columns))
    defaults = {each.name: each.default for each in definition.columns if each.default is not None}
    if not defaults:
        return schema
    fields = [
        _with_default(context, each, defaults[each.name]) if each.name in defaults else each
        for each in schema.fields
    ]
    return Schema(fields=tuple(fields), identifier_field_ids=schema.identifier_field_ids)


def _check_names(names: Sequence[str], context: SqlContext) -> None:
    """Refuse columns that the session takes for one."""
    if is_case_sensitive(context.spark):
        return
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other is not name:
            raise ValidationError(
                f"the columns {other!r} and {name!r} have one name where case does not count"
            )


def _with_default(context: SqlContext, field_: NestedField, text: str) -> NestedField:
    given = default_value(context, field_, text)
    if isinstance(field_.field_type, StructType) and given == {}:
        value: Any = ()
    else:
        value = coerce(field_.field_type, given)
        check_default_value(field_.name, value)
    return replace(field_, initial_default=value, write_default=value)


def _replace(
    context: SqlContext, name: tuple[str, ...], definition: TableDefinition, rows: DataFrame | None
) -> None:
    port = context.load_table(context.catalog, name).port
    base = port.newest()
    location, version = definition.location, definition.format_version
    if location is not None and normalize_location(location) != base.location:
        raise ValidationError(f"{'.'.join(name)} exists: replacing keeps its location")
    if version is not None and version != str(base.format_version):
        raise ValidationError(f"{'.'.join(name)} exists: replacing keeps its format-version")
    refuse_replacement(context.spark, base)
    partition_by, properties = definition.partition_by, definition.own_properties
    if rows is not None:
        ReplaceTable(rows=rows, partition_by=partition_by, properties=properties).run(port)
        return
    schema = _schema(context, definition, None)
    port.run(ReplaceDefinition(schema, partition_by=partition_by, properties=properties))


def _create_like(
    context: SqlContext, reader: WordReader, name: tuple[str, ...], if_not_exists: bool
) -> None:
    source = context.load(reader.names("the name of a table")).metadata
    definition = _definition(reader, name)
    if if_not_exists and context.catalog.table_exists(name):
        return
    place = definition.location
    metadata = new_table_metadata(
        source.schema,
        source.spec,
        source.sort_order,
        location=context.catalog.default_table_location(name)
        if place is None
        else normalize_location(place),
        properties={**_copied_properties(source.properties), **definition.own_properties},
        format_version=definition.format_version or source.format_version,
    )
    context.catalog.create_table(name, metadata)


def _copied_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties that hold for a table of the same columns as for the source itself."""
    return {
        key: value
        for key, value in properties.items()
        if key not in _OF_THE_SOURCE and not key.startswith(_MARKS)
    }


def drop_table(context: SqlContext, reader: WordReader) -> None:
    """Run a DROP TABLE."""
    reader.expect("DROP", "TABLE")
    if_exists = reader.takes("IF", "EXISTS")
    name = context.identifier(reader.names("the name of a table"))
    purges = reader.takes("PURGE")
    reader.finish()
    try:
        kept = CachedTables.of(context.spark)
        if kept.known:
            kept.forget(NamedTable(context.load_table(context.catalog, name)))
        if purges:
            context.catalog.purge_table(name)
        else:
            drop_and_tell(context.catalog, name)
    except (NoSuchTableError, NoSuchNamespaceError):
        if isinstance(context.find_in(context.catalog, name), NamedTable):
            raise ValidationError(
                f"{'.'.join(name)} cannot be dropped: it shows what the table has"
            ) from None
        if not if_exists or context.catalog.view_exists(name):
            raise


# -- namespaces ----------------------------------------------------------------------------------

NAMESPACE_WORDS: Final = ("NAMESPACE", "SCHEMA", "DATABASE")


def create_namespace(context: SqlContext, reader: WordReader) -> None:
    """Run a CREATE NAMESPACE."""
    reader.expect("CREATE")
    reader.word("NAMESPACE")
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    name = context.namespace(reader.names("the name of a namespace"))
    properties: dict[str, str] = {}
    while not reader.is_done:
        if reader.takes("COMMENT"):
            properties["comment"] = reader.string()
        elif reader.takes("LOCATION"):
            properties["location"] = reader.string()
        elif any(reader.takes("WITH", word) for word in ("PROPERTIES", "DBPROPERTIES")):
            properties.update(properties_of(reader.inner_reader()))
        else:
            reader.finish()
    if if_not_exists and context.catalog.namespace_exists(name):
        return
    context.catalog.create_namespace(name, properties)


def drop_namespace(context: SqlContext, reader: WordReader) -> None:
    """Run a DROP NAMESPACE."""
    reader.expect("DROP")
    reader.word("NAMESPACE")
    if_exists = reader.takes("IF", "EXISTS")
    name = context.namespace(reader.names("the name of a namespace"))
    cascades = reader.takes("CASCADE")
    if not cascades:
        reader.takes("RESTRICT")
    reader.finish()
    try:
        if cascades:
            _drop_content(context, name)
        context.catalog.drop_namespace(name)
    except NoSuchNamespaceError:
        if not if_exists:
            raise


def _drop_content(context: SqlContext, name: tuple[str, ...]) -> None:
    """Drop what a namespace holds."""
    for inner in context.catalog.list_namespaces(name):
        _drop_content(context, inner)
        context.catalog.drop_namespace(inner)
    for table in context.catalog.list_tables(name):
        drop_and_tell(context.catalog, table)
    if context.catalog.can(Capability.VIEWS):
        for view in context.catalog.list_views(name):
            context.catalog.drop_view(view)


def alter_namespace(context: SqlContext, reader: WordReader) -> None:
    """Run an ALTER NAMESPACE."""
    reader.expect("ALTER")
    reader.word("NAMESPACE")
    name = context.namespace(reader.names("the name of a namespace"))
    sets = reader.takes("SET")
    if not sets:
        reader.expect("UNSET")
    if sets and reader.takes("LOCATION"):
        location = reader.string()
        reader.finish()
        context.catalog.update_namespace_properties(name, updates={"location": location})
        return
    if not (reader.takes("PROPERTIES") or reader.takes("DBPROPERTIES")):
        raise reader.error("PROPERTIES is expected")
    given = properties_of(reader.inner_reader()) if sets else {}
    removed = [] if sets else keys_of(reader.inner_reader())
    reader.finish()
    context.catalog.update_namespace_properties(name, updates=given, removals=removed)


def keys_of(reader: WordReader) -> list[str]:
    """Read ``'key', …``."""
    return [word.text for word in reader.list_of(reader.word, "a property")]


def use(context: SqlContext, reader: WordReader) -> None:
    """Run a USE: names of one part are looked for in this namespace from now on."""
    reader.expect("USE")
    if reader.sees_one_of(*NAMESPACE_WORDS):
        reader.word("NAMESPACE")
    parts = reader.names("a namespace")
    reader.finish()
    name = context.namespace(parts)
    if name and not context.catalog.namespace_exists(name):
        raise NoSuchNamespaceError(f"there is no namespace {'.'.join(name)}")
    context.current.levels = name


def comment(context: SqlContext, reader: WordReader) -> bool:
    """Run a COMMENT ON; return whether it was one of the lake's."""
    reader.expect("COMMENT", "ON")
    of_column, of_table = reader.takes("COLUMN"), reader.takes("TABLE")
    if not of_column and not of_table:
        if not reader.sees_one_of(*NAMESPACE_WORDS):
            return False
        reader.word("NAMESPACE")
    parts = reader.names("a name")
    reader.expect("IS")
    text = None if reader.takes("NULL") else reader.string()
    reader.finish()
    if of_column:
        return _comment_on_column(context, parts, text)
    if not of_table:
        name = context.namespace(parts)
        updates, removals = ({"comment": text}, ()) if text is not None else ({}, ("comment",))
        context.catalog.update_namespace_properties(name, updates=updates, removals=removals)
    elif text is None:
        context.to_change(parts).remove_properties("comment")
    else:
        context.to_change(parts).set_properties({"comment": text})
    return True


def _comment_on_column(context: SqlContext, parts: Identifier, text: str | None) -> bool:
    """Comment on a column, whose name ends that of its table; return whether the lake has it."""
    for split in range(len(parts) - 1, 0, -1):
        with suppress(NoSuchTableError):
            if isinstance(context.find(parts[:split]), NamedTable):
                with context.to_change(parts[:split]).update_schema() as change:
                    change.update_column(parts[split:], doc=text)
                return True
    return False


def refresh(context: SqlContext, reader: WordReader) -> bool:
    """Run a REFRESH TABLE, for which nothing is to do: every statement sees tables as they are."""
    reader.expect("REFRESH")
    reader.takes("TABLE")
    return context.find(reader.names("the name of a table")) is not None
