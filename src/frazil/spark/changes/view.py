"""The options of a changelog as a temporary view: those of Java's ``create_changelog_view``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from frazil.errors import ConfigurationError, ValidationError
from frazil.format.arguments import one_or_several
from frazil.format.schema import Schema

_SNAPSHOTS: Final = {
    "start-snapshot-id": "from_snapshot_id",
    "end-snapshot-id": "to_snapshot_id",
}
_TIMES: Final = {"start-timestamp": "from_timestamp", "end-timestamp": "to_timestamp"}


def changelog_arguments(
    schema: Schema,
    options: Mapping[str, str] | None,
    *,
    compute_updates: bool | None,
    identifier_columns: str | Sequence[str] | None,
    net_changes: bool,
) -> dict[str, Any]:
    """Return what `TableChanges.changes` or `net_changes` is to be called with for a view.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        ValidationError: the arguments contradict each other, or nothing tells rows apart.
    """
    found = _range(options or {})
    updates = identifier_columns is not None if compute_updates is None else compute_updates
    if net_changes and updates:
        raise ValidationError(
            "net_changes leaves no updates, and compute_updates asks for them (it is on where "
            "identifier_columns are given): choose one"
        )
    if not updates:
        return found
    columns = (
        schema.identifier_field_names()
        if identifier_columns is None
        else one_or_several(identifier_columns, argument="identifier_columns")
    )
    if not columns:
        raise ValidationError(
            "compute_updates needs identifier_columns: the table has no identifier fields"
        )
    return {**found, "identifier_columns": columns}


def _range(options: Mapping[str, str]) -> dict[str, Any]:
    known = {**_SNAPSHOTS, **_TIMES}
    found: dict[str, Any] = {}
    for option, text in options.items():
        if option not in known:
            near = get_close_matches(option, known, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ConfigurationError(
                f"there is no option {option!r} of changelogs{hint}; there are {', '.join(known)}"
            )
        digits = str(text).strip()
        if not (digits.isascii() and digits.isdigit()):
            what = "a snapshot's id" if option in _SNAPSHOTS else "milliseconds since the epoch"
            raise ConfigurationError(f"{option} is {text!r}; give {what}")
        found[known[option]] = int(digits)
    for start, moment in zip(_SNAPSHOTS, _TIMES, strict=True):
        if start in options and moment in options:
            raise ConfigurationError(f"give {start} or {moment}, not both")
    return found
