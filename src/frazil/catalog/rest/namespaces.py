"""Namespaces of a REST catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.answers import Refusals
from frazil.catalog.rest.settings import PAGE_SIZE
from frazil.catalog.rest.settling import settle
from frazil.errors import (
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    StorageError,
)

_IN_NAMESPACE = Refusals(missing=NoSuchNamespaceError)


class RestNamespaces:
    """The namespaces of a server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def create(self, levels: Identifier, properties: Mapping[str, str]) -> None:
        """Make a namespace."""
        self._connection.routes.joined_levels(levels)
        request = self._connection.request(
            routes.CREATE_NAMESPACE,
            self._connection.routes.namespaces(),
            f"make the namespace {shown(levels)}",
            body={"namespace": list(levels), "properties": dict(properties)},
            refusals=Refusals(NoSuchNamespaceError, NamespaceAlreadyExistsError),
        )
        wanted = dict(properties).items()

        def took_place() -> bool | None:
            try:
                return True if wanted <= self.properties_of(levels).items() else None
            except NoSuchNamespaceError:
                return None

        settle(self._connection, request, took_place)

    def drop(self, levels: Identifier) -> None:
        """Remove a namespace."""
        request = self._connection.request(
            routes.DROP_NAMESPACE,
            self._connection.routes.namespace(levels),
            f"drop the namespace {shown(levels)}",
            refusals=Refusals(NoSuchNamespaceError, NamespaceNotEmptyError),
        )
        settle(self._connection, request, lambda: None if self.exists(levels) else True)

    def children(self, levels: Identifier) -> list[Identifier]:
        """The namespaces directly below one, or the top ones, sorted."""
        parent = {"parent": self._connection.routes.joined_levels(levels)} if levels else {}
        request = self._connection.request(
            routes.LIST_NAMESPACES,
            self._connection.routes.namespaces(),
            f"list the namespaces of {shown(levels) or 'the catalog'}",
            params=parent,
            refusals=_IN_NAMESPACE,
        )
        depth = len(levels)
        found = (levels_of(each) for each in self.pages(request, "namespaces"))
        return sorted({each[: depth + 1] for each in found if each[:depth] == levels != each})

    def exists(self, levels: Identifier) -> bool:
        """Whether there is such a namespace."""
        return self._connection.is_there(
            self._connection.routes.namespace(levels),
            f"look for the namespace {shown(levels)}",
            head=routes.NAMESPACE_EXISTS,
            refusals=_IN_NAMESPACE,
            missing=(NoSuchNamespaceError,),
        )

    def properties_of(self, levels: Identifier) -> dict[str, str]:
        """The namespace's properties."""
        request = self._connection.request(
            routes.LOAD_NAMESPACE,
            self._connection.routes.namespace(levels),
            f"load the namespace {shown(levels)}",
            refusals=_IN_NAMESPACE,
        )
        found = self._connection.client.read(request).json().get("properties") or {}
        if not isinstance(found, dict):
            raise StorageError(
                f"cannot {request.what}: the server answered with malformed properties"
            )
        return {str(key): str(value) for key, value in found.items()}

    def update(
        self, levels: Identifier, updates: Mapping[str, str], removals: Sequence[str]
    ) -> None:
        """Set and remove properties."""
        request = self._connection.request(
            routes.UPDATE_NAMESPACE,
            self._connection.routes.namespace(levels, "properties"),
            f"change the properties of the namespace {shown(levels)}",
            body={"removals": sorted(set(removals)), "updates": dict(updates)},
            refusals=_IN_NAMESPACE,
        )

        def took_place() -> bool | None:
            found = self.properties_of(levels)
            is_done = updates.items() <= found.items() and not set(removals) & set(found)
            return True if is_done else None

        settle(self._connection, request, took_place)

    def identifiers(self, request: RestRequest) -> list[Identifier]:
        """The names of tables or views that a server lists, sorted."""
        found: set[Identifier] = set()
        for each in self.pages(request, "identifiers"):
            if not isinstance(each, dict) or not isinstance(each.get("name"), str):
                raise StorageError(f"cannot {request.what}: the server answered a malformed name")
            found.add((*levels_of(each.get("namespace")), each["name"]))
        return sorted(found)

    def pages(self, request: RestRequest, name: str) -> Iterator[Any]:
        """The items of a list, page by page."""
        size = PAGE_SIZE.of(self._connection.properties)
        sized = {} if size is None else {"pageSize": str(size)}
        token, seen = "", set[str]()
        while True:
            params = {**request.params, "pageToken": token, **sized}
            page = RestRequest(
                request.method, request.path, request.what, params, refusals=request.refusals
            )
            answer = self._connection.client.read(page)
            yield from answer.objects(name)
            following = answer.json().get("next-page-token")
            if not following:
                return
            token = str(following)
            if token in seen:
                raise StorageError(f"cannot {request.what}: the server repeats its pages")
            seen.add(token)


def levels_of(value: object) -> Identifier:
    """Return the levels of a namespace that a server answered with.

    Raises StorageError: it is malformed.
    """
    if not isinstance(value, list) or not all(isinstance(level, str) for level in value):
        raise StorageError("the REST catalog's server answered with a malformed namespace")
    return tuple(value)
