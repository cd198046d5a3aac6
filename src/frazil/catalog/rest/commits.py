"""Commits to a server: of one table, of several, and what became of those without an answer."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import LoadedTable, TableCommit
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.answers import Answer, Refusals
from frazil.catalog.rest.outcome import is_in
from frazil.catalog.rest.settling import settle
from frazil.catalog.rest.tables import TableAnswers, identifier_json, is_chosen
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    NoSuchNamespaceError,
    NoSuchTableError,
    ValidationError,
)
from frazil.format.changes import Requirement, SetLocation, Update

_REFUSALS = Refusals(NoSuchTableError, CommitFailedError)


class RestCommits:
    """Sends commits, and asks for their outcome where no answer comes."""

    def __init__(self, connection: Connection, tables: TableAnswers) -> None:
        self._connection = connection
        self._tables = tables

    def commit(
        self,
        name: Identifier,
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        before: LoadedTable | None,
    ) -> Answer | None:
        """Commit to one table; None where only the table itself shows that it took place."""
        if any(isinstance(u, SetLocation) and is_chosen(u.location) for u in updates):
            raise ValidationError(
                f"cannot make the table {shown(name)}: its place is to be chosen by the server, "
                f"so stage it first, or give it a location"
            )
        kept = self._tables.kept_table(name)
        token = None if kept is None else kept.token
        try:
            return self._send(name, requirements, updates, token, before)
        except AccessDeniedError:
            # A token of the table alone may have ended: the catalog's own login gets another.
            if token is None or (token := self._tables.new_token(name)) is None:
                raise
            return self._send(name, requirements, updates, token, before)

    def commit_all(self, commits: Sequence[TableCommit]) -> None:
        """Commit to several tables, all or none."""
        names = [each.identifier for each in commits]
        what = f"commit to the tables {', '.join(shown(name) for name in names)}"
        self._connection.require(routes.COMMIT_TRANSACTION, what)
        if len(set(names)) < len(names):
            raise ValidationError(f"cannot {what}: a table is named twice")
        bodies = [_body(each.identifier, each.requirements, each.updates) for each in commits]
        request = RestRequest(
            "POST",
            self._connection.routes.path("transactions", "commit"),
            what,
            body={"table-changes": bodies},
            refusals=_REFUSALS,
        )

        def took_place() -> bool | None:
            # All or none: what one of them shows, holds for all.
            for each in commits:
                seen = self._shows(each.identifier, each.requirements, each.updates)
                if seen is not None:
                    return seen
            return None

        for name in names:
            self._tables.forget(name)
        settle(self._connection, request, took_place)

    def _send(
        self,
        name: Identifier,
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        token: str | None,
        before: LoadedTable | None,
    ) -> Answer | None:
        request = RestRequest(
            "POST",
            self._connection.routes.table(name),
            f"commit to the table {shown(name)}",
            body=_body(name, requirements, updates),
            token=token,
            refusals=_REFUSALS,
        )
        return settle(
            self._connection,
            request,
            lambda: self._shows(name, requirements, updates),
            properties=None if before is None else before.metadata.properties,
        )

    def _shows(
        self, name: Identifier, requirements: Sequence[Requirement], updates: Sequence[Update]
    ) -> bool | None:
        try:
            metadata = self._tables.load_whole(name).metadata
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        return is_in(metadata, requirements, updates)


def _body(
    name: Identifier, requirements: Sequence[Requirement], updates: Sequence[Update]
) -> dict[str, object]:
    return {
        "identifier": identifier_json(name),
        "requirements": [each.to_json() for each in requirements],
        "updates": [each.to_json() for each in updates],
    }
