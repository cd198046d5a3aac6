"""Tables and databases as Glue keeps them, as Java's GlueCatalog writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frazil.catalog.pointer.type_text import type_text
from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import (
    DATA_PATH,
    FOLDER_STORAGE_PATH,
    METADATA_PATH,
    OBJECT_STORAGE_PATH,
)
from frazil.format.schema import Schema
from frazil.format.types import IcebergType, NestedField
from frazil.format.types.forms import form_of

TABLE_TYPE: Final = "table_type"
METADATA_LOCATION: Final = "metadata_location"
PREVIOUS_METADATA_LOCATION: Final = "previous_metadata_location"
_ICEBERG: Final = "ICEBERG"
_EXTERNAL: Final = "EXTERNAL_TABLE"
_DESCRIPTION: Final = "comment"
_NAMED: Final = {"Description": _DESCRIPTION, "LocationUri": "location"}
"""What Glue has a field for, and the properties of namespaces that say it."""
_FORMAT_PARAMETERS: Final = (TABLE_TYPE, "spark.sql.sources.provider", "classification")
_PLACES: Final = tuple(
    each.name for each in (DATA_PATH, METADATA_PATH, OBJECT_STORAGE_PATH, FOLDER_STORAGE_PATH)
)
# What an answer has beside these is Glue's own, and no input of a table or a database.
_TABLE_INPUT: Final = (
    *("Name", "Description", "Owner", "LastAccessTime", "LastAnalyzedTime", "Retention"),
    *("StorageDescriptor", "PartitionKeys", "TableType", "Parameters"),
)
_DATABASE_INPUT: Final = ("Name", "CreateTableDefaultPermissions", "TargetDatabase")
# Glue refuses more bytes than that, and a comment of several lines.
_LONGEST_COMMENT: Final = 255
_LONGEST_DESCRIPTION: Final = 2048


@dataclass(frozen=True, slots=True)
class GlueTable:
    """A table of Glue, of any format.

    Attributes:
        answer: what Glue says of it.
    """

    answer: Mapping[str, Any] = field(repr=False)

    @property
    def parameters(self) -> Mapping[str, str]:
        """The table's own properties in Glue."""
        return self.answer.get("Parameters") or {}

    @property
    def is_iceberg(self) -> bool:
        """Whether it is a table of Iceberg."""
        return self.parameters.get(TABLE_TYPE, "").upper() == _ICEBERG

    @property
    def format_name(self) -> str:
        """What a table of another format is, in Glue's words."""
        named = (self.parameters.get(name) for name in _FORMAT_PARAMETERS)
        return next((each for each in named if each), self.answer.get("TableType") or "unknown")

    @property
    def pointer(self) -> str | None:
        """The current metadata file."""
        return self.parameters.get(METADATA_LOCATION) or None

    @property
    def version(self) -> str | None:
        """What changes with every change of the table."""
        return self.answer.get("VersionId")

    def as_input(self) -> dict[str, Any]:
        """Return what makes the same table."""
        return {name: self.answer[name] for name in _TABLE_INPUT if self.answer.get(name)}


def new_table_input(
    name: str, metadata: TableMetadata, metadata_location: str, *, before: GlueTable | None = None
) -> dict[str, Any]:
    """Return the input of a table whose pointer is that file.

    `metadata`: what the file holds; Glue shows its columns. `before`: the table as it is; what
    others wrote into it is kept.
    """
    kept = {} if before is None else before.as_input()
    description = metadata.properties.get(_DESCRIPTION) or kept.get("Description")
    made: dict[str, Any] = {
        **kept,
        "Name": name,
        "TableType": _EXTERNAL,
        "Parameters": _parameters(metadata_location, before),
        "StorageDescriptor": _storage(metadata, _comments(before)),
    }
    if description:
        made["Description"] = _shortened_text(description, _LONGEST_DESCRIPTION)
    return made


def database_input(
    name: str, properties: Mapping[str, str], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the input of a database with these properties; what Glue itself set is kept."""
    kept = {key: before[key] for key in _DATABASE_INPUT if before and before.get(key)}
    own = {key: properties[each] for key, each in _NAMED.items() if each in properties}
    rest = {key: value for key, value in properties.items() if key not in _NAMED.values()}
    return {**kept, "Name": name, **own, "Parameters": rest}


def database_properties(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties of a database that Glue tells of."""
    own = {name: answer[key] for key, name in _NAMED.items() if answer.get(key) is not None}
    return {**(answer.get("Parameters") or {}), **own}


def glue_type(iceberg: IcebergType) -> str:
    """Return a type as Java shows it in Glue; nobody reads data by it.

    >>> glue_type(LongType())
    'bigint'
    """
    return type_text(iceberg, lambda primitive: form_of(primitive).glue or str(primitive))


def _parameters(metadata_location: str, before: GlueTable | None) -> dict[str, str]:
    made = {TABLE_TYPE: _ICEBERG, METADATA_LOCATION: metadata_location}
    if before is not None and before.pointer:
        made[PREVIOUS_METADATA_LOCATION] = before.pointer
    return {**(before.parameters if before is not None else {}), **made}


def _storage(metadata: TableMetadata, comments: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "Location": metadata.location,
        "Columns": _columns(metadata, comments),
    }
    properties = metadata.properties
    if places := sorted({properties[name] for name in _PLACES if properties.get(name)}):
        made["AdditionalLocations"] = places
    return made


def _columns(metadata: TableMetadata, comments: Mapping[str, str]) -> list[dict[str, Any]]:
    """The columns of the current schema, then former ones of other names."""
    found: dict[str, dict[str, Any]] = {}
    current: Schema = metadata.schema
    former = (each for each in metadata.schemas if each.schema_id != current.schema_id)
    for schema in (current, *former):
        for column in schema.fields:
            made = _column(column, comments, is_current=schema is current)
            found.setdefault(column.name, made)
    return list(found.values())


def _column(
    column: NestedField, comments: Mapping[str, str], *, is_current: bool
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "Name": column.name,
        "Type": glue_type(column.field_type),
        "Parameters": {
            "iceberg.field.id": str(column.field_id),
            "iceberg.field.optional": _word(column.optional),
            "iceberg.field.current": _word(is_current),
        },
    }
    if comment := column.doc or comments.get(column.name):
        made["Comment"] = _shortened_text(" ".join(comment.splitlines()), _LONGEST_COMMENT)
    return made


def _comments(before: GlueTable | None) -> dict[str, str]:
    """The comments of columns that a table has in Glue, by their names."""
    storage = {} if before is None else before.answer.get("StorageDescriptor") or {}
    commented = (each for each in storage.get("Columns") or () if each.get("Comment"))
    found: dict[str, str] = {}
    for each in commented:
        found.setdefault(each["Name"], each["Comment"])
    return found


def _shortened_text(text: str, longest: int) -> str:
    return text.encode()[:longest].decode(errors="ignore")


def _word(flag: bool) -> str:
    return "true" if flag else "false"
