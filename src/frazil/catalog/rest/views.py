"""Views of a REST catalog: requests, answers, and what became of changes without an answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.answers import Answer, Refusals
from frazil.catalog.rest.namespaces import RestNamespaces
from frazil.catalog.rest.outcome import is_in_view, is_the_view
from frazil.catalog.rest.settings import TOKEN
from frazil.catalog.rest.settling import settle
from frazil.catalog.rest.tables import (
    check_token,
    identifier_json,
    is_chosen,
    metadata_location_in,
)
from frazil.catalog.views import LoadedView, ViewMethods
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    NoSuchNamespaceError,
    NoSuchViewError,
    StorageError,
    ViewAlreadyExistsError,
)
from frazil.format.schema import Schema
from frazil.format.views import (
    ViewMetadata,
    ViewRequirement,
    ViewUpdate,
    ViewVersion,
    view_metadata_from_json,
    view_version_to_json,
)
from frazil.storage.caches import BoundedCache
from frazil.storage.paths import normalize_location

_LOG = logging.getLogger(__name__)
_NO_VIEW: Final = Refusals(missing=NoSuchViewError)
_BYTES_OF_TOKENS: Final = 1 << 20


class ViewAnswers:
    """Makes views of a server's answers, and keeps the tokens that come with some of them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._tokens: BoundedCache[str] = BoundedCache(_BYTES_OF_TOKENS)

    def load(self, name: Identifier) -> LoadedView:
        """Return a view as it is now."""
        request = self._connection.request(
            routes.LOAD_VIEW,
            self._connection.routes.view(name),
            f"load the view {shown(name)}",
            refusals=_NO_VIEW,
        )
        return self.read(name, self._connection.client.read(request))

    def read(self, name: Identifier, answer: Answer) -> LoadedView:
        """Return the view of an answer.

        Raises StorageError: the answer is malformed.
        """
        body = answer.json()
        config = body.get("config") or {}
        location = metadata_location_in(body, f"the view {shown(name)}")
        if not isinstance(config, dict):
            raise StorageError(
                f"the REST catalog's server answered with a malformed config of the view "
                f"{shown(name)}"
            )
        metadata = view_metadata_from_json(body.get("metadata"), file=location)
        texts = {str(key): str(value) for key, value in config.items() if value is not None}
        check_token(texts.get(TOKEN), name)
        if TOKEN in texts:
            self._tokens.put(name, texts[TOKEN], len(texts[TOKEN]))
        return LoadedView(name, metadata, location, texts)

    def view_after_change(self, name: Identifier, answer: Answer | None) -> LoadedView:
        """Return the view after a change that took place, loaded where the answer has it not."""
        try:
            if answer is not None:
                return self.read(name, answer)
        except FrazilError as error:
            _LOG.warning("the answer to a change of %s cannot be read: %s", shown(name), error)
        try:
            return self.load(name)
        except FrazilError as error:
            raise CommitStateUnknownError(
                f"the change of {shown(name)} took place, and the view cannot be loaded: {error}"
            ) from error

    def load_or_none(self, name: Identifier) -> LoadedView | None:
        """Return a view as it is now; None where there is none of the name."""
        try:
            return self.load(name)
        except (NoSuchViewError, NoSuchNamespaceError):
            return None

    def token(self, name: Identifier) -> str | None:
        """Return the token for requests about a view, if its last answer had one."""
        return self._tokens.get(name)

    def new_token(self, name: Identifier) -> str | None:
        """Return the token that the server now gives for requests about a view."""
        self.forget(name)
        self.load(name)
        return self.token(name)

    def forget(self, name: Identifier) -> None:
        """Forget a view that is gone, or has another name."""
        self._tokens.remove(name)


