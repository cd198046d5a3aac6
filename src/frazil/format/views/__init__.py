"""Views by the view specification: their metadata, its JSON, how it changes (rules 279-287)."""

from __future__ import annotations

from frazil.format.views.apply import apply_view_updates, new_view_metadata, replacing_updates
from frazil.format.views.json_form import (
    parse_view_metadata,
    view_metadata_from_json,
    view_metadata_to_bytes,
    view_metadata_to_json,
    view_version_from_json,
    view_version_to_json,
)
from frazil.format.views.updates import (
    AddViewVersion,
    AssertViewUUID,
    SetCurrentViewVersion,
    ViewRequirement,
    ViewUpdate,
    check_view_requirements,
    view_requirement_from_json,
    view_update_from_json,
)
from frazil.format.views.view_metadata import (
    VIEW_FORMAT_VERSION,
    SqlRepresentation,
    UnknownRepresentation,
    ViewHistoryEntry,
    ViewMetadata,
    ViewRepresentation,
    ViewVersion,
)

__all__ = [
    "VIEW_FORMAT_VERSION",
    "AddViewVersion",
    "AssertViewUUID",
    "SetCurrentViewVersion",
    "SqlRepresentation",
    "UnknownRepresentation",
    "ViewHistoryEntry",
    "ViewMetadata",
    "ViewRepresentation",
    "ViewRequirement",
    "ViewUpdate",
    "ViewVersion",
    "apply_view_updates",
    "check_view_requirements",
    "new_view_metadata",
    "parse_view_metadata",
    "replacing_updates",
    "view_metadata_from_json",
    "view_metadata_to_bytes",
    "view_metadata_to_json",
    "view_requirement_from_json",
    "view_update_from_json",
    "view_version_from_json",
    "view_version_to_json",
]
