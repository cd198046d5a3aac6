"""Names for columns that Frazil adds to rows, which no column of a user has."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Final

RESERVED_PREFIX: Final = "_frazil"
"""What the names of columns begin with that scans add; a user's column of such a name is scanned
under another one."""


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """Return the name, or the name and a number, so that Spark takes it for none of those taken.

    Args:
        wanted: the name.
        taken: the names of the columns that it will stand beside.
    """
    keys = {_key(name) for name in taken}
    numbered = (f"{wanted}_{number}" for number in count(1))
    return wanted if _key(wanted) not in keys else next(n for n in numbered if _key(n) not in keys)


def free_names(wanted: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Return a free name for each one wanted, different from one another."""
    known = list(taken)
    found: list[str] = []
    for name in wanted:
        found.append(free_name(name, [*known, *found]))
    return found


def is_reserved(name: str) -> bool:
    """Return whether Spark may take a name for one that a scan adds."""
    return _key(name[: len(RESERVED_PREFIX)]) == RESERVED_PREFIX


def _key(name: str) -> str:
    # As Java compares text whatever its case: letter by letter, so that the Turkish dotless i is i.
    return "".join(letter.upper()[:1].lower()[:1] for letter in name)
