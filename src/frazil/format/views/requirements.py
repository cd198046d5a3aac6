"""What must still hold of a view for a commit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from frazil.errors import CommitFailedError, UnsupportedError
from frazil.format.json_fields import JsonObject
from frazil.format.views.view_metadata import ViewMetadata


@dataclass(frozen=True, slots=True)
class AssertViewUUID:
    """The view is the one that was read (rule 280)."""

    uuid: str
    type: ClassVar[str] = "assert-view-uuid"

    def to_json(self) -> dict[str, Any]:
        """The REST object."""
        return {"type": self.type, "uuid": self.uuid}


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
