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

    Args:
        schema: the columns of its first version.
        version: that version; its schema id is the one that the schema gets.
        location: the folder of its metadata.
        properties: such as ``comment``.

    Raises:
        ValidationError: the version breaks the specification.
    """
    updates: tuple[ViewUpdate, ...] = (SetLocation(location.rstrip("/") or location),)
    return apply_view_updates(
        None, (*updates, *replacing_updates(schema, version, properties=properties))
    )


def replacing_updates(
    schema: Schema, version: ViewVersion, *, properties: Mapping[str, str] | None = None
) -> tuple[ViewUpdate, ...]:
    """Return the updates that make a version the current one, and set properties."""
    given: tuple[ViewUpdate, ...] = (SetProperties(dict(properties)),) if properties else ()
    return (
        *given,
        AddSchema(schema),
        AddViewVersion(replace(version, schema_id=LAST_ADDED)),
        SetCurrentViewVersion(),
    )
