"""The updates that make a view, and those that give it another query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from frazil.format.changes import LAST_ADDED, AddSchema, SetLocation, SetProperties
from frazil.format.schema import Schema
from frazil.format.views.apply import apply_view_updates
from frazil.format.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from frazil.format.views.view_metadata import ViewMetadata, ViewVersion


def new_view_metadata(
    schema: Schema,
    version: ViewVersion,
    *,
    location: str,
    properties: Mapping[str, str] | None = None,
) -> ViewMetadata:
    """Return the metadata of a view that is made.

    `version`: that version; its schema id is the one that the schema gets.
    """
    updates: tuple[ViewUpdate, ...] = (SetLocation(location.rstrip("/") or location),)
    return apply_view_updates(
        None, (*updates, *replacing_updates(schema, version, properties=properties))
    )


def replacing_updates(
    schema: Schema,
    version: ViewVersion,
    *,
    properties: Mapping[str, str] | None = None,
    base: ViewMetadata | None = None,
) -> tuple[ViewUpdate, ...]:
    """Return the updates that make a version the current one, and set properties.

    `base`: the view as it is known; ids are then new to it, since a server may take them as they
    are, and what it has is not added again.
    """
    given: tuple[ViewUpdate, ...] = (SetProperties(dict(properties)),) if properties else ()
    schema_id = LAST_ADDED
    if base is not None:
        same = (each.schema_id for each in base.schemas if each.is_same_as(schema))
        schema_id = next(same, LAST_ADDED)
        schema = schema.with_id(max(base.schemas_by_id, default=-1) + 1)
        version = replace(version, version_id=max(base.versions_by_id, default=0) + 1)
    version = replace(version, schema_id=schema_id)
    held = (each for each in (() if base is None else base.versions) if each.is_same_as(version))
    known = next(held, None)
    if known is not None:
        return (*given, SetCurrentViewVersion(known.version_id))
    # The deprecated field is wanted by servers that are older.
    added = AddSchema(schema, schema.highest_field_id)
    return (
        *given,
        *((added,) if schema_id == LAST_ADDED else ()),
        AddViewVersion(version),
        SetCurrentViewVersion(),
    )
