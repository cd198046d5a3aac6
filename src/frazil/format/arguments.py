"""Arguments as users write them: one name or several, numbers as text, names that are not there."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeAlias, TypeVar

from frazil.errors import ValidationError

Item = TypeVar("Item")

SnapshotId: TypeAlias = int | str
"""The id of a snapshot, as a number or as its digits."""

_MOST_LISTED = 50


def one_or_several(
    given: str | Iterable[Item], *kinds: type[Any], argument: str
) -> tuple[str | Item, ...]:
    """Return what an argument holds, which may be one thing or an iterable of them.

    A text is one name, never a sequence of letters.
    """
    if isinstance(given, str):
        return (given,)
    parts: tuple[Any, ...] = tuple(given) if isinstance(given, Iterable) else (given,)
    for part in parts:
        if not isinstance(part, (str, *kinds)):
            raise ValidationError(
                f"{argument} holds {part!r}: give a name as text, or a list of names"
            )
    return parts


def snapshot_id_of(given: SnapshotId, argument: str = "snapshot_id") -> int:
    """Return a snapshot's id, given as a number or as its digits."""
    return _whole_number(given, argument, "a snapshot id is a whole number")


def optional_snapshot_id_of(given: SnapshotId | None, argument: str = "snapshot_id") -> int | None:
    """Return a snapshot's id where one is given; errors as of `snapshot_id_of`."""
    return None if given is None else snapshot_id_of(given, argument)


def snapshot_ids_of(given: SnapshotId | Iterable[SnapshotId], argument: str) -> tuple[int, ...]:
    """Return the ids of one snapshot or several; errors as of `snapshot_id_of`."""
    several = [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
    return tuple(snapshot_id_of(each, argument) for each in several)


def format_version_of(given: int | str) -> int:
    """Return a format version, given as a number or as its digits."""
    return _whole_number(given, "format_version", "a format version is 1, 2 or 3")


def what_there_is(
    name: str, listed: Iterable[str], *, names: Iterable[str] = (), holder: str = "the table"
) -> str:
    """Return how a message about a missing column ends: the nearest name, and all there are."""
    known = list(listed)
    by_key = {each.lower(): each for each in (*names, *known)}
    near = get_close_matches(name.lower(), by_key, n=1)
    hint = f" (did you mean {by_key[near[0]]!r}?)" if near else ""
    shown = ", ".join(known[:_MOST_LISTED]) or "no columns"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    return f"{hint}; {holder} has {shown}{more}"


def _whole_number(given: int | str, argument: str, expected: str) -> int:
    if isinstance(given, str):
        digits = given.strip()
        if digits.isascii() and digits.isdigit():
            return int(digits)
    elif not isinstance(given, bool):
        try:
            return operator.index(given)
        except TypeError:
            pass
    raise ValidationError(f"{argument} is {given!r}: {expected}, or its digits as text")
