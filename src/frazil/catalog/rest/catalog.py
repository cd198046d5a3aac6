"""RestCatalog: a server holds the tables, and commits are sent to it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from frazil.catalog.identifiers import (
    Identifier,
    parse_named_namespace,
    parse_namespace,
    parse_table_identifier,
    shown,
)
from frazil.catalog.protocol import (
    Capability,
    Catalog,
    LoadedTable,
    StagedTable,
    TableCommit,
    property_changes,
)
from frazil.catalog.purge import refuse_purge_without_gc
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection, connect
from frazil.catalog.rest.exchange.answers import Answer, Refusals
from frazil.catalog.rest.files.credentials import store_properties
from frazil.catalog.rest.namespaces import RestNamespaces
from frazil.catalog.rest.outcome import is_in
from frazil.catalog.rest.reports import CommitReport, Reporter, ScanReport
from frazil.catalog.rest.settings import PROPERTY_NAMES, PROPERTY_PREFIXES, REPORTS_METRICS
from frazil.catalog.rest.settling import settle
from frazil.catalog.rest.tables import (
    CHOSEN_BY_SERVER,
    TableAnswers,
    creation_request,
    identifier_json,
    is_alike,
    is_chosen,
)
from frazil.catalog.rest.views import RestViewMethods, ViewAnswers
from frazil.errors import (
    AccessDeniedError,
    CommitFailedError,
    CommitStateUnknownError,
    FrazilError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.changes import AddSnapshot, AssertCreate, Requirement, SetLocation, Update
from frazil.format.metadata import TableMetadata
from frazil.planning.scan_report import PlannedScan
from frazil.storage.caches import Caches
from frazil.storage.files import FileIO
from frazil.storage.on_driver import OnDriver

_LOG = logging.getLogger(__name__)
_OF_CAPABILITY: Final = {
    Capability.CHANGES: routes.UPDATE_TABLE,
    Capability.NAMESPACE_PROPERTIES: routes.UPDATE_NAMESPACE,
    Capability.RENAMES: routes.RENAME_TABLE,
    Capability.TABLE_LOCATIONS: routes.CREATE_TABLE,
    Capability.MULTI_TABLE_COMMITS: routes.COMMIT_TRANSACTION,
    Capability.VIEWS: routes.LOAD_VIEW,
}


class RestCatalog(RestViewMethods, OnDriver, Catalog):
    """The catalog of a server that speaks Iceberg's REST protocol.

    Properties: ``uri`` (required), ``warehouse``, ``token`` or ``credential``, and others, listed
    in docs/reference/properties.md. What the server configures stands below them (defaults) and
    above them (overrides). With ``snapshot-loading-mode=refs`` a table is loaded with those
    snapshots alone that a branch or a tag is at; the others come by one more request once
    something needs them: time travel by id, history, expiry, the search for conflicts.
    """

    kind: ClassVar[str] = "rest"
    capabilities: ClassVar[frozenset[Capability]] = frozenset(_OF_CAPABILITY)
    property_names: ClassVar[frozenset[str] | None] = PROPERTY_NAMES
    property_prefixes: ClassVar[tuple[str, ...]] = PROPERTY_PREFIXES
    loads_by_request: ClassVar[bool] = True

    def __init__(
        self, name: str, properties: Mapping[str, str], *, io: FileIO | None = None
    ) -> None:
        self._connection = connect(name, properties)
        merged = self._connection.properties
        self._reports_metrics = REPORTS_METRICS.of(merged)
        own = FileIO(store_properties(merged), caches=Caches(merged)) if io is None else io
        super().__init__(name, merged, io=own)
        self._namespaces = RestNamespaces(self._connection)
        self._tables = TableAnswers(self._connection, self.io)
        self._commits = RestCommits(self._connection, self._tables)
        self._views = ViewAnswers(self._connection)
        self._reporter = Reporter()

    def can(self, capability: Capability) -> bool:
        endpoint = _OF_CAPABILITY.get(capability)
        return endpoint is not None and self._connection.has_endpoint(endpoint)

    # -- namespaces ------------------------------------------------------------------------------

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        self._namespaces.create(parse_named_namespace(namespace), properties or {})

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        self._namespaces.drop(parse_named_namespace(namespace))

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        return self._namespaces.children(parse_namespace(parent))

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        return self._namespaces.exists(parse_named_namespace(namespace))

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return self._namespaces.properties_of(parse_named_namespace(namespace))

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        changes = property_changes(updates, removals)
        self._namespaces.update(parse_named_namespace(namespace), changes, removals)

    # -- tables ----------------------------------------------------------------------------------

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_named_namespace(namespace)
        return self._namespaces.identifiers(
            RestRequest(
                "GET",
                self._connection.routes.tables(levels),
                f"list the tables of {shown(levels)}",
                refusals=Refusals(missing=NoSuchNamespaceError),
            )
        )

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        return self._tables.load(parse_table_identifier(identifier))

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        name = parse_table_identifier(identifier)
        return self._connection.is_there(
            self._connection.routes.table(name),
            f"look for the table {shown(name)}",
            head=routes.TABLE_EXISTS,
            refusals=Refusals(missing=NoSuchTableError),
            missing=(NoSuchTableError, NoSuchNamespaceError),
        )

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        """A mark that leaves the place to the server, which alone knows where a new table lies."""
        return CHOSEN_BY_SERVER + "/".join(parse_table_identifier(identifier))

    def create_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> LoadedTable:
        name = parse_table_identifier(identifier)
        request = self._creation(name, metadata, staged=False)

        def took_place() -> bool | None:
            made = self._current_metadata(name)
            # Whose it is cannot be seen: one that is as it was to be serves as well.
            return None if made is None else is_alike(made, metadata)

        answer = settle(self._connection, request, took_place, properties=metadata.properties)
        return self._table_after_change(name, answer)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        name = parse_table_identifier(identifier)
        # Nothing is made yet, so the request may be sent again.
        answer = self._connection.client.read(self._creation(name, metadata, staged=True))
        return self._tables.staged_table(name, answer)

    def create_staged_table(self, staged: StagedTable) -> LoadedTable:
        try:
            return self._commit(staged.identifier, (AssertCreate(),), staged.updates)
        except CommitFailedError as error:
            if not self.table_exists(staged.identifier):
                raise
            raise TableAlreadyExistsError(
                f"the table {shown(staged.identifier)} exists in {self.name}"
            ) from error

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        name = parse_table_identifier(identifier)
        if not updates and not requirements:
            return self.load_table(name)
        return self._commit(name, requirements, updates, base=base)

    def commit_tables(self, commits: Sequence[TableCommit]) -> None:
        named = [
            replace(each, identifier=parse_table_identifier(each.identifier)) for each in commits
        ]
        if not named:
            return
        try:
            self._commits.commit_all(named)
        except CommitFailedError as error:
            taken = next((each.identifier for each in named if self._is_taken(each)), None)
            if taken is None:
                raise
            raise TableAlreadyExistsError(
                f"the table {shown(taken)} exists in {self.name}"
            ) from error
        for each in named:
            self._report_commit(each.identifier, each.updates)

    def register_table(
        self, identifier: str | Sequence[str], metadata_location: str
    ) -> LoadedTable:
        name = parse_table_identifier(identifier)
        request = self._connection.request(
            routes.REGISTER_TABLE,
            self._connection.routes.namespace(name[:-1], "register"),
            f"register the table {shown(name)}",
            body={"name": name[-1], "metadata-location": metadata_location},
            refusals=Refusals(NoSuchNamespaceError, TableAlreadyExistsError),
        )

        def took_place() -> bool | None:
            try:
                return self.load_table(name).metadata_location == metadata_location
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

        return self._table_after_change(name, settle(self._connection, request, took_place))

    def unregister_table(self, identifier: str | Sequence[str]) -> str:
        """Remove a table from the catalog, leave its files, and return its last metadata file.

        Raises CommitStateUnknownError: no answer came and none could be had.
        """
        name = parse_table_identifier(identifier)
        request = self._connection.request(
            routes.UNREGISTER_TABLE,
            self._connection.routes.table(name, "unregister"),
            f"unregister the table {shown(name)}",
            refusals=Refusals(missing=NoSuchTableError),
        )
        before = self.load_table(name).metadata_location
        answer = settle(
            self._connection, request, lambda: None if self.table_exists(name) else True
        )
        self._tables.forget(name)
        found = None if answer is None else answer.json().get("metadata-location")
        return found if isinstance(found, str) else before

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        old, new = parse_table_identifier(source), parse_table_identifier(target)
        request = self._connection.request(
            routes.RENAME_TABLE,
            self._connection.routes.path("tables", "rename"),
            f"rename the table {shown(old)} to {shown(new)}",
            body={"source": identifier_json(old), "destination": identifier_json(new)},
            refusals=Refusals(NoSuchTableError, TableAlreadyExistsError),
        )
        settle(
            self._connection,
            request,
            lambda: True if not self.table_exists(old) and self.table_exists(new) else None,
        )
        self._tables.forget(old)
        self._tables.forget(new)

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        self._drop(parse_table_identifier(identifier), purge="false")

    def purge_table(self, identifier: str | Sequence[str]) -> tuple[str, ...]:
        """Remove a table, whose files the server deletes, at once or later; it names none."""
        table = self.load_table(identifier)
        refuse_purge_without_gc(table.metadata, shown(table.identifier))
        self._drop(table.identifier, purge="true")
        return ()

    # -- the rest --------------------------------------------------------------------------------

    def report_scan(self, identifier: str | Sequence[str], scan: PlannedScan) -> None:
        if not self._wants_reports:
            return
        name = parse_table_identifier(identifier)

        def send() -> None:
            report = scan.report(f"{self.name}.{shown(name)}")
            if report is not None:
                self._connection.client.change(self._report_request(name, report))

        self._reporter.send(send)

    def close(self) -> None:
        self._reporter.close()
        self._connection.client.close()

    def _creation(self, name: Identifier, metadata: TableMetadata, *, staged: bool) -> RestRequest:
        location = None if is_chosen(metadata.location) else metadata.location
        body = creation_request(name, metadata, location=location)
        return self._connection.request(
            routes.CREATE_TABLE,
            self._connection.routes.tables(name[:-1]),
            f"make the table {shown(name)}",
            body={**body, "stage-create": staged},
            refusals=Refusals(NoSuchNamespaceError, TableAlreadyExistsError),
        )

    def _commit(
        self,
        name: Identifier,
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        kept = self._tables.kept_table(name)
        before = base if base is not None else None if kept is None else kept.loaded
        answer = self._commits.commit(name, requirements, updates, before)
        committed = self._table_after_change(name, answer, before)
        self._report_commit(name, updates)
        return committed

    def _is_taken(self, commit: TableCommit) -> bool:
        """Whether a commit was to make a table of a name that another one has."""
        makes = any(isinstance(each, AssertCreate) for each in commit.requirements)
        return makes and self.table_exists(commit.identifier)

    def _table_after_change(
        self, name: Identifier, answer: Answer | None, before: LoadedTable | None = None
    ) -> LoadedTable:
        """The table after a change that took place, loaded where the answer does not hold it."""
        try:
            if answer is not None:
                return self._tables.keep(name, answer, before)
        except FrazilError as error:
            _LOG.warning("the answer to a change of %s cannot be read: %s", shown(name), error)
        self._tables.forget(name)
        try:
            return self._tables.load(name)
        except FrazilError as error:
            raise CommitStateUnknownError(
                f"the change of {shown(name)} took place, and the table cannot be loaded: {error}"
            ) from error

    def _current_metadata(self, name: Identifier) -> TableMetadata | None:
        try:
            return self._tables.load(name).metadata
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _drop(self, name: Identifier, *, purge: str) -> None:
        request = self._connection.request(
            routes.DROP_TABLE,
            self._connection.routes.table(name),
            f"drop the table {shown(name)}",
            params={"purgeRequested": purge},
            refusals=Refusals(missing=NoSuchTableError),
        )
        settle(self._connection, request, lambda: None if self.table_exists(name) else True)
        self._tables.forget(name)

    def _report_commit(self, name: Identifier, updates: Iterable[Update]) -> None:
        table = f"{self.name}.{shown(name)}"
        made = [each.snapshot for each in updates if isinstance(each, AddSnapshot)]
        for snapshot in made if self._wants_reports else ():
            request = self._report_request(name, CommitReport(table_name=table, snapshot=snapshot))
            self._reporter.send(partial(self._connection.client.change, request))

    @property
    def _wants_reports(self) -> bool:
        return self._reports_metrics and self._connection.has_endpoint(routes.REPORT_METRICS)

    def _report_request(self, name: Identifier, report: ScanReport | CommitReport) -> RestRequest:
        return RestRequest(
            "POST",
            self._connection.routes.table(name, "metrics"),
            f"report metrics of the table {shown(name)}",
            body=report.to_json(),
        )


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
        bodies = [_body(each.identifier, each.requirements, each.updates) for each in commits]
        request = self._connection.request(
            routes.COMMIT_TRANSACTION,
            self._connection.routes.path("transactions", "commit"),
            f"commit to the tables {', '.join(shown(name) for name in names)}",
            body={"table-changes": bodies},
            refusals=_REFUSALS,
        )
        if len(set(names)) < len(names):
            raise ValidationError(f"cannot {request.what}: a table is named twice")

        def took_place() -> bool | None:
            # All or none: what one of them shows, holds for all.
            for each in commits:
                seen = self._is_committed(each.identifier, each.requirements, each.updates)
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
            lambda: self._is_committed(name, requirements, updates),
            properties=None if before is None else before.metadata.properties,
        )

    def _is_committed(
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
