"""Errors of statements as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from time import monotonic
from typing import TYPE_CHECKING, Final

from frazil.cli.layout import one_line
from frazil.cli.sql.names import Name, Names
from frazil.errors import FrazilError, NoSuchTableError
from frazil.later import later
from frazil.storage.paths import redact

if TYPE_CHECKING:
    from frazil.spark.session.messages import lines_for_people
    from frazil.spark.words import WordReader
else:
    lines_for_people = later("frazil.spark.session.messages", "lines_for_people")
    WordReader = later("frazil.spark.words", "WordReader")


_MOST_LINES: Final = 12
_LOOKS_SECONDS: Final = 2.0
_NEAR_ELSEWHERE: Final = 0.8
_NO_TABLE: Final = re.compile(r"there is no table (.+?)(?: in .*)?")
_UNKNOWN: Final = {
    "TABLE_OR_VIEW_NOT_FOUND": "relationName",
    "REQUIRES_SINGLE_PART_NAMESPACE": "identifier",
}
"""Conditions of Spark's errors for names that nobody knows, and the value that has the name."""


def said_of(error: BaseException, secrets: Mapping[str, str], names: Names) -> str:
    """Return what an error says: its own lines, without traces and secrets.

    Args:
        secrets: settings whose values must not be shown.
        names: of the catalog, one of which may have been meant.
    """
    unknown = _unknown_to_spark(error)
    if unknown is not None:
        return f"there is no table or view {one_line('.'.join(unknown))}{_hint(unknown, names)}"
    text = redact(str(error), dict(secrets))
    if isinstance(error, FrazilError):
        said = " ".join(text.split())
        lacking = _NO_TABLE.fullmatch(said) if isinstance(error, NoSuchTableError) else None
        return said if lacking is None else said + _hint(tuple(lacking[1].split(".")), names)
    lines = [one_line(line) for line in lines_for_people(text)]
    return "\n".join(lines[:_MOST_LINES]) or type(error).__name__


def _unknown_to_spark(error: BaseException) -> Name | None:
    """The name of a table that Spark has not found; None where an error is about something else."""
    condition = getattr(error, "getCondition", None)
    key = None if condition is None else _UNKNOWN.get(condition() or "")
    if key is None:
        return None
    text = (error.getMessageParameters() or {}).get(key)  # type: ignore[attr-defined]
    return tuple(WordReader(text).names("a table")) if text else None


def _hint(unknown: Name, names: Names) -> str:
    near = _nearest_table(unknown, names)
    return "" if near is None else f" (did you mean {one_line('.'.join(near))}?)"


def _nearest_table(unknown: Name, names: Names) -> Name | None:
    """The table that was meant: in the same namespace, or of about the same name elsewhere."""
    if len(unknown) > 1 and unknown[0] == names.catalog_name():
        unknown = unknown[1:]
    *namespace, last = unknown
    own = {each[-1].lower(): each for each in names.tables(tuple(namespace) or names.current)}
    near = get_close_matches(last.lower(), own, n=1)
    if near:
        return own[near[0]]
    others = {".".join(each).lower(): each for each in _all_tables(names)}
    same = [each for each in others.values() if each[-1].lower() == last.lower()]
    far = get_close_matches(".".join(unknown).lower(), others, n=1, cutoff=_NEAR_ELSEWHERE)
    return same[0] if same else others[far[0]] if far else None


def _all_tables(names: Names) -> Iterator[Name]:
    """The tables of all namespaces, as far as they are found while somebody waits."""
    until = monotonic() + _LOOKS_SECONDS
    for namespace in names.namespaces():
        if monotonic() > until:
            return
        yield from names.tables(namespace)
