"""Kinds of catalogs by name: Frazil's own, installed ones, and any class by its path."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError, UnsupportedError
from frazil.later import later

if TYPE_CHECKING:
    from importlib.metadata import entry_points
else:
    entry_points = later("importlib.metadata", "entry_points")


ENTRY_POINTS: Final = "frazil.catalogs"
IMPLEMENTATION: Final = "py-catalog-impl"
"""PyIceberg's property for a class by its path, ``package.module.Class``."""

_ELSEWHERE: Final = ("nessie", "dynamodb", "bigquery", "in-memory")
_SQL: Final = "frazil.catalog.pointer.sql.SqlCatalog"
_FILESYSTEM: Final = "frazil.catalog.pointer.filesystem.FilesystemCatalog"
_OWN: Final[Mapping[str, str]] = {
    "sql": _SQL,
    "jdbc": _SQL,
    "filesystem": _FILESYSTEM,
    "hadoop": _FILESYSTEM,
    "glue": "frazil.catalog.pointer.glue.GlueCatalog",
    "rest": "frazil.catalog.rest.catalog.RestCatalog",
    "hive": "frazil.catalog.pointer.hive.HiveCatalog",
}
"""Frazil's own, by the paths of their classes: each has libraries that take time to load."""
_REGISTERED: Final[dict[str, type[Catalog]]] = {}


def register_catalog(kind: str, implementation: type[Catalog]) -> None:
    """Make a class the catalog of a ``type``; an installed package can name it as an entry point.

    The group of entry points is ``frazil.catalogs``, the name of each is the ``type``.

    Raises:
        ConfigurationError: another class has the name.
    """
    name = kind.lower()
    known = _own_class(name) or _REGISTERED.setdefault(name, implementation)
    if known is not implementation:
        raise ConfigurationError(
            f"the catalog type {name!r} is {known.__qualname__} already: choose another name"
        )


def catalog_class(name: str, kind: str) -> type[Catalog]:
    """Return the class of a ``type``."""
    found = _known_class(kind) or _installed_class(kind)
    if found is not None:
        return found
    if kind in _ELSEWHERE:
        own = {path: own_kind for own_kind, path in reversed(list(_OWN.items()))}
        raise UnsupportedError(
            f"the catalog {name} is of the type {kind}, which this release does not have; "
            f"it has {', '.join(sorted(own.values()))}"
        )
    known = ", ".join(sorted({each.kind for each in _all_known()}))
    raise ConfigurationError(
        f"the catalog {name} is of the unknown type {kind!r}: use one of {known}"
    )


def class_by_path(name: str, path: str) -> type[Catalog]:
    """Return the class that ``py-catalog-impl`` names; its module is imported."""
    module, dot, attribute = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if dot else None
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"{IMPLEMENTATION} of the catalog {name} is {path!r}, which cannot be imported: {error}"
        ) from None
    if found is None:
        raise ConfigurationError(
            f"{IMPLEMENTATION} of the catalog {name} is {path!r}: write package.module.Class"
        )
    return _require_catalog_class(found, f"{IMPLEMENTATION} of the catalog {name}")


def property_names(properties: Mapping[str, object]) -> frozenset[str] | None:
    """Return the names of properties that the catalog of these properties has of its own.

    Without a type that is here they are those of all kinds; None where any name may be one.
    """
    names = [each.property_names for each in _classes_of(properties)]
    if None in names:
        return None
    return frozenset().union(*(each for each in names if each is not None))


def property_prefixes(properties: Mapping[str, object]) -> tuple[str, ...]:
    """Return with what further such names begin."""
    return tuple(prefix for each in _classes_of(properties) for prefix in each.property_prefixes)


def _classes_of(properties: Mapping[str, object]) -> list[type[Catalog]]:
    path, kind = properties.get(IMPLEMENTATION), str(properties.get("type") or "").lower()
    if path is not None:
        return [class_by_path("", str(path))]
    named = _known_class(kind) or (_installed_class(kind) if kind else None)
    return [named] if named is not None else _all_known()


def _own_class(kind: str) -> type[Catalog] | None:
    return class_by_path(kind, _OWN[kind]) if kind in _OWN else None


def _known_class(kind: str) -> type[Catalog] | None:
    return _own_class(kind) or _REGISTERED.get(kind)


def _all_known() -> list[type[Catalog]]:
    own = (class_by_path(kind, path) for kind, path in _OWN.items())
    return list(dict.fromkeys((*own, *_REGISTERED.values())))


def _installed_class(kind: str) -> type[Catalog] | None:
    for point in entry_points(group=ENTRY_POINTS, name=kind):
        try:
            found = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"the catalog type {kind!r} of {point.value} cannot be loaded: {error}"
            ) from error
        return _require_catalog_class(found, f"the catalog type {kind!r}")
    return None


def _require_catalog_class(found: object, what: str) -> type[Catalog]:
    if not isinstance(found, type) or not issubclass(found, Catalog):
        raise UnsupportedError(
            f"{what} is {found!r}, which is no catalog of Frazil: a class of "
            f"{Catalog.__module__}.{Catalog.__qualname__} is needed"
        )
    return found
