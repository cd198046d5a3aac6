"""Definitions of columns in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import FrazilError, UnsupportedError
from frazil.format.schema.ddl import schema_of_ddl
from frazil.format.types import NestedField
from frazil.spark.plans.sparks_errors import sparks_too
from frazil.spark.words import WordReader

PARTITION_MANAGEMENT: Final = "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED"
V2_COMMAND: Final = "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE"
_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "UNSUPPORTED_FEATURE.TABLE_OPERATION": ("tableName", "operation"),
    PARTITION_MANAGEMENT: ("name",),
    V2_COMMAND: ("cmd",),
}
"""What the texts of Spark's conditions name."""

_OF_CONSTRAINTS: Final = ("CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES")
_AFTER_TYPE: Final = (
    *("NOT", "NULL", "COMMENT", "DEFAULT", "GENERATED", "FIRST", "AFTER", ",", ";"),
    *_OF_CONSTRAINTS,
)
_CONSTRAINTS: Final = (("CHECK", "("), ("UNIQUE", "("), ("PRIMARY", "KEY"), ("FOREIGN", "KEY"))


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column as it is written.

    Attributes:
        parts: its name, of several parts for a field of a struct.
        type_text: its type.
        is_required: NOT NULL is said.
        comment: after COMMENT; None without.
        default: the text after DEFAULT; None without.
        position: FIRST, or the name after AFTER; None without.
    """

    parts: tuple[str, ...]
    type_text: str
    is_required: bool
    comment: str | None
    default: str | None
    position: str | None

    @property
    def name(self) -> str:
        """The name's last part."""
        return self.parts[-1]

    @property
    def text(self) -> str:
        """The column as DDL without its default."""
        quoted = "`" + self.name.replace("`", "``") + "`"
        required = " NOT NULL" if self.is_required else ""
        comment = "" if self.comment is None else f" COMMENT {_string(self.comment)}"
        return f"{quoted} {self.type_text}{required}{comment}"

    @property
    def field(self) -> NestedField:
        """The column as Iceberg has it.

        Raises:
            ValidationError: the type is none.
        """
        (found,) = schema_of_ddl(self.text).fields
        return found


def lacks(
    table: Identifier, what: str, condition: str = "UNSUPPORTED_FEATURE.TABLE_OPERATION"
) -> FrazilError:
    """Return the error of what no table of a lake has, in Spark's words.

    Args:
        condition: Spark's for it.
    """
    name = shown(table)
    error = UnsupportedError(f"Table {name} does not support {what}; nothing was changed")
    said = {"tableName": name, "name": name, "operation": what, "cmd": f"ALTER TABLE {what}"}
    asked = {key: said[key] for key in _NAMED_BY[condition]}
    return sparks_too(error, AnalysisException, condition, asked)


def column_definitions(reader: WordReader, table: Identifier) -> list[ColumnDefinition]:
    """Read definitions of a table's columns, with commas between them."""
    found = reader.list_of(column_definition, reader, table)
    reader.finish()
    return found


def column_definition(reader: WordReader, table: Identifier) -> ColumnDefinition:
    """Read one definition.

    Args:
        table: the name of the table, for what is said of an error.

    Raises:
        SqlSyntaxError: it is none.
        UnsupportedError: the column is generated, or it is a constraint.
    """
    if _sees_constraint(reader):
        raise lacks(table, "table constraint")
    parts = reader.names("a column")
    type_text = type_of(reader)
    required, comment, default, position = False, None, None, None
    while not reader.is_done and not reader.sees(",") and not reader.sees(";"):
        if reader.takes("NOT", "NULL"):
            required = True
        elif reader.takes("COMMENT"):
            comment = reader.string()
        elif reader.takes("DEFAULT"):
            default = reader.text_to("COMMENT", "NOT", "FIRST", "AFTER", ",", ";")
        elif reader.takes("FIRST"):
            position = ""
        elif reader.takes("AFTER"):
            position = reader.name("a column")
        elif reader.sees("GENERATED"):
            is_identity = "IDENTITY" in reader.text_to(",").upper()
            raise lacks(table, "identity column" if is_identity else "generated columns")
        elif reader.sees_one_of(*_OF_CONSTRAINTS):
            raise lacks(table, "table constraint")
        else:
            raise reader.error("NOT NULL, DEFAULT, COMMENT or a comma is expected")
    return ColumnDefinition(parts, type_text, required, comment, default, position)


def _sees_constraint(reader: WordReader) -> bool:
    """Whether a constraint of the table is next; a column may be called as its first word."""
    at = reader.at + 2 if reader.sees("CONSTRAINT") else reader.at
    keys = tuple(word.keyword for word in reader.words[at : at + 2])
    return keys in _CONSTRAINTS


def type_of(reader: WordReader) -> str:
    """Read a type, which may have others inside of ``<>``."""
    begin = reader.place
    depth = 0
    first = reader.at
    while not reader.is_done:
        word = reader.words[reader.at]
        raw = reader.text[word.start : word.stop]
        if depth == 0 and word.keyword in _AFTER_TYPE and reader.at > first:
            break
        if raw == "(":
            reader.inner_reader()
            continue
        depth += raw.count("<") - raw.count(">")
        reader.at += 1
    if reader.at == first:
        raise reader.error("a type is expected")
    return reader.text[begin : reader.words[reader.at - 1].stop]


def _string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
