"""Where a command runs, and what is noted there: the places that the recorder watches.

Each place is a method or function of one module, by its name. What is noted is true of the call
that has returned: a call that raises is not noted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Facts = dict[str, str]
"""What is known of a call, by dimension: ``kind``, ``name``, ``mode``, ``version`` and others."""

Note = Callable[[tuple[Any, ...], Mapping[str, Any], Any], "Facts | None"]
"""Returns what is noted of a call, from its arguments and its result; None for nothing."""

FAMILIES: Final[Mapping[str, str]] = {
    "IntegerType": "integer",
    "LongType": "integer",
    "FloatType": "float",
    "DoubleType": "float",
    "BooleanType": "boolean",
    "DecimalType": "decimal",
    "DateType": "date",
    "TimeType": "time",
    "TimestampType": "timestamp",
    "TimestamptzType": "timestamp",
    "TimestampNanoType": "nanoseconds",
    "TimestamptzNanoType": "nanoseconds",
    "StringType": "string",
    "UUIDType": "uuid",
    "FixedType": "binary",
    "BinaryType": "binary",
    "UnknownType": "unknown",
    "GeometryType": "geospatial",
    "GeographyType": "geospatial",
    "VariantType": "variant",
    "StructType": "struct",
    "ListType": "list",
    "MapType": "map",
}
"""The family of each type."""

_TOKEN: Final = re.compile(
    r"--[^\n]*|/\*.*?\*/|`(?:[^`]|``)*`|'[^']*'|\"[^\"]*\"|\w+|\S", re.DOTALL
)
_QUERIES: Final = ("SELECT", "VALUES", "FROM", "TABLE", "MAP", "REDUCE")


# -- facts of tables, catalogs and sessions --------------------------------------------------------


def families(schema: Any) -> str:
    """The families of a schema's types, with those inside of others, joined by commas."""
    found: set[str] = set()
    left = [field.field_type for field in schema.fields]
    while left:
        one = left.pop()
        found.add(FAMILIES[type(one).__name__])
        left += [field.field_type for field in getattr(one, "fields", ())]
    return ",".join(sorted(found))


def store_of(location: str, io: Any = None) -> str:
    """The kind of store that a path lies in; ``hadoop`` where Spark's Hadoop reaches it."""
    scheme = location.partition("://")[0].lower() if "://" in location else "file"
    if scheme == "file" or location.startswith("file:"):
        return "local"
    if getattr(io, "stores", None) is not None:
        return "hadoop"
    return {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs", "wasbs": "abfs"}.get(
        scheme, scheme
    )


def catalog_of(catalog: Any) -> str:
    """The kind of a catalog; of one of SQL the database."""
    module = type(catalog).__module__
    if not module.startswith("frazil.catalog."):
        return ""
    kind: str = catalog.kind
    if kind == "sql":
        uri = str(catalog.properties.get("uri", ""))
        return "postgres" if uri.startswith("postgres") else "sqlite"
    return kind


def session_of(spark: Any) -> str:
    """Whether a session is classic or one of Spark Connect; empty where there is none."""
    if spark is None:
        return ""
    return "Connect" if type(spark).__module__.startswith("pyspark.sql.connect") else "classic"


def of_table(metadata: Any, io: Any) -> Facts:
    """What is known of a table."""
    return {
        "version": str(metadata.format_version),
        "store": store_of(metadata.location, io),
        "types": families(metadata.schema),
    }


def of_port(port: Any) -> Facts:
    """What is known of the table of a port, and of its session."""
    return {
        **of_table(port.metadata, port.io),
        "catalog": catalog_of(getattr(port, "catalog", None)),
        "session": session_of(getattr(port, "spark", None)),
    }


# -- notes -----------------------------------------------------------------------------------------


