"""View metadata as JSON (rules 279-287)."""

from __future__ import annotations

import json
from typing import Any

from frazil.errors import UnsupportedVersionError
from frazil.format.json_fields import JsonObject, load_json, without_nulls
from frazil.format.schema import Schema
from frazil.format.views.view_metadata import (
    VIEW_FORMAT_VERSION,
    SqlRepresentation,
    UnknownRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
)


def parse_view_metadata(data: bytes, *, file: str | None = None) -> ViewMetadata:
    """Return the metadata of a view's metadata file, which is not compressed any more."""
    return view_metadata_from_json(load_json(data, what="the metadata", file=file), file=file)


def view_metadata_from_json(value: Any, *, file: str | None = None) -> ViewMetadata:
    """Return the metadata of a decoded JSON object; it raises as `parse_view_metadata` does."""
    fields = JsonObject(value, file=file)
    # First, so that a table's metadata is not taken for a view's of a later version.
    view_uuid = fields.string("view-uuid")
    format_version = fields.integer("format-version")
    if format_version != VIEW_FORMAT_VERSION:
        raise UnsupportedVersionError(
            f"the view's format version is {format_version}; supported is version 1"
            + (f" (file {file})" if file else "")
        )
    schemas = fields.parsed_list("schemas", Schema.from_json)
    fields.check_unique("schemas", (each.schema_id for each in schemas))
    fields.array("versions")
    versions = tuple(view_version_from_json(each) for each in fields.objects("versions"))
    fields.check_unique("versions", (each.version_id for each in versions))
    fields.array("version-log")
    metadata = ViewMetadata(
        view_uuid=view_uuid,
        location=fields.string("location"),
        schemas=schemas,
        current_version_id=fields.integer("current-version-id"),
        versions=versions,
        version_log=tuple(
            ViewHistoryEntry(each.moment("timestamp-ms"), each.integer("version-id"))
            for each in fields.objects("version-log")
        ),
        properties=fields.string_map("properties"),
        format_version=format_version,
    )
    current = metadata.versions_by_id.get(metadata.current_version_id)
    if current is None:
        raise fields.error_of(
            "current-version-id",
            f"{metadata.current_version_id} is not among the versions that the view has: "
            f"{sorted(metadata.versions_by_id)}",
        )
    if current.schema_id not in metadata.schemas_by_id:
        raise fields.error_of(
            "schemas",
            f"the schema {current.schema_id} of the current version is not among them: "
            f"{sorted(metadata.schemas_by_id)}",
        )
    return metadata


def view_metadata_to_json(metadata: ViewMetadata) -> dict[str, Any]:
    """Return the JSON object of a view's metadata."""
    return {
        "view-uuid": metadata.view_uuid,
        "format-version": metadata.format_version,
        "location": metadata.location,
        "properties": dict(metadata.properties),
        "schemas": [each.to_json() for each in metadata.schemas],
        "current-version-id": metadata.current_version_id,
        "versions": [view_version_to_json(each) for each in metadata.versions],
        "version-log": [
            {"timestamp-ms": each.timestamp_ms, "version-id": each.version_id}
            for each in metadata.version_log
        ],
    }


def view_metadata_to_bytes(metadata: ViewMetadata) -> bytes:
    """Return the bytes of a view's metadata file, not compressed."""
    return json.dumps(view_metadata_to_json(metadata)).encode()


def view_version_from_json(fields: JsonObject) -> ViewVersion:
    """Return a version; fields that are not known are left out."""
    fields.array("representations")
    version = ViewVersion(
        version_id=fields.integer("version-id"),
        schema_id=fields.integer("schema-id"),
        timestamp_ms=fields.moment("timestamp-ms"),
        # Some writers leave out an empty one.
        summary=fields.string_map("summary"),
        representations=tuple(_representation(each) for each in fields.objects("representations")),
        default_namespace=fields.strings("default-namespace"),
        default_catalog=fields.optional_string("default-catalog"),
    )
    twice = repeated_dialect(version)
    if twice is not None:
        raise fields.error_of("representations", f"there are two of the dialect {twice}")
    return version


def view_version_to_json(version: ViewVersion) -> dict[str, Any]:
    """Return the JSON object of a version."""
    return without_nulls(
        {
            "version-id": version.version_id,
            "timestamp-ms": version.timestamp_ms,
            "schema-id": version.schema_id,
            "summary": dict(version.summary),
            "default-catalog": version.default_catalog,
            "default-namespace": list(version.default_namespace),
            "representations": [_representation_to_json(each) for each in version.representations],
        }
    )


def repeated_dialect(version: ViewVersion) -> str | None:
    """Return a dialect that a version has SQL of twice (rule 282); None where there is none."""
    dialects = version.dialects
    return next((each for at, each in enumerate(dialects) if each in dialects[:at]), None)


def _representation(fields: JsonObject) -> ViewRepresentation:
    kind = fields.string("type")
    if kind.lower() == SqlRepresentation.type:
        return SqlRepresentation(fields.string("sql"), fields.string("dialect"))
    return UnknownRepresentation(kind, dict(fields.fields))


def _representation_to_json(representation: ViewRepresentation) -> dict[str, Any]:
    if isinstance(representation, UnknownRepresentation):
        return dict(representation.fields)
    return {
        "type": representation.type,
        "sql": representation.sql,
        "dialect": representation.dialect,
    }