class RestViewMethods(ViewMethods):
    """The views of a catalog behind a server, as far as the server has endpoints for them."""

    _connection: Connection
    _namespaces: RestNamespaces
    _views: ViewAnswers

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        return self._namespaces.identifiers(
            self._connection.request(
                routes.LIST_VIEWS,
                self._connection.routes.views(levels),
                f"list the views of {shown(levels)}",
                refusals=Refusals(missing=NoSuchNamespaceError),
            )
        )

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        name = parse_table_identifier(identifier)
        if not any(map(self._connection.has_endpoint, (routes.VIEW_EXISTS, routes.LOAD_VIEW))):
            return False
        return self._connection.is_there(
            self._connection.routes.view(name),
            f"look for the view {shown(name)}",
            head=routes.VIEW_EXISTS,
            refusals=_NO_VIEW,
            missing=(NoSuchViewError, NoSuchNamespaceError),
        )

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        return self._views.load(parse_table_identifier(identifier))

    def create_view(
        self,
        identifier: str | Sequence[str],
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        name = parse_table_identifier(identifier)
        given = dict(properties or {})
        body = {
            "name": name[-1],
            "schema": schema.to_json(),
            "view-version": view_version_to_json(replace(version, schema_id=schema.schema_id)),
            "properties": given,
        }
        if location is not None and not is_chosen(location):
            body["location"] = normalize_location(location)
        request = self._connection.request(
            routes.CREATE_VIEW,
            self._connection.routes.views(name[:-1]),
            f"make the view {shown(name)}",
            body=body,
            refusals=Refusals(NoSuchNamespaceError, ViewAlreadyExistsError),
        )

        def took_place() -> bool | None:
            made = self._views.load_or_none(name)
            return None if made is None else is_the_view(made.metadata, version, given)

        return self._views.view_after_change(name, self._settle_change(request, took_place, given))

    def commit_view(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[ViewRequirement],
        updates: Sequence[ViewUpdate],
        *,
        base: LoadedView | None = None,
    ) -> LoadedView:
        name = parse_table_identifier(identifier)
        if not updates and not requirements:
            return self.load_view(name)
        request = self._connection.request(
            routes.UPDATE_VIEW,
            self._connection.routes.view(name),
            f"commit to the view {shown(name)}",
            body={
                "identifier": identifier_json(name),
                "requirements": [each.to_json() for each in requirements],
                "updates": [each.to_json() for each in updates],
            },
            token=self._views.token(name),
            refusals=Refusals(NoSuchViewError, CommitFailedError),
        )

        def took_place() -> bool | None:
            now = self._views.load_or_none(name)
            return None if now is None else is_in_view(now.metadata, updates)

        known = None if base is None else base.metadata
        return self._views.view_after_change(
            name, self._send_change(name, request, took_place, known)
        )

    def register_view(self, identifier: str | Sequence[str], metadata_location: str) -> LoadedView:
        name = parse_table_identifier(identifier)
        request = self._connection.request(
            routes.REGISTER_VIEW,
            self._connection.routes.namespace(name[:-1], "register-view"),
            f"register the view {shown(name)}",
            body={"name": name[-1], "metadata-location": metadata_location},
            refusals=Refusals(NoSuchNamespaceError, ViewAlreadyExistsError),
        )

        def took_place() -> bool | None:
            now = self._views.load_or_none(name)
            return None if now is None else now.metadata_location == metadata_location

        return self._views.view_after_change(name, self._settle_change(request, took_place))

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        name = parse_table_identifier(identifier)
        request = self._connection.request(
            routes.DROP_VIEW,
            self._connection.routes.view(name),
            f"drop the view {shown(name)}",
            token=self._views.token(name),
            refusals=_NO_VIEW,
        )
        self._send_change(name, request, lambda: None if self.view_exists(name) else True)
        self._views.forget(name)

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        request = self._connection.request(
            routes.RENAME_VIEW,
            self._connection.routes.path("views", "rename"),
            f"rename the view {shown(old)} to {shown(new)}",
            body={"source": identifier_json(old), "destination": identifier_json(new)},
            refusals=Refusals(NoSuchViewError, ViewAlreadyExistsError),
        )
        self._settle_change(
            request,
            lambda: True if not self.view_exists(old) and self.view_exists(new) else None,
        )
        self._views.forget(old)
        self._views.forget(new)

    def _send_change(
        self,
        name: Identifier,
        request: RestRequest,
        took_place: Callable[[], bool | None],
        known: ViewMetadata | None = None,
    ) -> Answer | None:
        """Send a change of one view with its own token, if it has one."""
        properties = {} if known is None else known.properties
        try:
            return self._settle_change(request, took_place, properties)
        except AccessDeniedError:
            # A token of the view alone may have ended: the catalog's own login gets another.
            if request.token is None or (token := self._views.new_token(name)) is None:
                raise
            return self._settle_change(replace(request, token=token), took_place, properties)

    def _settle_change(
        self,
        request: RestRequest,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str] | None = None,
    ) -> Answer | None:
        return settle(self._connection, request, took_place, properties=properties)
