"""The catalog as statements of a transaction see it: with the tables that it makes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn, Protocol

from frazil.catalog.identifiers import Identifier, parse_namespace, parse_table_identifier, shown
from frazil.catalog.protocol import Capability, Catalog, LoadedTable, LoadedView, StagedTable
from frazil.errors import NoSuchTableError, TableAlreadyExistsError, UnsupportedError
from frazil.format.changes import Requirement, Update
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.views import ViewRequirement, ViewUpdate, ViewVersion


class TablesSoFar(Protocol):
    """The tables of a transaction."""

    @property
    @abstractmethod
    def made_tables(self) -> Sequence[Identifier]:
        """The tables that it makes."""

    @abstractmethod
    def loaded_table(self, identifier: Identifier) -> LoadedTable:
        """Return a table with the changes so far."""

    @abstractmethod
    def make_empty(self, staged: StagedTable) -> None:
        """Make an empty table as a part of the transaction."""


class TransactionCatalog(Catalog):
    """Reads the catalog below, and refuses what a transaction cannot undo."""

    kind: ClassVar[str] = "transaction"

    def __init__(self, below: Catalog, tables: TablesSoFar) -> None:
        super().__init__(below.name, below.properties, io=below.io)
        self._below = below
        self._tables = tables

    def can(self, capability: Capability) -> bool:
        return self._below.can(capability)

    # -- what is there ---------------------------------------------------------------------------

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        return self._below.list_namespaces(parent)

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        return self._below.namespace_exists(namespace)

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return self._below.load_namespace_properties(namespace)

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        levels = parse_namespace(namespace)
        made = [name for name in self._tables.made_tables if name[:-1] == levels]
        return sorted({*self._below.list_tables(namespace), *made})

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        return self._tables.loaded_table(parse_table_identifier(identifier))

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        try:
            self.load_table(identifier)
        except NoSuchTableError:
            return False
        return True

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        return self._below.default_table_location(identifier)

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return self._below.list_views(namespace)

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        return self._below.view_exists(identifier)

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        return self._below.load_view(identifier)

    # -- what becomes part of the transaction ----------------------------------------------------

    def create_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> LoadedTable:
        staged = self.stage_table(identifier, metadata)
        self._tables.make_empty(staged)
        return self._tables.loaded_table(staged.identifier)

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        name = parse_table_identifier(identifier)
        if name in self._tables.made_tables:
            raise TableAlreadyExistsError(f"the transaction has made the table {shown(name)}")
        return self._below.stage_table(name, metadata)

    # -- what a transaction cannot hold ----------------------------------------------------------

    def create_staged_table(self, staged: StagedTable) -> NoReturn:
        raise self._refusal(f"make the table {shown(staged.identifier)} apart from the rest")

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> NoReturn:
        raise self._refusal("commit one of its tables apart from the rest")

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> NoReturn:
        raise self._refusal("make namespaces")

    def drop_namespace(self, namespace: str | Sequence[str]) -> NoReturn:
        raise self._refusal("drop namespaces")

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> NoReturn:
        raise self._refusal("change properties of namespaces")

    def register_table(self, identifier: str | Sequence[str], metadata_location: str) -> NoReturn:
        raise self._refusal("register tables")

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> NoReturn:
        raise self._refusal("rename tables")

    def drop_table(self, identifier: str | Sequence[str]) -> NoReturn:
        raise self._refusal("drop tables")

    def purge_table(self, identifier: str | Sequence[str]) -> NoReturn:
        raise self._refusal("drop tables")

    def create_view(
        self,
        identifier: str | Sequence[str],
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> NoReturn:
        raise self._refusal("make views")

    def commit_view(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[ViewRequirement],
        updates: Sequence[ViewUpdate],
        *,
        base: LoadedView | None = None,
    ) -> NoReturn:
        raise self._refusal("change views")

    def drop_view(self, identifier: str | Sequence[str]) -> NoReturn:
        raise self._refusal("drop views")

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> NoReturn:
        raise self._refusal("rename views")

    def _refusal(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"a transaction cannot {what}: do it before or after")
