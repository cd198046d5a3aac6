"""Several tables in one transaction of the database: all their pointers move, or none does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    insert,
    select,
    tuple_,
    update,
)
from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.metadata_files import metadata_bytes, read_metadata
from frazil.catalog.outcome import Sending, after_the_change, new_metadata_file
from frazil.catalog.pointer.catalog import PointerCatalog
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.namespaces import namespace_text
from frazil.catalog.pointer.sql.schema import TABLES
from frazil.catalog.protocol import Capability, LoadedTable, TableCommit
from frazil.errors import MissingFileError, TableAlreadyExistsError, ValidationError
from frazil.format.changes import (
    AssertCreate,
    apply_updates,
    check_requirements,
    with_previous_metadata,
)
from frazil.storage.locations import metadata_version, new_metadata_file_path

_NAMES_A_QUERY = 300
"""A database takes so many conditions in one statement."""


@dataclass(frozen=True, slots=True)
class _Move:
    """What becomes of one table's pointer.

    Attributes:
        base: the table as it is; None for one that is made.
        table: the table as it will be; the base where only its pointer is to stay.
    """

    base: LoadedTable | None
    table: LoadedTable

    @property
    def name(self) -> Identifier:
        return self.table.identifier

    @property
    def moves(self) -> bool:
        return self.table is not self.base


class CommitsTogether(PointerCatalog):
    """A catalog of rows that commits several tables in one transaction of its database.

    Rows are taken in the order of their keys, so that no two such transactions wait for each other.
    """

    capabilities: ClassVar[frozenset[Capability]] = PointerCatalog.capabilities | {
        Capability.MULTI_TABLE_COMMITS
    }
    looks_up_together: ClassVar[bool] = True
    _database: Database

    def commit_tables(self, commits: Sequence[TableCommit]) -> None:
        by_name = _by_name(commits)
        pointers = self.metadata_locations(list(by_name))
        moves = [
            self._prepared(name, by_name[name], pointers.get(name))
            for name in sorted(by_name, key=_key)
        ]
        moving = [move for move in moves if move.moves]
        if not moving:
            return
        properties = {**self.properties}
        for move in moving:
            properties.update((move.base or move.table).metadata.properties)
        made = ", ".join(shown(move.name) for move in moves if move.base is None)
        sending = Sending()
        with ExitStack() as files:
            for move in moving:
                path, metadata = move.table.metadata_location, move.table.metadata
                data = metadata_bytes(self.io, metadata, path=path)
                files.enter_context(new_metadata_file(self.io, path, data, sending=sending))
            self._database.change(
                f"the commit of {', '.join(shown(move.name) for move in moving)}",
                lambda connection: self._move_all(connection, moves),
                took_place=lambda: self._all_took_place(moving),
                properties=properties,
                taken=TableAlreadyExistsError(
                    f"a table of {made} exists in {self.name}, or a view of that name"
                )
                if made
                else None,
                sending=sending,
            )
        for move in moving:
            if move.base is not None:
                what = f"old metadata files of {shown(move.name)} were not deleted"
                with after_the_change(what):
                    self._delete_trimmed(move.base.metadata, move.table.metadata)

    def loading_as_of_now(self) -> Callable[[Identifier], LoadedTable]:
        """Return what loads tables as all of them are at this moment: by one query."""
        query = select(
            TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location
        ).where(TABLES.c.catalog_name == self.name, self._is_table())
        rows = self._database.read(lambda connection: connection.execute(query).all())
        pointers = {(namespace, table): location for namespace, table, location in rows}

        def load(identifier: Identifier) -> LoadedTable:
            key = _key(identifier)
            if key not in pointers:
                raise self._no_table(identifier)
            location = self._location_in(identifier, pointers[key])
            try:
                metadata = read_metadata(self.io, location)
            except MissingFileError:
                # Old metadata files may be deleted, and tables purged: this is what is there.
                return self.load_table(identifier)
            return self._loaded(identifier, metadata, location)

        return load

    # -- parts -----------------------------------------------------------------------------------

    def _prepared(self, name: Identifier, commit: TableCommit, location: str | None) -> _Move:
        """What the commit makes of the table, checked."""
        creates = any(isinstance(each, AssertCreate) for each in commit.requirements)
        if location is None:
            if not creates:
                raise self._no_table(name)
            self._require_namespace(name[:-1])
            check_requirements(None, commit.requirements)
            made = apply_updates(None, commit.updates)
            return _Move(None, self._loaded(name, made, new_metadata_file_path(made, version=0)))
        if creates:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        if commit.base is not None:
            self._check_pointer(name, commit.base.metadata_location, location)
        current = self._loaded(name, read_metadata(self.io, location), location)
        check_requirements(current.metadata, commit.requirements)
        updated = apply_updates(current.metadata, commit.updates)
        if updated is current.metadata:
            return _Move(current, current)
        updated = with_previous_metadata(
            updated, location, updated_ms=current.metadata.last_updated_ms
        )
        version = metadata_version(location)
        path = new_metadata_file_path(updated, version=0 if version is None else version + 1)
        return _Move(current, self._loaded(name, updated, path))

    def _move_all(self, connection: Connection, moves: Sequence[_Move]) -> None:
        for move in moves:
            if move.base is None:
                row = self._row(move.name, move.table.metadata_location)
                connection.execute(insert(TABLES).values(row))
            elif move.moves:
                self._move_pointer(connection, move.base, move.table)
            elif self._held_pointer(connection, move.name) != move.base.metadata_location:
                self._raise_lost_race(connection, move.base)

    def _move_pointer(
        self, connection: Connection, base: LoadedTable, updated: LoadedTable
    ) -> None:
        """Move the pointer; CommitFailedError if it does not point to the base any more."""
        row = {**row_parameters(base.identifier), "old": base.metadata_location}
        moved = connection.execute(self._swap_statement, {**row, "new": updated.metadata_location})
        if moved.rowcount != 1:
            self._raise_lost_race(connection, base)

    @cached_property
    def _swap_statement(self) -> Update:
        """What moves a pointer: built once, since a statement takes longer to build than to run."""
        old: BindParameter[str] = bindparam("old")
        return (
            update(TABLES)
            .where(self._is_named_table(), TABLES.c.metadata_location == old)
            .values(metadata_location=bindparam("new"), previous_metadata_location=old)
        )

    @cached_property
    def _find_statement(self) -> Select[Any]:
        """What finds a pointer."""
        return select(TABLES.c.metadata_location).where(self._is_named_table())

    @cached_property
    def _find_several(self) -> Select[Any]:
        """What finds the pointers of the tables of `keys`."""
        key = tuple_(TABLES.c.table_namespace, TABLES.c.table_name)
        return select(
            TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location
        ).where(
            TABLES.c.catalog_name == self.name,
            self._is_table(),
            key.in_(bindparam("keys", expanding=True)),
        )

    def _is_named_table(self) -> ColumnElement[bool]:
        """The condition of the row that `row_parameters` names."""
        return and_(
            TABLES.c.catalog_name == self.name,
            self._is_table(),
            TABLES.c.table_namespace == bindparam("namespace"),
            TABLES.c.table_name == bindparam("name"),
        )

    def _held_pointer(self, connection: Connection, name: Identifier) -> object:
        """The pointer of a table, which stays until the transaction ends."""
        return connection.scalar(self._select_row(name).with_for_update(read=True))

    def _all_took_place(self, moving: Sequence[_Move]) -> bool | None:
        """Whether the pointers were moved: all were or none, so that any that can tell decides."""
        answers = (self._took_place(move.base, move.table) for move in moving)
        return next((answer for answer in answers if answer is not None), None)

    def metadata_locations(self, names: Sequence[Identifier]) -> dict[Identifier, str]:
        by_key = {_key(name): name for name in names}
        keys = list(by_key)
        found: dict[Identifier, str] = {}

        def work(connection: Connection) -> None:
            found.clear()
            for begin in range(0, len(keys), _NAMES_A_QUERY):
                some = {"keys": keys[begin : begin + _NAMES_A_QUERY]}
                for namespace, table, location in connection.execute(self._find_several, some):
                    name = by_key[namespace, table]
                    found[name] = self._location_in(name, location)

        self._database.read(work)
        return found

    @abstractmethod
    def _row(self, name: Identifier, metadata_location: str) -> dict[str, str | None]:
        """The row of a new table."""

    @abstractmethod
    def _is_row(self, name: Identifier) -> ColumnElement[bool]:
        """The condition of a table's row."""

    @abstractmethod
    def _is_table(self) -> ColumnElement[bool]:
        """The condition of rows that are tables."""

    @abstractmethod
    def _select_row(self, name: Identifier) -> Select[Any]:
        """The query of a table's pointer."""

    @abstractmethod
    def _location_in(self, name: Identifier, pointer: object) -> str:
        """The pointer of a row; InvalidMetadataError if it is none."""

    @abstractmethod
    def _raise_lost_race(self, connection: Connection, base: LoadedTable) -> None:
        """Tell who was first."""

    @abstractmethod
    def _took_place(self, base: LoadedTable | None, table: LoadedTable) -> bool | None:
        """Whether a pointer was moved, or made, by a transaction without an answer."""


def _by_name(commits: Sequence[TableCommit]) -> Mapping[Identifier, TableCommit]:
    found: dict[Identifier, TableCommit] = {}
    for commit in commits:
        name = parse_table_identifier(commit.identifier)
        if name in found:
            raise ValidationError(
                f"the table {shown(name)} is there twice in one commit: put its updates into one"
            )
        found[name] = commit
    return found


def row_parameters(name: Identifier) -> dict[str, str]:
    """The parameters of statements about one table."""
    return {"namespace": namespace_text(name[:-1]), "name": name[-1]}


def _key(name: Identifier) -> tuple[str, str]:
    """What tells a table's row, and the order in which rows are taken."""
    return namespace_text(name[:-1]), name[-1]
