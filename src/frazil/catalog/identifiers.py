"""Names of tables and namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.errors import ValidationError

Identifier = tuple[str, ...]


def parse_identifier(identifier: str | Sequence[str]) -> Identifier:
    """The parts of a dotted name; a part in backticks may hold dots.

    >>> parse_identifier("a.b.t")
    ('a', 'b', 't')
    >>> parse_identifier("a.`t.1`")
    ('a', 't.1')
    """
    parts = _split(identifier) if isinstance(identifier, str) else tuple(identifier)
    for part in parts:
        if not isinstance(part, str) or not part.strip():
            raise ValidationError(f"the name {identifier!r} has an empty part")
        if any(ord(character) < 32 for character in part):
            raise ValidationError(f"the name {identifier!r} holds a control character")
        if any("\ud800" <= character <= "\udfff" for character in part):
            raise ValidationError(f"the name {identifier!r} is not text that UTF-8 can hold")
    return parts


def parse_table_identifier(identifier: str | Sequence[str]) -> Identifier:
    """A table's identifier: at least one namespace level and the table's name."""
    parts = parse_identifier(identifier)
    if len(parts) < 2:
        raise ValidationError(
            f"the table name {identifier!r} has no namespace: write namespace.table"
        )
    return parts


def parse_namespace(namespace: str | Sequence[str]) -> Identifier:
    """A namespace's levels; ``()`` and ``""`` are the root."""
    return parse_identifier(namespace) if namespace else ()


def parse_named_namespace(namespace: str | Sequence[str]) -> Identifier:
    """A namespace's levels, at least one."""
    levels = parse_namespace(namespace)
    if not levels:
        raise ValidationError("a namespace needs a name")
    return levels


def require_folder_names(parts: Identifier) -> None:
    """Check that each part can be a folder's name, so that no two tables share a place."""
    for part in parts:
        if part in (".", "..") or "/" in part or "\\" in part:
            raise ValidationError(
                f"{part!r} of the name {shown(parts)} cannot be a folder's name, which the place "
                f"of the table is made of: choose another name, or give the table a location"
            )


def shown(parts: Identifier) -> str:
    """A name as messages show it."""
    return ".".join(f"`{part}`" if "." in part else part for part in parts)


def _split(text: str) -> Identifier:
    if "`" not in text:
        return tuple(text.split("."))
    parts: list[str] = []
    rest = text
    while True:
        if rest.startswith("`"):
            part, quote, rest = rest[1:].partition("`")
            if not quote or (rest and not rest.startswith(".")):
                raise ValidationError(f"the name {text!r} has an unmatched backtick")
            dot, rest = rest[:1], rest[1:]
        else:
            part, dot, rest = rest.partition(".")
        parts.append(part)
        if not dot:
            return tuple(parts)
