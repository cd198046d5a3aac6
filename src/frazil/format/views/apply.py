"""Applying updates to a view's metadata (rules 279-287)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from frazil.errors import UnsupportedVersionError, ValidationError
from frazil.format.changes import (
    LAST_ADDED,
    AddSchema,
    AssignUUID,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
    value_checks,
)
from frazil.format.schema import Schema
from frazil.format.views.json_form import repeated_dialect
from frazil.format.views.properties import DROP_DIALECT_ALLOWED, VERSION_HISTORY
from frazil.format.views.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from frazil.format.views.view_metadata import (
    VIEW_FORMAT_VERSION,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
)

_UNSET = -1


def apply_view_updates(
    metadata: ViewMetadata | None, updates: Iterable[ViewUpdate], *, now_ms: int | None = None
) -> ViewMetadata:
    """Return the metadata after the updates, in their order; the same object where nothing changes.

    A version that says the same as a known one is that one. Versions over
    ``version.history.num-entries`` are forgotten, but those that the updates add and the current
    one.
    `metadata`: the view before; None to build one from updates alone. `now_ms`: when an older
    version becomes current again; the clock where None.
    """
    moment = int(time.time() * 1000) if now_ms is None else now_ms
    state = _ViewState(_empty_metadata() if metadata is None else metadata, moment)
    for update in updates:
        _APPLY[type(update)](state, update)
    return _build_metadata(state, metadata)


def _empty_metadata() -> ViewMetadata:
    return ViewMetadata(
        view_uuid="",
        location="",
        schemas=(),
        current_version_id=_UNSET,
        versions=(),
        version_log=(),
    )


class _ViewState:
    """The metadata while updates are applied to it, and what they did so far.

    Attributes:
        now: the metadata so far.
        now_ms: the time of the change.
        last_schema_id, last_version_id: what "the last added" means.
        added: ids of versions that the updates add.
        became_current: the entry of the log for the version that becomes current.
    """

    def __init__(self, base: ViewMetadata, now_ms: int) -> None:
        self.now = base
        self.now_ms = now_ms
        self.last_schema_id: int | None = None
        self.last_version_id: int | None = None
        self.added: set[int] = set()
        self.became_current: ViewHistoryEntry | None = None

    def change(self, **fields: Any) -> None:
        """Set fields of the metadata."""
        self.now = replace(self.now, **fields)


def _build_metadata(state: _ViewState, base: ViewMetadata | None) -> ViewMetadata:
    if base is None:
        if not state.now.location:
            raise ValidationError("a view cannot be created without a location")
        if state.now.current_version_id == _UNSET:
            raise ValidationError("a view cannot be created without a current version")
        if not state.now.view_uuid:
            state.change(view_uuid=str(uuid.uuid4()))
    if state.became_current is not None:
        state.change(version_log=(*state.now.version_log, state.became_current))
    if state.now == base:
        return base
    if base is not None:
        _refuse_lost_dialects(base, state.now)
    _expire(state)
    return state.now


def _refuse_lost_dialects(base: ViewMetadata, updated: ViewMetadata) -> None:
    if DROP_DIALECT_ALLOWED.of(updated.properties):
        return
    before, after = base.current_version.dialects, updated.current_version.dialects
    if lost := sorted(set(before) - set(after)):
        raise ValidationError(
            f"the view has SQL for {', '.join(lost)}, and its new version has none: give that SQL "
            f"too, or set {DROP_DIALECT_ALLOWED.name} to true"
        )


def _expire(state: _ViewState) -> None:
    """Forget versions over the number to keep, and the log up to the last one forgotten."""
    kept = max(VERSION_HISTORY.of(state.now.properties), len(state.added))
    if len(state.now.versions) <= kept:
        return
    current = state.now.current_version_id
    newest = sorted((each for each in state.now.versions_by_id if each != current), reverse=True)
    ids = {current, *newest[: kept - 1]}
    log: list[ViewHistoryEntry] = []
    for entry in state.now.version_log:
        if entry.version_id in ids:
            log.append(entry)
        else:
            log.clear()
    state.change(
        versions=tuple(each for each in state.now.versions if each.version_id in ids),
        version_log=tuple(log),
    )


def _assign_uuid(state: _ViewState, update: AssignUUID) -> None:
    given = state.now.view_uuid
    value_checks.check_uuid(update.uuid, "the view's uuid")
    if given and given.lower() != update.uuid.lower():
        raise ValidationError(f"the view has the uuid {given}, which cannot become {update.uuid}")
    state.change(view_uuid=given or update.uuid)


def _upgrade(state: _ViewState, update: UpgradeFormatVersion) -> None:
    if update.format_version < VIEW_FORMAT_VERSION:
        raise ValidationError(f"views have no format version {update.format_version}")
    if update.format_version > VIEW_FORMAT_VERSION:
        raise UnsupportedVersionError(
            f"the view's format version cannot be {update.format_version}; supported is version 1"
        )


def _set_location(state: _ViewState, update: SetLocation) -> None:
    if not update.location:
        raise ValidationError("the location of a view cannot be empty")
    state.change(location=update.location)


def _set_properties(state: _ViewState, update: SetProperties) -> None:
    state.change(properties={**state.now.properties, **update.updates})


def _remove_properties(state: _ViewState, update: RemoveProperties) -> None:
    kept = {k: v for k, v in state.now.properties.items() if k not in set(update.removals)}
    state.change(properties=kept)


def _add_schema(state: _ViewState, update: AddSchema) -> None:
    known = state.now.schemas
    held = next((each for each in known if each.is_same_as(update.schema)), None)
    if held is None:
        value_checks.check_schema(update.schema)
        held = update.schema.with_id(_free_id(update.schema.schema_id, state.now.schemas_by_id))
        state.change(schemas=(*known, held))
    state.last_schema_id = held.schema_id


def _add_version(state: _ViewState, update: AddViewVersion) -> None:
    version = _with_schema(state, update.view_version)
    if not version.representations:
        raise ValidationError("a version of a view needs a representation")
    twice = repeated_dialect(version)
    if twice is not None:
        raise ValidationError(f"a version of a view has one SQL of a dialect, not two of {twice}")
    held = next((each for each in state.now.versions if each.is_same_as(version)), None)
    if held is None:
        value_checks.check_int(version.version_id, "the version id")
        value_checks.check_moment(version.timestamp_ms, "the time of the version")
        version_id = _free_id(version.version_id, state.now.versions_by_id)
        held = replace(version, version_id=version_id)
        state.change(versions=(*state.now.versions, held))
        state.added.add(version_id)
    state.last_version_id = held.version_id


def _with_schema(state: _ViewState, version: ViewVersion) -> ViewVersion:
    schema_id: int | None = version.schema_id
    if schema_id == LAST_ADDED:
        schema_id = state.last_schema_id
    if schema_id is None or schema_id not in state.now.schemas_by_id:
        raise ValidationError(
            f"a version of a view names the schema {version.schema_id}, which the view does not "
            f"have: {sorted(state.now.schemas_by_id)}"
        )
    return replace(version, schema_id=schema_id)


def _set_current(state: _ViewState, update: SetCurrentViewVersion) -> None:
    version_id: int | None = update.view_version_id
    if version_id == LAST_ADDED:
        version_id = state.last_version_id
    if version_id is None:
        raise ValidationError("no version of the view was added that could become current")
    version = state.now.version(version_id)
    if state.now.current_version_id == version_id:
        return
    added = version_id in state.added
    moment = version.timestamp_ms if added else state.now_ms
    state.became_current = ViewHistoryEntry(moment, version_id)
    state.change(current_version_id=version_id)


def _free_id(wanted: int, taken: Mapping[int, object]) -> int:
    """The id that was asked for where it is above all, else the next one."""
    return max(wanted, max(taken, default=wanted - 1) + 1)


_APPLY: dict[type[Any], Callable[[_ViewState, Any], None]] = {
    AssignUUID: _assign_uuid,
    UpgradeFormatVersion: _upgrade,
    AddSchema: _add_schema,
    SetLocation: _set_location,
    SetProperties: _set_properties,
    RemoveProperties: _remove_properties,
    AddViewVersion: _add_version,
    SetCurrentViewVersion: _set_current,
}


# -- updates of a new view -------------------------------------------------------------------------


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
