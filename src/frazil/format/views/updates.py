"""What a commit changes in a view: the updates of the REST catalog as values, and their JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import CommitFailedError, UnsupportedError
from frazil.format.changes import (
    LAST_ADDED,
    AddSchema,
    AssignUUID,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
    update_from_json,
)
from frazil.format.changes.requirements import CommitRequirement
from frazil.format.changes.updates import TableUpdate
from frazil.format.json_fields import JsonObject
from frazil.format.views.json_form import view_version_from_json, view_version_to_json
from frazil.format.views.view_metadata import ViewMetadata, ViewVersion


@dataclass(frozen=True, slots=True)
class AddViewVersion(TableUpdate):
    """Add a version; its schema id may be `LAST_ADDED`."""

    view_version: ViewVersion
    action: ClassVar[str] = "add-view-version"

    def _fields(self) -> dict[str, Any]:
        return {"view-version": view_version_to_json(self.view_version)}


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion(TableUpdate):
    """Make a version the current one; unless given, the one that was added last."""

    view_version_id: int = LAST_ADDED
    action: ClassVar[str] = "set-current-view-version"


ViewUpdate = (
    AssignUUID
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)

_OF_TABLES = (
    AssignUUID,
    UpgradeFormatVersion,
    AddSchema,
    SetLocation,
    SetProperties,
    RemoveProperties,
)
_READERS: dict[str, Callable[[JsonObject], ViewUpdate]] = {
    AddViewVersion.action: lambda fields: AddViewVersion(
        view_version_from_json(fields.object("view-version"))
    ),
    SetCurrentViewVersion.action: lambda fields: SetCurrentViewVersion(
        fields.integer("view-version-id")
    ),
}


def view_update_from_json(value: Any) -> ViewUpdate:
    """Return the update of a REST object."""
    fields = JsonObject(value, path="update")
    action = fields.string("action")
    reader = _READERS.get(action)
    if reader is not None:
        return reader(fields)
    update = update_from_json(value)
    if not isinstance(update, _OF_TABLES):
        raise UnsupportedError(f"views have no update {action!r}")
    return update


# -- requirements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AssertViewUUID(CommitRequirement):
    """The view is the one that was read (rule 280)."""

    uuid: str
    type: ClassVar[str] = "assert-view-uuid"


ViewRequirement = AssertViewUUID


def view_requirement_from_json(value: Any) -> ViewRequirement:
    """Return the requirement of a REST object."""
    fields = JsonObject(value, path="requirement")
    kind = fields.string("type")
    if kind != AssertViewUUID.type:
        raise UnsupportedError(f"unknown requirement {kind!r} of a view")
    return AssertViewUUID(fields.string("uuid"))


def check_view_requirements(
    metadata: ViewMetadata, requirements: Iterable[ViewRequirement]
) -> None:
    """Check that every requirement holds."""
    for requirement in requirements:
        if requirement.uuid.lower() != metadata.view_uuid.lower():
            raise CommitFailedError(
                f"requirement failed: expected view uuid {requirement.uuid}, "
                f"found {metadata.view_uuid}"
            )
