"""ALTER TABLE: columns, partition fields, the order of writes, identifier fields, references."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from frazil.errors import NoSuchRefError, UnsupportedError, ValidationError
from frazil.format.properties.table import DISTRIBUTION_MODE
from frazil.format.schema.ddl import schema_of_ddl
from frazil.spark.row_level.commands import RowCommands
from frazil.spark.sql.context import SqlContext
from frazil.spark.sql.statements.columns import (
    PARTITION_MANAGEMENT,
    V2_COMMAND,
    ColumnDefinition,
    column_definition,
    column_definitions,
    lacks,
    type_of,
)
from frazil.spark.sql.statements.defaults import default_value
from frazil.spark.sql.statements.tables import keys_of, refuse_collation
from frazil.spark.words import WordReader, properties_of
from frazil.table.updates.references import Retention
from frazil.table.updates.schema import UpdateSchema

_UNITS: Final = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}
_CLAUSES: Final = (("DISTRIBUTED", "BY"), ("LOCALLY", "ORDERED"), ("ORDERED", "BY"))
_OF_COLUMNS: Final = ("TYPE", "COMMENT", "FIRST", "AFTER", "SET", "DROP")
_BY_STATEMENTS: Final = {
    "sort-order": "WRITE ORDERED BY",
    "identifier-fields": "SET IDENTIFIER FIELDS",
}


def alter_table(context: SqlContext, reader: WordReader) -> None:
    """Run an ALTER TABLE."""
    reader.expect("ALTER", "TABLE")
    name = reader.names("the name of a table")
    if reader.takes("RENAME", "TO"):
        source = context.identifier(name)
        new = context.new_name(reader.names("a name"), source)
        reader.finish()
        context.catalog.rename_table(source, new)
        return
    change = next((run for words, run in _CHANGES.items() if reader.takes(*words)), None)
    if change is None:
        refused = next((what for words, what in _LACKING.items() if reader.sees(*words)), None)
        if refused is not None:
            raise lacks(context.to_change(name).identifier, *refused)
        raise reader.error("a change of the table is expected, such as ADD COLUMN")
    # The whole statement is read before anything is committed.
    with context.to_change(name).port.in_one_commit() as port:
        change(context, RowCommands(port), reader)
        reader.finish()


# -- columns -------------------------------------------------------------------------------------


def _add_columns(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    if reader.sees("("):
        added = column_definitions(reader.inner_reader(), table.port.identifier)
    else:
        added = reader.list_of(column_definition, reader, table.port.identifier)
    with _schema_of(context, table) as change:
        for each in added:
            _add(context, change, each)


def _add(context: SqlContext, change: UpdateSchema, column: ColumnDefinition) -> None:
    given = column.field
    default = None if column.default is None else default_value(context, given, column.default)
    change.add_column(
        column.parts,
        given.field_type,
        doc=column.comment,
        default=default,
        required=column.is_required,
    )
    _move(change, column.parts, column.position)


def _move(change: UpdateSchema, name: tuple[str, ...], position: str | None) -> None:
    """Move a column to where its definition says: first, or after another one."""
    if position == "":
        change.move_first(name)
    elif position is not None:
        change.move_after(name, (*name[:-1], position))


def _replace_columns(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    """Run Hive's REPLACE COLUMNS: all columns go, and others come, even if of the same name."""
    inner = reader.inner_reader()
    columns = column_definitions(inner, table.port.identifier)
    for each in columns:
        if each.is_required or each.default is not None or each.position is not None:
            raise inner.error(
                "NOT NULL, DEFAULT and positions are not supported in Hive-style REPLACE COLUMNS"
            )
    with _schema_of(context, table) as change:
        for field in table.metadata.schema.fields:
            change.delete_column((field.name,))
        for each in columns:
            _add(context, change, each)


