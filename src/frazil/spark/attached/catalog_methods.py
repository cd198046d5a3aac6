"""`spark.catalog` of an attached session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.catalog import CatalogMetadata, Database
from pyspark.sql.catalog import Column as CatalogColumn
from pyspark.sql.catalog import Table as CatalogTable
from pyspark.sql.types import StructType
from pyspark.storagelevel import StorageLevel

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Capability
from frazil.errors import (
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationError,
)
from frazil.format.partitions.transforms import BucketTransform
from frazil.format.predicates.sql.quoting import quote_name_always, string_text
from frazil.spark.attached.dataframes.batch_reads import found_name, read_table
from frazil.spark.attached.hooks import Ours
from frazil.spark.attached.names import AttachedLake, SessionNames, context_of, context_to_read
from frazil.spark.attached.statements import Plain, run_statement, use
from frazil.spark.creation import CreateTable
from frazil.spark.plans.sparks_errors import sparks_errors
from frazil.spark.sql.cached_tables import CachedTables
from frazil.spark.sql.context import NamedTable, NamedView
from frazil.spark.sql.results import matches
from frazil.spark.sql.statements.tables import format_properties, without_told
from frazil.spark.sql.statements.temporary_views import keep_table
from frazil.spark.types import type_to_spark


def _current_catalog(names: SessionNames, plain: Plain, catalog: Any) -> str:
    return names.lake or str(plain(catalog))


def _set_current_catalog(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    catalogName: str,
) -> None:
    if catalogName in names.lakes:
        names.use(catalogName)
        return
    plain(catalog, catalogName)
    names.use(None)


def _list_catalogs(
    names: SessionNames, plain: Plain, catalog: Any, pattern: str | None = None
) -> list[CatalogMetadata]:
    own = [CatalogMetadata(name, None) for name in names.lakes if matches(name, pattern)]
    others = [each for each in plain(catalog, pattern) if each.name not in names.lakes]
    return sorted([*others, *own], key=lambda each: str(each.name))


def _current_database(names: SessionNames, plain: Plain, catalog: Any) -> str:
    if names.lake is None:
        return str(plain(catalog))
    return ".".join(names.namespace.levels)


def _set_current_database(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    dbName: str,
) -> None:
    parts = _parts(names, dbName)
    with sparks_errors():
        if parts is None or not use(names, parts):
            plain(catalog, dbName)
            names.use(None)


def _list_databases(
    names: SessionNames,
    plain: Callable[..., list[Database]],
    catalog: Any,
    pattern: str | None = None,
) -> list[Database]:
    if names.lake is None:
        return plain(catalog, pattern)
    lake = names.lakes[names.lake]
    return [
        _database(lake, levels)
        for levels in lake.catalog.list_namespaces()
        if matches(".".join(levels), pattern)
    ]


def _get_database(
    names: SessionNames,
    plain: Callable[..., Database],
    catalog: Any,
    dbName: str,
) -> Database:
    meant = _namespace(names, dbName)
    if meant is None:
        return plain(catalog, dbName)
    with sparks_errors():
        return _database(*meant)


def _database_exists(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    dbName: str,
) -> bool:
    meant = _namespace(names, dbName)
    if meant is None:
        return bool(plain(catalog, dbName))
    lake, levels = meant
    return not levels or lake.catalog.namespace_exists(levels)


def _list_tables(
    names: SessionNames,
    plain: Callable[..., list[CatalogTable]],
    catalog: Any,
    dbName: str | None = None,
    pattern: str | None = None,
) -> list[CatalogTable]:
    meant = _namespace(names, dbName)
    if meant is None:
        return plain(catalog, dbName, pattern)
    lake, levels = meant
    with sparks_errors():
        if levels and not lake.catalog.namespace_exists(levels):
            raise NoSuchNamespaceError(f"there is no namespace {shown(levels)} in {lake.name}")
        own = [
            _table(lake, name, "MANAGED")
            for name in (lake.catalog.list_tables(levels) if levels else [])
            if matches(name[-1], pattern)
        ]
        if levels and lake.catalog.can(Capability.VIEWS):
            own += [
                _table(lake, name, "VIEW")
                for name in lake.catalog.list_views(levels)
                if matches(name[-1], pattern)
            ]
    # As of every namespace, temporary views are listed too.
    views = [each for each in plain(catalog, "default", pattern) if each.isTemporary]
    return [*own, *views]


def _table_exists(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    tableName: str,
    dbName: str | None = None,
) -> bool:
    whole = tableName if dbName is None else f"{dbName}.{tableName}"
    if names.parts_of(whole) is None:
        return bool(plain(catalog, tableName, dbName))
    try:
        found = _find_named(names, catalog, whole)
    except NoSuchTableError:
        return False
    return True if found is not None else bool(plain(catalog, tableName, dbName))


def _get_table(
    names: SessionNames,
    plain: Callable[..., CatalogTable],
    catalog: Any,
    tableName: str,
) -> CatalogTable:
    with sparks_errors():
        found = _find_named(names, catalog, tableName)
    if found is None:
        return plain(catalog, tableName)
    lake = _lake_of(names, found)
    if isinstance(found, NamedView):
        comment = found.view.metadata.properties.get("comment")
        return _table(lake, found.view.identifier, "VIEW", comment)
    comment = found.table.metadata.properties.get("comment")
    return _table(lake, found.table.identifier, "MANAGED", comment)


def _list_columns(
    names: SessionNames,
    plain: Callable[..., list[CatalogColumn]],
    catalog: Any,
    tableName: str,
    dbName: str | None = None,
) -> list[CatalogColumn]:
    with sparks_errors():
        found = _find_named(
            names, catalog, tableName if dbName is None else f"{dbName}.{tableName}"
        )
        if found is None:
            return plain(catalog, tableName, dbName)
        if isinstance(found, NamedView):
            return [
                _column(
                    each.name, each.doc, type_to_spark(each.field_type).simpleString(), True, (), ()
                )
                for each in found.view.metadata.schema.fields
            ]
        if found.metadata_table is not None:
            shape = found.metadata_rows(found.version).schema
            return [
                _column(f.name, None, f.dataType.simpleString(), f.nullable, (), ())
                for f in shape.fields
            ]
        metadata = found.table.metadata
        spec = metadata.spec.fields
        sources = {f.source_id for f in spec}
        buckets = {f.source_id for f in spec if isinstance(f.transform, BucketTransform)}
        return [
            _column(
                field.name,
                field.doc,
                type_to_spark(field.field_type).simpleString(),
                not field.required,
                {field.field_id} & (sources - buckets),
                {field.field_id} & buckets,
            )
            for field in metadata.schema.fields
        ]


def _refresh_table(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    tableName: str,
) -> None:
    with sparks_errors():
        if _find_named(names, catalog, tableName) is None:
            plain(catalog, tableName)


def _cache_table(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    tableName: str,
    storageLevel: StorageLevel | None = None,
) -> None:
    with sparks_errors():
        found = _find_named(names, catalog, tableName)
        parts = names.parts_of(tableName)
        context = None if parts is None else context_to_read(names, catalog._sparkSession, parts)
        if found is None or parts is None or context is None:
            plain(catalog, tableName, *([] if storageLevel is None else [storageLevel]))
            return
        level = StorageLevel.MEMORY_AND_DISK_DESER if storageLevel is None else storageLevel
        keep_table(context, parts, found, level, lazy=True)


def _uncache_table(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    tableName: str,
) -> None:
    with sparks_errors():
        found = _find_named(names, catalog, tableName)
    if isinstance(found, NamedTable):
        CachedTables.of(catalog._sparkSession).forget(found)
    elif found is None:
        plain(catalog, tableName)


def _is_cached(
    names: SessionNames,
    plain: Plain,
    catalog: Any,
    tableName: str,
) -> bool:
    with sparks_errors():
        found = _find_named(names, catalog, tableName)
    if isinstance(found, NamedTable):
        return CachedTables.of(catalog._sparkSession).has(found)
    return found is None and bool(plain(catalog, tableName))


def _by_statement(
    statement: Callable[..., str], result: Callable[[Any], Any] | None = None
) -> Ours:
    """A method that a statement of SQL does: text of it, from the quoted name and arguments."""

    def method(names: SessionNames, plain: Plain, catalog: Any, *args: Any, **kwargs: Any) -> Any:
        given = signature(plain).bind(catalog, *args, **kwargs).arguments
        (_, _), (_, name), *others = given.items()
        parts = _parts(names, name)
        if parts is None:
            return plain(catalog, *args, **kwargs)
        spark: SparkSession = catalog._sparkSession
        text = statement(quote_name_always(parts), **dict(others))
        rows = run_statement(names, type(spark).sql, spark, text)
        return None if result is None else result(rows)

    return method


def _create_table(
    names: SessionNames,
    plain: Callable[..., DataFrame],
    catalog: Any,
    tableName: str,
    path: str | None = None,
    source: str | None = None,
    schema: StructType | None = None,
    description: str | None = None,
    **options: str,
) -> DataFrame:
    parts = names.parts_of(tableName)
    meant = None if parts is None else names.lake_and_name(parts)
    if parts is None or meant is None:
        return plain(catalog, tableName, path, source, schema, description, **options)
    spark: SparkSession = catalog._sparkSession
    with sparks_errors(), names.change():
        of_format = format_properties(source)
        if schema is None:
            raise ValidationError(f"{tableName} is a table of a lake: give its schema")
        context = context_of(names, spark, names.lake_to_read(meant[0].name))
        comment = {} if description is None else {"comment": description}
        context.create(
            CreateTable(
                identifier=context.identifier(parts),
                schema=schema,
                location=path,
                properties={**without_told(options), **comment, **of_format},
            )
        )
    return read_table(names, type(spark).table, spark, tableName)


def _drop_table(name: str, ifExists: bool = False, purge: bool = False) -> str:
    return f"DROP TABLE {'IF EXISTS ' if ifExists else ''}{name}{' PURGE' if purge else ''}"


def _create_database(
    name: str,
    ifNotExists: bool = False,
    properties: dict[str, str] | None = None,
) -> str:
    text = f"CREATE NAMESPACE {'IF NOT EXISTS ' if ifNotExists else ''}{name}"
    pairs = [f"{string_text(k)} = {string_text(v)}" for k, v in (properties or {}).items()]
    return f"{text} WITH PROPERTIES ({', '.join(pairs)})" if pairs else text


def _drop_database(name: str, ifExists: bool = False, cascade: bool = False) -> str:
    text = f"DROP NAMESPACE {'IF EXISTS ' if ifExists else ''}{name}"
    return f"{text} CASCADE" if cascade else text


CATALOG_METHODS: Final[Sequence[tuple[str, Ours]]] = (
    ("currentCatalog", _current_catalog),
    ("setCurrentCatalog", _set_current_catalog),
    ("listCatalogs", _list_catalogs),
    ("currentDatabase", _current_database),
    ("setCurrentDatabase", _set_current_database),
    ("listDatabases", _list_databases),
    ("getDatabase", _get_database),
    ("databaseExists", _database_exists),
    ("listTables", _list_tables),
    ("tableExists", _table_exists),
    ("getTable", _get_table),
    ("listColumns", _list_columns),
    ("refreshTable", _refresh_table),
    ("cacheTable", _cache_table),
    ("uncacheTable", _uncache_table),
    ("isCached", _is_cached),
    ("createTable", _create_table),
    ("dropTable", _by_statement(_drop_table)),
    ("createDatabase", _by_statement(_create_database)),
    ("dropDatabase", _by_statement(_drop_database)),
    ("truncateTable", _by_statement("TRUNCATE TABLE {}".format)),
    (
        "getTableProperties",
        _by_statement("SHOW TBLPROPERTIES {}".format, lambda rows: dict(rows.collect())),
    ),
    (
        "getCreateTableString",
        _by_statement(
            lambda name, asSerde=False: f"SHOW CREATE TABLE {name}",
            lambda rows: rows.collect()[0][0],
        ),
    ),
)
"""The methods, and what they do in an attached session; those that a Spark has not are left out."""


def _parts(names: SessionNames, name: object) -> Identifier | None:
    """The parts of a name of a lake, a namespace or a table; None where it is Spark's."""
    if isinstance(name, str) and name in names.lakes:
        return (name,)
    return names.parts_of(name)


