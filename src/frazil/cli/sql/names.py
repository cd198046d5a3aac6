"""What a catalog has, for those who type; looked up without Spark, and kept for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from frazil.cli.sql.engine import Engine
from frazil.errors import FrazilError
from frazil.later import later

if TYPE_CHECKING:
    from frazil.catalog.protocol import Capability, Catalog
else:
    Capability = later("frazil.catalog.protocol", "Capability")

T = TypeVar("T")

Name = tuple[str, ...]

_KEPT_SECONDS: Final = 30.0
_MOST_NAMESPACES: Final = 50
_SLOWEST_START: Final = 10.0


class Names:
    """Namespaces, tables, columns and procedures by their names.

    Attributes:
        current: the namespace that USE has set; empty where none is.
    """

    def __init__(self, engine: Engine) -> None:
        self.current: Name = ()
        self._engine = engine
        self._kept: dict[tuple[Any, ...], tuple[float, Any]] = {}
        self._lock = Lock()

    def forget(self) -> None:
        """Look everything up again: a statement may have changed it."""
        with self._lock:
            self._kept.clear()

    def catalog_name(self) -> str:
        """Return what can stand before names; nothing where there is no catalog."""
        return self._look_once(("catalog",), lambda catalog: catalog.name) or ""

    def namespaces(self) -> list[Name]:
        """Return the namespaces, also those in namespaces."""
        return self._look_once(("namespaces",), _namespaces) or []

    def tables(self, namespace: Name) -> list[Name]:
        """Return the tables and views of a namespace by their whole names; none if it has none."""
        return (
            self._look_once(("tables", namespace), lambda catalog: _relations(catalog, namespace))
            or []
        )

    def columns(self, table: Name) -> list[str]:
        """Return the names of a table's columns; none where there is no such table."""
        own = table[1:] if len(table) > 2 and table[0] == self.catalog_name() else table
        whole = own if len(own) > 1 else (*self.current, *own)
        if len(whole) < 2:
            return []
        return self._look_once(("columns", whole), lambda catalog: _columns(catalog, whole)) or []

    def _look_once(self, key: tuple[Any, ...], look: Callable[[Catalog], T]) -> T | None:
        """What a look finds, kept for some time; None where it fails."""
        with self._lock:
            until, kept = self._kept.get(key, (0.0, None))
        if monotonic() < until:
            return cast("T | None", kept)
        found: T | None
        try:
            found = look(self._engine.catalog.result(_SLOWEST_START))
        except (FrazilError, TimeoutError):
            found = None
        with self._lock:
            self._kept[key] = (monotonic() + _KEPT_SECONDS, found)
        return found


def _namespaces(catalog: Catalog) -> list[Name]:
    found: list[Name] = []
    left: list[Name] = list(catalog.list_namespaces())
    while left and len(found) < _MOST_NAMESPACES:
        found.append(left.pop(0))
        left += catalog.list_namespaces(found[-1])
    return found


def _relations(catalog: Catalog, namespace: Name) -> list[Name]:
    names: Iterable[Name] = catalog.list_tables(namespace)
    views = catalog.list_views(namespace) if catalog.can(Capability.VIEWS) else []
    return [*names, *views]


def _columns(catalog: Catalog, table: Name) -> list[str]:
    return [field.name for field in catalog.load_table(table).metadata.schema.fields]