def _rename_column(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    name = reader.names("a column")
    reader.expect("TO")
    with _schema_of(context, table) as change:
        change.rename_column(name, reader.name("a name"))


def _drop_columns(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    if_exists = reader.takes("IF", "EXISTS")
    inner = reader.inner_reader() if reader.sees("(") else reader
    names = inner.list_of(inner.names, "a column")
    schema = table.metadata.schema
    with _schema_of(context, table) as change:
        for name in names:
            if not if_exists or _has_column(schema, name):
                change.delete_column(name)


def _has_column(schema: object, name: tuple[str, ...]) -> bool:
    try:
        schema.find_field(".".join(name), case_sensitive=False)  # type: ignore[attr-defined]
    except ValidationError:
        return False
    return True


def _alter_columns(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    with _schema_of(context, table) as change:
        _alter_column(context, table, change, reader)
        while reader.takes(","):
            _alter_column(context, table, change, reader)


def _change_column(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    """Run Hive's CHANGE COLUMN, which says the name twice and the type; else as ALTER COLUMN."""
    begin = reader.at
    name = reader.names("a column")
    if reader.is_done or not _is_definition_of(name[-1], reader):
        if not (reader.is_done or reader.sees_one_of(*_OF_COLUMNS)):
            raise reader.error(
                "Renaming column is not supported in Hive-style ALTER COLUMN, please run RENAME "
                "COLUMN instead"
            )
        reader.at = begin
        _alter_columns(context, table, reader)
        return
    given = column_definition(reader, table.port.identifier)
    if given.is_required or given.default is not None:
        raise reader.error("CHANGE COLUMN has no NOT NULL and no DEFAULT: say ALTER COLUMN … SET")
    with _schema_of(context, table) as change:
        change.update_column(name, given.field.field_type)
        if given.comment is not None:
            change.update_column(name, doc=given.comment)
        _move(change, name, given.position)


def _is_definition_of(name: str, reader: WordReader) -> bool:
    """Whether the same name comes again, with its type; a column may be called COMMENT."""
    after = reader.words[reader.at + 1 : reader.at + 2]
    return reader.words[reader.at].text == name and not any(each.is_string for each in after)


def _alter_column(
    context: SqlContext, table: RowCommands, change: UpdateSchema, reader: WordReader
) -> None:
    name = reader.names("a column")
    if reader.takes("TYPE"):
        (given,) = schema_of_ddl(f"c {type_of(reader)}").fields
        change.update_column(name, given.field_type)
    elif reader.takes("COMMENT"):
        change.update_column(name, doc=reader.string())
    elif reader.takes("FIRST"):
        change.move_first(name)
    elif reader.takes("AFTER"):
        change.move_after(name, (*name[:-1], reader.name("a column")))
    elif reader.takes("DROP", "NOT", "NULL"):
        change.make_column_optional(name)
    elif reader.takes("SET", "NOT", "NULL"):
        change.require_column(name)
    elif reader.takes("SET", "DEFAULT"):
        strict = table.port.case_sensitive
        field = table.metadata.schema.find_field(".".join(name), case_sensitive=strict)
        change.update_column(name, default=default_value(context, field, reader.text_to(",", ";")))
    elif reader.takes("DROP", "DEFAULT"):
        change.update_column(name, default=None)
    else:
        raise reader.error("TYPE, COMMENT, FIRST, AFTER, SET or DROP is expected")


def _schema_of(context: SqlContext, table: RowCommands) -> UpdateSchema:
    return table.update_schema(case_sensitive=table.port.case_sensitive)


# -- partition fields, order, identifier fields --------------------------------------------------


def _add_partition_field(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    term, name = _term(reader)
    with table.update_spec(case_sensitive=table.port.case_sensitive) as change:
        change.add_field(term, name=name)


def _drop_partition_field(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    with table.update_spec(case_sensitive=table.port.case_sensitive) as change:
        change.remove_field(reader.text_to(";"))


def _replace_partition_field(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    old = reader.text_to("WITH")
    reader.expect("WITH")
    term, name = _term(reader)
    with table.update_spec(case_sensitive=table.port.case_sensitive) as change:
        change.replace_field(old, term, name=name)


def _term(reader: WordReader) -> tuple[str, str | None]:
    term = reader.text_to("AS", ";")
    return term, reader.name("a name") if reader.takes("AS") else None


def _write(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    """The default order and distribution, as Java's extension sets them."""
    fields: list[str] | None = None
    ordered: str | None = None
    is_distributed = False
    while not is_distributed or fields is None:
        if not is_distributed and reader.takes("DISTRIBUTED", "BY", "PARTITION"):
            is_distributed = True
        elif fields is None and reader.takes("UNORDERED"):
            fields, ordered = [], "none"
        elif fields is None and reader.takes("ORDERED", "BY"):
            fields, ordered = _order(reader), "range"
        elif fields is None and reader.takes("LOCALLY", "ORDERED", "BY"):
            fields = _order(reader)
        else:
            break
    if not is_distributed and fields is None:
        raise reader.error("ORDERED BY, DISTRIBUTED BY PARTITION or UNORDERED is expected")
    mode = "hash" if is_distributed else ordered
    table.replace_sort_order(*(fields or []))
    if mode is not None:
        table.set_properties({DISTRIBUTION_MODE.name: mode})


def _order(reader: WordReader) -> list[str]:
    """Read the terms of an order, in parentheses or not."""
    inner = reader.inner_reader() if reader.sees("(") else reader
    keys = [word.keyword for word in inner.words[inner.at :]]
    # A column may be called as one of these.
    after = [pair[0] for pair in pairwise(keys) if pair in _CLAUSES]
    fields = inner.list_of(inner.text_to, ",", ";", *after)
    if inner is not reader:
        inner.finish()
    return fields


def _set_identifier_fields(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    names = reader.list_of(reader.names, "a column")
    with _schema_of(context, table) as change:
        change.set_identifier_fields(*names)


def _drop_identifier_fields(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    gone = {".".join(name).lower() for name in reader.list_of(reader.names, "a column")}
    schema = table.metadata.schema
    now = [str(schema.find_column_name(i)) for i in schema.identifier_field_ids]
    unknown = gone - {name.lower() for name in now}
    if unknown:
        raise ValidationError(f"{', '.join(sorted(unknown))}: not among the identifier fields")
    with _schema_of(context, table) as change:
        change.set_identifier_fields(*(name for name in now if name.lower() not in gone))


# -- properties ----------------------------------------------------------------------------------


def _set_properties(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    given = properties_of(reader.inner_reader())
    for key in _BY_STATEMENTS.keys() & given.keys():
        raise UnsupportedError(
            f"{key!r} is a reserved table property: say ALTER TABLE … {_BY_STATEMENTS[key]}"
        )
    special: dict[str, Callable[[str], object]] = {
        "location": table.set_location,
        "format-version": table.upgrade,
        "current-snapshot-id": table.set_current_snapshot,
        "cherry-pick-snapshot-id": table.cherrypick_snapshot,
    }
    for key, act in special.items():
        if key in given:
            act(given.pop(key))
    if given:
        table.set_properties(given)


def _unset_properties(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    reader.takes("IF", "EXISTS")
    table.remove_properties(*keys_of(reader.inner_reader()))


def _set_collation(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    refuse_collation(reader)


def _set_location(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
    table.set_location(reader.string())


# -- branches and tags ---------------------------------------------------------------------------


def _reference(kind: str, *, creates: bool, replaces: bool) -> Callable[..., None]:
    def run(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
        if_not_exists = reader.takes("IF", "NOT", "EXISTS")
        name = reader.name(f"a {kind}")
        version, retention = _reference_clauses(reader)
        exists = name in table.metadata.refs
        if exists and if_not_exists:
            return
        if replaces and (exists or not creates):
            replace = table.replace_branch if kind == "branch" else table.replace_tag
            replace(name, snapshot_id=version, retention=retention)
        else:
            create = table.create_branch if kind == "branch" else table.create_tag
            create(name, snapshot_id=version, retention=retention or Retention())

    return run


def _reference_clauses(reader: WordReader) -> tuple[int | None, Retention | None]:
    version = None
    if reader.takes("AS", "OF", "VERSION"):
        version = reader.number("a snapshot's id")
    age = _duration(reader) if reader.takes("RETAIN") else None
    snapshots = snapshot_age = None
    if reader.takes("WITH", "SNAPSHOT", "RETENTION"):
        number = reader.number()
        if reader.takes("SNAPSHOTS"):
            snapshots = number
            snapshot_age = None if reader.is_done or reader.sees(";") else _duration(reader)
        else:
            snapshot_age = number * _unit(reader)
    if age is None and snapshots is None and snapshot_age is None:
        return version, None
    return version, Retention(
        min_snapshots_to_keep=snapshots, max_snapshot_age_ms=snapshot_age, max_ref_age_ms=age
    )


def _duration(reader: WordReader) -> int:
    return reader.number() * _unit(reader)


def _unit(reader: WordReader) -> int:
    for unit, milliseconds in _UNITS.items():
        if reader.takes(unit) or reader.takes(unit.removesuffix("S")):
            return milliseconds
    raise reader.error("DAYS, HOURS or MINUTES is expected")


def _drop_reference(kind: str) -> Callable[..., None]:
    def run(context: SqlContext, table: RowCommands, reader: WordReader) -> None:
        if_exists = reader.takes("IF", "EXISTS")
        name = reader.name(f"a {kind}")
        remove = table.remove_branch if kind == "branch" else table.remove_tag
        try:
            remove(name)
        except NoSuchRefError:
            if not if_exists:
                raise

    return run


_CHANGES: Final[Mapping[tuple[str, ...], Callable[[SqlContext, RowCommands, WordReader], None]]] = {
    ("ADD", "PARTITION", "FIELD"): _add_partition_field,
    ("DROP", "PARTITION", "FIELD"): _drop_partition_field,
    ("REPLACE", "PARTITION", "FIELD"): _replace_partition_field,
    ("ADD", "COLUMNS"): _add_columns,
    ("ADD", "COLUMN"): _add_columns,
    ("REPLACE", "COLUMNS"): _replace_columns,
    ("RENAME", "COLUMN"): _rename_column,
    ("DROP", "COLUMNS"): _drop_columns,
    ("DROP", "COLUMN"): _drop_columns,
    ("ALTER", "COLUMN"): _alter_columns,
    ("ALTER",): _alter_columns,
    ("CHANGE", "COLUMN"): _change_column,
    ("CHANGE",): _change_column,
    ("SET", "TBLPROPERTIES"): _set_properties,
    ("UNSET", "TBLPROPERTIES"): _unset_properties,
    ("SET", "LOCATION"): _set_location,
    ("DEFAULT", "COLLATION"): _set_collation,
    ("SET", "IDENTIFIER", "FIELDS"): _set_identifier_fields,
    ("DROP", "IDENTIFIER", "FIELDS"): _drop_identifier_fields,
    ("WRITE",): _write,
    ("CREATE", "OR", "REPLACE", "BRANCH"): _reference("branch", creates=True, replaces=True),
    ("CREATE", "BRANCH"): _reference("branch", creates=True, replaces=False),
    ("REPLACE", "BRANCH"): _reference("branch", creates=False, replaces=True),
    ("CREATE", "OR", "REPLACE", "TAG"): _reference("tag", creates=True, replaces=True),
    ("CREATE", "TAG"): _reference("tag", creates=True, replaces=False),
    ("REPLACE", "TAG"): _reference("tag", creates=False, replaces=True),
    ("DROP", "BRANCH"): _drop_reference("branch"),
    ("DROP", "TAG"): _drop_reference("tag"),
}
"""What follows the table's name, and what runs it; of two that begin alike the longer is first."""

_CONSTRAINT: Final = ("table constraint",)
_OF_ROWS: Final = "partition management: its partitions are those of its rows"
_PARTITIONS: Final = (_OF_ROWS, PARTITION_MANAGEMENT)
_SERDE: Final = ("SERDE: its files are Parquet", V2_COMMAND)
_LACKING: Final[Mapping[tuple[str, ...], tuple[str, ...]]] = {
    ("ADD", "CONSTRAINT"): _CONSTRAINT,
    ("ADD", "CHECK"): _CONSTRAINT,
    ("ADD", "PRIMARY", "KEY"): _CONSTRAINT,
    ("ADD", "UNIQUE"): _CONSTRAINT,
    ("ADD", "FOREIGN", "KEY"): _CONSTRAINT,
    ("DROP", "CONSTRAINT"): _CONSTRAINT,
    ("ADD", "PARTITION"): _PARTITIONS,
    ("ADD", "IF", "NOT", "EXISTS", "PARTITION"): _PARTITIONS,
    ("DROP", "PARTITION"): _PARTITIONS,
    ("DROP", "IF", "EXISTS", "PARTITION"): _PARTITIONS,
    ("PARTITION",): _PARTITIONS,
    ("RECOVER", "PARTITIONS"): (_OF_ROWS, V2_COMMAND),
    ("SET", "SERDE"): _SERDE,
    ("SET", "SERDEPROPERTIES"): _SERDE,
    ("UNSET", "SERDEPROPERTIES"): _SERDE,
    ("CLUSTER", "BY"): ("CLUSTER BY: say WRITE ORDERED BY",),
}
"""Changes that Spark knows and tables of lakes do not, and what is said of them: see `lacks`."""