def _namespace(names: SessionNames, name: str | None) -> tuple[AttachedLake, Identifier] | None:
    """The lake of a namespace and its levels; of the current one unless it is named."""
    if name is None:
        return None if names.lake is None else (names.lakes[names.lake], names.namespace.levels)
    parts = _parts(names, name)
    if parts is None:
        return None
    if parts[0] in names.lakes:
        return names.lakes[parts[0]], parts[1:]
    return None if names.lake is None else (names.lakes[names.lake], parts)


def _find_named(names: SessionNames, catalog: Any, name: str) -> NamedTable | NamedView | None:
    parts = names.parts_of(name)
    return None if parts is None else found_name(names, catalog._sparkSession, parts)


def _lake_of(names: SessionNames, found: NamedTable | NamedView) -> AttachedLake:
    catalog = found.catalog if isinstance(found, NamedView) else found.table.catalog
    return next(each for each in names.lakes.values() if each.catalog is catalog)


def _database(lake: AttachedLake, levels: Identifier) -> Database:
    properties = lake.catalog.load_namespace_properties(levels)
    return Database(
        name=".".join(levels),
        catalog=lake.name,
        description=properties.get("comment"),
        locationUri=properties.get("location", ""),
    )


def _table(
    lake: AttachedLake, name: Identifier, kind: str, comment: str | None = None
) -> CatalogTable:
    return CatalogTable(
        name=name[-1],
        catalog=lake.name,
        namespace=list(name[:-1]),
        description=comment,
        tableType=kind,
        isTemporary=False,
    )


def _column(
    name: str, doc: str | None, kind: str, nullable: bool, partition: Any, bucket: Any
) -> CatalogColumn:
    return CatalogColumn(
        name=name,
        description=doc,
        dataType=kind,
        nullable=nullable,
        isPartition=bool(partition),
        isBucket=bool(bucket),
        isCluster=False,
    )
