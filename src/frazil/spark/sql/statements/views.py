"""CREATE, ALTER and DROP of views of the lake."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.catalog.identifiers import Identifier
from frazil.errors import NoSuchNamespaceError, NoSuchViewError, ViewAlreadyExistsError
from frazil.format.changes import SetProperties
from frazil.spark.sql.binding.view_definition import (
    ViewColumn,
    ViewDefinition,
    change_view,
    create_or_replace_view,
    remove_view_properties,
    replace_view,
)
from frazil.spark.sql.binding.view_definition import create_view as make_view
from frazil.spark.sql.context import SparksNameError, SqlContext
from frazil.spark.sql.statements.tables import keys_of
from frazil.spark.words import Word, WordReader, properties_of


def makes_view(words: Sequence[Word]) -> bool:
    """Return whether words begin a CREATE VIEW of a view that is not temporary."""
    keywords = [word.keyword for word in words[:4]]
    return keywords[:2] == ["CREATE", "VIEW"] or keywords == ["CREATE", "OR", "REPLACE", "VIEW"]


def keeps_a_query(words: Sequence[Word]) -> bool:
    """Return whether words are a statement that gives a view its query."""
    alters = [word.keyword for word in words[:2]] == ["ALTER", "VIEW"]
    return makes_view(words) or (alters and any(word.keyword == "AS" for word in words))


def create_view(context: SqlContext, reader: WordReader) -> None:
    """Run a CREATE VIEW."""
    reader.expect("CREATE")
    replaces = reader.takes("OR", "REPLACE")
    reader.expect("VIEW")
    if_not_exists = reader.takes("IF", "NOT", "EXISTS")
    if replaces and if_not_exists:
        raise reader.error("OR REPLACE or IF NOT EXISTS, not both,")
    name = _own_name(context, reader)
    columns = columns_of(reader.inner_reader()) if reader.sees("(") else []
    properties: dict[str, str] = {}
    while not reader.takes("AS"):
        if reader.takes("COMMENT"):
            properties["comment"] = reader.string()
        elif reader.takes("TBLPROPERTIES"):
            properties.update(properties_of(reader.inner_reader()))
        else:
            raise reader.error("AS is expected")
    definition = ViewDefinition(_query(reader), columns, properties)
    if if_not_exists and context.catalog.view_exists(name):
        return
    if replaces:
        create_or_replace_view(context, name, definition)
        return
    try:
        make_view(context, name, definition)
    except ViewAlreadyExistsError:
        # Another may have made it since.
        if not if_not_exists or not context.catalog.view_exists(name):
            raise


def alter_view(context: SqlContext, reader: WordReader) -> None:
    """Run an ALTER VIEW."""
    reader.expect("ALTER", "VIEW")
    parts = _names(context, reader)
    if reader.takes("RENAME", "TO"):
        source = context.identifier(parts)
        new = context.new_name(reader.names("the name of a view"), source)
        reader.finish()
        context.catalog.rename_view(source, new)
        return
    name = context.identifier(parts)
    if reader.takes("SET", "TBLPROPERTIES"):
        given = properties_of(reader.inner_reader())
        reader.finish()
        change_view(context, name, (SetProperties(given),))
    elif reader.takes("UNSET", "TBLPROPERTIES"):
        if_exists = reader.takes("IF", "EXISTS")
        keys = keys_of(reader.inner_reader())
        reader.finish()
        remove_view_properties(context, name, keys, if_exists=if_exists)
    elif reader.takes("AS"):
        replace_view(context, name, ViewDefinition(_query(reader)))
    else:
        raise reader.error("SET, UNSET, RENAME TO or AS is expected")


def drop_view(context: SqlContext, reader: WordReader) -> None:
    """Run a DROP VIEW."""
    reader.expect("DROP", "VIEW")
    if_exists = reader.takes("IF", "EXISTS")
    name = _own_name(context, reader)
    reader.finish()
    try:
        context.catalog.drop_view(name)
    except (NoSuchViewError, NoSuchNamespaceError):
        if not if_exists or context.catalog.table_exists(name):
            raise


def _own_name(context: SqlContext, reader: WordReader) -> Identifier:
    return context.identifier(_names(context, reader))


def _names(context: SqlContext, reader: WordReader) -> Identifier:
    """The name of a view; SparksNameError where it is a temporary one or in Spark's catalog."""
    parts = reader.names("the name of a view")
    if context.is_temporary_view(parts) or context.is_of_spark(parts):
        raise SparksNameError(".".join(parts))
    return parts


def _query(reader: WordReader) -> str:
    words = reader.words[reader.at :]
    while words and words[-1].keyword == ";":
        words = words[:-1]
    if not words:
        raise reader.error("a query is expected")
    return reader.text[words[0].start : words[-1].stop]


def columns_of(reader: WordReader) -> list[ViewColumn]:
    """Read ``name COMMENT 'text', …``: the columns that are named before AS."""
    columns = reader.list_of(_column, reader)
    reader.finish()
    return columns


def _column(reader: WordReader) -> ViewColumn:
    name = reader.name("a column")
    return ViewColumn(name, reader.string() if reader.takes("COMMENT") else None)
