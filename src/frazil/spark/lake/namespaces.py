"""NamespaceCommands: namespaces of a lake, as methods of the lake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from frazil.catalog.identifiers import Identifier
from frazil.catalog.protocol import Catalog
from frazil.errors import NamespaceAlreadyExistsError


class NamespaceCommands:
    """Namespaces of a catalog.

    Attributes:
        catalog: has them.
    """

    catalog: Catalog

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace; NamespaceAlreadyExistsError if it is there."""
        self.catalog.create_namespace(namespace, properties)

    def create_namespace_if_not_exists(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        """Make a namespace unless it is there."""
        try:
            self.catalog.create_namespace(namespace, properties)
        except NamespaceAlreadyExistsError:
            return

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        """Remove an empty namespace; NamespaceNotEmptyError if it holds anything."""
        self.catalog.drop_namespace(namespace)

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        """Return the namespaces directly below a namespace, or the top ones."""
        return self.catalog.list_namespaces(parent)

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        """Return whether there is a namespace of that name."""
        return self.catalog.namespace_exists(namespace)

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        """Return a namespace's properties; NoSuchNamespaceError if it is not there."""
        return self.catalog.load_namespace_properties(namespace)

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        """Set and remove properties of a namespace in one step."""
        self.catalog.update_namespace_properties(namespace, updates=updates, removals=removals)
