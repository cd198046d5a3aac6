"""Table properties, location and format version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.errors import UnsupportedVersionError, ValidationError
from frazil.format.arguments import format_version_of
from frazil.format.changes import (
    RemoveProperties,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)
from frazil.format.metadata import SUPPORTED_FORMAT_VERSIONS, TableMetadata
from frazil.format.properties.table import FORMAT_VERSION, RESERVED, check_properties
from frazil.storage.files import normalize_location
from frazil.table.commit.operation import MetadataOperation

_RESERVED = RESERVED | {FORMAT_VERSION}


def set_properties(properties: Mapping[str, str]) -> MetadataOperation:
    """Set properties; others stay.

    Each malformed value of a known property is listed in the error.
    """
    _check_keys(properties)
    check_properties(properties)

    def updates(base: TableMetadata) -> list[Update]:
        check_properties(properties, current=base.properties)
        changed = {
            name: value for name, value in properties.items() if base.properties.get(name) != value
        }
        return [SetProperties(changed)] if changed else []

    return MetadataOperation(updates)


def remove_properties(names: Iterable[str]) -> MetadataOperation:
    """Remove properties; those that are not set are passed over."""
    wanted = tuple(dict.fromkeys(names))
    _check_keys(wanted)

    def updates(base: TableMetadata) -> list[Update]:
        held = tuple(name for name in wanted if name in base.properties)
        return [RemoveProperties(held)] if held else []

    return MetadataOperation(updates)


def set_location(location: str) -> MetadataOperation:
    """Where new files go from now on; existing files stay where they are."""
    normalized = normalize_location(location)

    def updates(base: TableMetadata) -> list[Update]:
        return [SetLocation(normalized)] if base.location != normalized else []

    return MetadataOperation(updates)


def upgrade(format_version: int | str) -> MetadataOperation:
    """Raise the format version; data files are not rewritten, and there is no way back."""
    version = format_version_of(format_version)
    if version not in SUPPORTED_FORMAT_VERSIONS:
        raise UnsupportedVersionError(
            f"format version {version} is not supported; "
            f"choose one of {list(SUPPORTED_FORMAT_VERSIONS)}"
        )

    def updates(base: TableMetadata) -> list[Update]:
        if version < base.format_version:
            raise ValidationError(
                f"the table is of format version {base.format_version} and cannot go back to "
                f"{version}"
            )
        if version == base.format_version:
            return []
        return [UpgradeFormatVersion(version)]

    return MetadataOperation(updates)


def _check_keys(names: Iterable[str]) -> None:
    for name in names:
        if not isinstance(name, str) or not name:
            raise ValidationError(f"{name!r} is no property name")
        if name in _RESERVED:
            raise ValidationError(
                f"property {name!r} is reserved: it is part of the table's metadata"
                + ("; use upgrade()" if name == FORMAT_VERSION else "")
            )
