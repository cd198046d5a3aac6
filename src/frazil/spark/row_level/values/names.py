"""Names of columns as users write them in assignments: ``target.s.`a.b` ``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from frazil.errors import ValidationError
from frazil.format import types as I
from frazil.format.schema import Schema
from frazil.later import later

if TYPE_CHECKING:
    from frazil.format.predicates.columns import split_name
else:
    split_name = later("frazil.format.predicates.columns", "split_name")


TARGET: Final = "target"
SOURCE: Final = "source"
"""What the table and the rows that are merged into it are called in conditions and values."""


def find_path(
    name: str, schema: Schema, *, alias: str, case_sensitive: bool
) -> tuple[I.NestedField, ...]:
    """Return the column that a name means, and the fields below it down to the one named.

    Args:
        name: maybe with the table's alias before it; a part in backquotes may hold dots.
        alias: what the table is called in the command; where a column is called the same, the name
            is read with the alias first.

    Raises:
        ValidationError: there is no such column or field.
    """
    parts = split_name(name)
    form = str if case_sensitive else str.lower
    readings = [parts]
    if len(parts) > 1 and form(parts[0]) == form(alias):
        readings.insert(0, parts[1:])
    for reading in readings:
        found = _path(reading, schema.fields, form)
        if found is not None:
            return found
    name = ".".join(readings[0])
    if schema.field_or_none(name, case_sensitive=case_sensitive) is not None:
        raise ValidationError(
            f"{name!r} lies within a list or a map, of which no part is assigned alone: give the "
            "whole list or map a value"
        )
    raise ValidationError(schema.missing(name))


def key_path(name: str, schema: Schema, *, case_sensitive: bool) -> tuple[str, ...]:
    """Return the parts of the name of a column or field that rows are matched by.

    Args:
        name: a column's whole name, dots included, or a path to a field.

    Raises:
        ValidationError: there is no such column or field.
    """
    form = str if case_sensitive else str.lower
    if form(name) in (form(field.name) for field in schema.fields):
        return (name,)
    path = find_path(name, schema, alias="", case_sensitive=case_sensitive)
    return tuple(field.name for field in path)


def field_at(path: tuple[str, ...], schema: Schema, *, case_sensitive: bool) -> I.NestedField:
    """Return the column or field at a path of `key_path`.

    Raises:
        ValidationError: there is none, or more than one.
    """
    found = _path(path, schema.fields, str if case_sensitive else str.lower)
    if found is None:
        raise ValidationError(schema.missing(".".join(path)))
    return found[-1]


def check_aliases(target: str, source: str, *, case_sensitive: bool) -> None:
    """Check that the two sides of a merge are called differently.

    Raises:
        ValidationError: they are not, or one is no name.
    """
    for alias in (target, source):
        if not isinstance(alias, str) or not alias:
            raise ValidationError(f"an alias is a name, not {alias!r}")
    form = str if case_sensitive else str.lower
    if form(target) == form(source):
        raise ValidationError(
            f"the table and the source are called {target!r} and {source!r}: give them two names, "
            "as target_alias='t', source_alias='s'"
        )


def check_has_keys(
    names: Sequence[str], keys: Iterable[tuple[str, ...]], *, case_sensitive: bool
) -> None:
    """Check that a source has the columns that rows are matched by.

    Args:
        names: of the source's columns.
        keys: the parts of each key's name.

    Raises:
        ValidationError: it lacks one.
    """
    form = str if case_sensitive else str.lower
    for key in keys:
        if not any(form(key[0]) == form(name) for name in names):
            raise ValidationError(
                f"the source has no column {key[0]!r}, by which its rows are matched; it has "
                f"{', '.join(map(repr, names))}"
            )


def _path(
    parts: tuple[str, ...],
    fields: tuple[I.NestedField, ...],
    form: Callable[[str], str],
) -> tuple[I.NestedField, ...] | None:
    found = [field for field in fields if form(field.name) == form(parts[0])]
    if len(found) != 1:
        return None
    if len(parts) == 1:
        return (found[0],)
    kind = found[0].field_type
    if not isinstance(kind, I.StructType):
        return None
    below = _path(parts[1:], kind.fields, form)
    return None if below is None else (found[0], *below)