def command(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a command with `run(port)`; the mode is the one that its result tells."""
    port = args[1] if len(args) > 1 else kwargs["port"]
    mode = getattr(result, "mode", "")
    return {"kind": "command", "name": type(args[0]).__name__, "mode": mode, **of_port(port)}


def creation(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a `CreateTable`."""
    rows = "as select" if args[0].rows is not None else "empty"
    catalog = args[2] if len(args) > 2 else kwargs["catalog"]
    return {
        "kind": "command",
        "name": "CreateTable",
        "mode": rows,
        **of_table(result.metadata, result.io),
        "catalog": catalog_of(catalog),
        "session": session_of(args[1] if len(args) > 1 else kwargs["spark"]),
    }


def of_handle(name: str, port: Callable[[Any], Any]) -> Note:
    """Note a method of an object that has a port."""

    def note(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
        return {"kind": "command", "name": name, **of_port(port(args[0]))}

    return note


def scan(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a read of a `Scan`."""
    one = args[0]
    return {
        "kind": "command",
        "name": "Scan",
        "session": session_of(one._spark),
        **of_table(one._metadata, one._io),
    }


def read(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note rows read of a plan; the mode is what deletes apply to its files."""
    reader, plan = args[0], args[1] if len(args) > 1 else kwargs["plan"]
    return {
        "kind": "command",
        "name": "read",
        "mode": deletes_of(plan),
        "session": session_of(reader.spark),
        **of_table(reader.metadata, reader.io),
    }


def deletes_of(plan: Any) -> str:
    """The kinds of delete files of a plan."""
    found = set()
    for content, form in plan.deletes.select("content", "file_format").unique().iter_rows():
        if content == 2:
            found.add("equality deletes")
        else:
            found.add("vectors" if form == "puffin" else "positions")
    return " and ".join(sorted(found)) or "no deletes"


def statement(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a statement of SQL that a lake was given."""
    context = args[0]
    return {
        "kind": "statement",
        "name": kind_of_statement(args[1] if len(args) > 1 else kwargs["text"]),
        "catalog": catalog_of(context.catalog),
        "session": session_of(context.spark),
    }


def control(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts | None:
    """Note a BEGIN, COMMIT or ROLLBACK."""
    if result is None:
        return None
    name = words_of(args[1])[0]
    return {"kind": "statement", "name": "BEGIN" if name == "START" else name}


def moved(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts | None:
    """Note a USE of an attached session."""
    return {"kind": "statement", "name": "USE"} if result else None


def procedure(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a CALL that was run."""
    one, caller = args[0], args[1]
    return {
        "kind": "procedure",
        "name": one.signature.name,
        "catalog": catalog_of(caller.catalog),
        "session": session_of(caller.spark),
    }


def endpoint(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts | None:
    """Note a request that the server has carried out."""
    if result.status >= 400:
        return None
    one = args[1]
    return {
        "kind": "endpoint",
        "name": f"{one.method} {one.template}",
        "catalog": catalog_of(args[0]._served.catalog),
        "face": "server",
    }


def command_line(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts:
    """Note a command of the command line."""
    words = args[1].command_path.split()[1:]
    return {"kind": "command line", "name": " ".join(words), "face": "command line"}


def of_catalog(name: str) -> Note:
    """Note a method of a catalog."""

    def note(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Facts | None:
        catalog = catalog_of(args[0])
        location = getattr(getattr(result, "metadata", None), "location", None)
        store = "" if location is None else store_of(location, args[0].io)
        facts = {"kind": "catalog", "name": name, "catalog": catalog, "store": store, "face": ""}
        return facts if catalog else None

    return note


def commit(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> list[Facts]:
    """Note a commit of a table, and the kinds of updates that it makes."""
    done = of_catalog("commit_table")(args, kwargs, result)
    if done is None:
        return []
    updates = args[3] if len(args) > 3 else kwargs["updates"]
    table = of_table(result.metadata, result.io)
    names = {type(update).__name__ for update in updates}
    facts = [{"kind": "update", "name": each, **table} for each in sorted(names)]
    return [done, *({**each, "catalog": done["catalog"]} for each in facts)]


def happening(kind: str) -> Callable[..., Facts]:
    """Note that something of a kind took place."""
    return lambda args, kwargs, result: {"kind": "event", "name": kind, "face": ""}


# -- statements ------------------------------------------------------------------------------------


def words_of(text: str) -> list[str]:
    """The words and signs of a statement without its comments; words in capitals."""
    found = [token for token in _TOKEN.findall(text) if not token.startswith(("--", "/*"))]
    return [token if token[0] in "`'\"" else token.upper() for token in found]


_IDENTIFIER = re.compile(r"\bIDENTIFIER\s*\([^()]*\)", re.IGNORECASE)
"""A name that is computed: it says nothing of the kind."""


def kind_of_statement(text: str) -> str:
    """The words that say what kind of statement it is: ``MERGE``, ``ALTER TABLE ADD COLUMN``."""
    words = words_of(_IDENTIFIER.sub("t", text))
    while words and words[0] == "(":
        words.pop(0)
    first, *rest = words or [""]
    if first == "WITH":
        return _with(words)
    if first in _QUERIES:
        return "INSERT" if "INSERT" in rest and first == "FROM" else "SELECT"
    if first == "INSERT":
        return "INSERT OVERWRITE" if "OVERWRITE" in rest[:2] else _insert(rest)
    if first in ("DELETE", "UPDATE", "MERGE", "TRUNCATE", "CALL", "USE", "EXPLAIN", "REFRESH"):
        return first
    if first in ("CREATE", "REPLACE"):
        return _creation(words)
    if first == "ALTER":
        return _alter(words)
    if first in ("DESC", "DESCRIBE"):
        return "DESCRIBE" if not rest or rest[0] not in _PLACES else f"DESCRIBE {_place(rest[0])}"
    if first == "SHOW" and rest[:1] == ["CREATE"]:
        return "SHOW CREATE TABLE"
    if first == "COMMENT":
        return f"COMMENT ON {_place(rest[1])}" if len(rest) > 1 else first
    return f"{first} {_place(rest[0])}" if rest and first in ("DROP", "SHOW", "CACHE") else first


_PLACES: Final = ("NAMESPACE", "NAMESPACES", "DATABASE", "DATABASES", "SCHEMA", "SCHEMAS")


def _place(word: str) -> str:
    """A word for what a namespace is, as NAMESPACE."""
    if word in _PLACES:
        return "NAMESPACES" if word.endswith("S") else "NAMESPACE"
    return word


def _with(words: list[str]) -> str:
    """What follows the CTEs."""
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if depth == 0 and word in ("INSERT", "DELETE", "UPDATE", "MERGE", "SELECT", "FROM"):
            return "SELECT" if word in _QUERIES else word
    return "SELECT"


def _insert(rest: list[str]) -> str:
    return "INSERT REPLACE" if "REPLACE" in rest[:12] else "INSERT"


def _creation(words: list[str]) -> str:
    """CREATE with what is made; a table with whether it has rows, and whether it replaces."""
    kinds = [_place(word) for word in words[:6]]
    made = next((each for each in kinds if each in ("TABLE", "VIEW", "NAMESPACE")), "")
    begin = "REPLACE" if words[0] == "REPLACE" else "CREATE"
    if "OR" in words[:3]:
        begin = "CREATE OR REPLACE"
    if made == "VIEW" and ("TEMPORARY" in words[:6] or "TEMP" in words[:6]):
        return f"{begin} TEMPORARY VIEW"
    depth, as_select = 0, False
    for word in words:
        depth += (word == "(") - (word == ")")
        as_select = as_select or (depth == 0 and word == "AS")
    return f"{begin} {made}{' AS SELECT' if made == 'TABLE' and as_select else ''}".strip()


def _alter(words: list[str]) -> str:
    """ALTER with what is altered and how: the one or two words after its name."""
    place = _place(words[1]) if len(words) > 1 else ""
    at = 2
    if words[at : at + 2] == ["IF", "EXISTS"]:
        at += 2
    at += 1
    while words[at : at + 1] == ["."]:
        at += 2
    how = words[at : at + 2]
    if how[:1] == ["AS"]:
        how = ["AS"]
    if how[:1] == ["ALTER"]:
        how = ["ALTER", "COLUMN"]
    if how[:1] == ["CHANGE"]:
        how = ["CHANGE", "COLUMN"]
    if how[:1] == ["CREATE"] and how[1:] == ["OR"]:
        how = ["CREATE OR REPLACE", *words[at + 3 : at + 4]]
    plurals = {"COLUMNS": "COLUMN", "DBPROPERTIES": "PROPERTIES"}
    return " ".join(("ALTER", place, *(plurals.get(each, each) for each in how)))


# -- the places ------------------------------------------------------------------------------------

_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "frazil.spark.row_level.writes": ("Append", "Overwrite", "OverwritePartitions"),
    "frazil.spark.row_level.delete": ("Delete",),
    "frazil.spark.row_level.update": ("Update",),
    "frazil.spark.row_level.merging.merge": ("Merge",),
    "frazil.spark.row_level.merging.upsert": ("Upsert",),
    "frazil.spark.creation": ("ReplaceTable",),
    "frazil.spark.upserts.apply": ("ApplyChanges",),
    "frazil.spark.upserts.once": ("AppendBatch", "ReplaceRows"),
    "frazil.spark.maintenance.optimizing.optimize": ("Optimize",),
    "frazil.spark.maintenance.compaction.compact": ("Compact",),
    "frazil.spark.maintenance.compaction.conversion": ("ConvertEqualityDeletes",),
    "frazil.spark.maintenance.compaction.manifests": ("ClusterManifests",),
    "frazil.spark.maintenance.compaction.position_deletes": ("RewritePositionDeletes",),
    "frazil.spark.maintenance.partition_stats": ("ComputePartitionStats",),
    "frazil.spark.maintenance.table_stats": ("ComputeTableStats",),
    "frazil.spark.migration.add_files": ("ImportFiles",),
    "frazil.table.maintenance.table_path": ("RewriteTablePath",),
}
_OF_MAINTENANCE: Final = (
    "remove_orphan_files",
    "check",
    "repair",
    "expire_snapshots",
    "remove_unused_specs_and_schemas",
)
_SCANS: Final = ("plan", "to_df", "to_arrow", "to_pandas", "count", "aggregate")
_READS: Final = (
    "rows",
    "rows_where",
    "rows_of_snapshot",
    "relation_of_snapshot",
    "rows_under_some_deletes",
)
_STREAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "frazil.spark.stream.table_streams:TableStreams": ("read_stream",),
    "frazil.spark.upserts.commands:ChangeCommands": ("upsert_stream", "append_stream"),
    "frazil.spark.changes.table_changes:TableChanges": (
        "incremental",
        "changes",
        "net_changes",
        "create_changelog_view",
    ),
}
_OF_CATALOGS: Final = (
    "create_namespace",
    "drop_namespace",
    "create_table",
    "stage_table",
    "load_table",
    "register_table",
    "rename_table",
    "drop_table",
    "purge_table",
    "commit_tables",
    "create_view",
    "commit_view",
    "drop_view",
    "rename_view",
)
_CATALOGS: Final = (
    "frazil.catalog.pointer.catalog:PointerCatalog",
    "frazil.catalog.pointer.filesystem:FilesystemCatalog",
    "frazil.catalog.pointer.record_catalog:RecordCatalog",
    "frazil.catalog.pointer.view_pointers:PointerViewMethods",
    "frazil.catalog.pointer.sql.catalog:SqlCatalog",
    "frazil.catalog.pointer.sql.commits_together:CommitsTogether",
    "frazil.catalog.pointer.hive.catalog:HiveCatalog",
    "frazil.catalog.pointer.glue.catalog:GlueCatalog",
    "frazil.catalog.rest.catalog:RestCatalog",
    "frazil.catalog.rest.views:RestViewMethods",
    "frazil.catalog.static:StaticCatalog",
)


def seams() -> dict[str, list[tuple[str, Any]]]:
    """By the name of a module: what is watched in it, as ``Class.method`` or a function."""
    found: dict[str, list[tuple[str, Any]]] = {}

    def watch(place: str, attribute: str, note: Any) -> None:
        module, _, owner = place.partition(":")
        found.setdefault(module, []).append((f"{owner}.{attribute}".lstrip("."), note))

    for module, classes in _COMMANDS.items():
        for name in classes:
            watch(f"{module}:{name}", "run", command)
    watch("frazil.spark.creation:CreateTable", "run", creation)
    for name in _OF_MAINTENANCE:
        note = of_handle(name, lambda one: one._port)
        watch("frazil.table.maintenance.table_maintenance:Maintenance", name, note)
        watch("frazil.spark.table_maintenance:TableMaintenance", f"{name}?", note)
    for place, names in _STREAMS.items():
        for name in names:
            watch(place, name, of_handle(name, lambda one: one.port))
    for name in _SCANS:
        watch("frazil.spark.scan:Scan", name, scan)
    for name in _READS:
        watch("frazil.spark.read.reader:TableReader", name, read)
    watch("frazil.spark.sql.run:", "run_sql", statement)
    watch("frazil.spark.lake_transaction.statements:StatementTransactions", "control", control)
    watch("frazil.spark.attached.statements:", "use", moved)
    watch("frazil.spark.procedures.procedure:Procedure", "call", procedure)
    watch("frazil.serve.app:ServeApp", "_work", endpoint)
    watch("frazil.cli.app:ShownCommand", "invoke", command_line)
    for place in _CATALOGS:
        for name in _OF_CATALOGS:
            watch(place, f"{name}?", of_catalog(name))
        watch(place, "commit_table?", commit)
    return found
