"""Several tables in one transaction of the database: all their pointers move, or none does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

from sqlalchemy import insert
from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.metadata_files import metadata_bytes, read_pointed_metadata
from frazil.catalog.outcome import Sending, after_the_change, new_metadata_file
from frazil.catalog.pointer.record_catalog import RecordCatalog
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces
from frazil.catalog.pointer.sql.rows import SqlRows, row_key
from frazil.catalog.pointer.sql.schema import TABLES
from frazil.catalog.protocol import Capability, LoadedTable, TableCommit
from frazil.errors import (
    ConflictError,
    MissingFileError,
    TableAlreadyExistsError,
    ValidationError,
)
from frazil.format.changes import (
    AssertCreate,
    apply_updates,
    check_requirements,
    with_previous_metadata,
)
from frazil.storage.locations import new_metadata_file_path


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


class CommitsTogether(RecordCatalog[SqlNamespaces]):
    """A catalog of rows that commits several tables in one transaction of its database.

    Rows are taken in the order of their keys, so that no two such transactions wait for each other.
    """

    capabilities: ClassVar[frozenset[Capability]] = RecordCatalog.capabilities | {
        Capability.MULTI_TABLE_COMMITS
    }
    looks_up_together: ClassVar[bool] = True
    _database: Database
    _rows: SqlRows

    def commit_tables(self, commits: Sequence[TableCommit]) -> None:
        by_name = _by_name(commits)
        pointers = self._rows.locations_of(by_name)
        moves = [
            self._checked_move(name, by_name[name], pointers.get(name))
            for name in sorted(by_name, key=row_key)
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
        pointers = self._rows.all_pointers()

        def load(identifier: Identifier) -> LoadedTable:
            key = row_key(identifier)
            if key not in pointers:
                raise self._no_table(identifier)
            location = self._rows.location_in(identifier, pointers[key])
            try:
                metadata = read_pointed_metadata(self.io, location)
            except MissingFileError as error:
                # Old metadata files may be deleted, and tables purged: that raises by itself.
                now = self.load_table(identifier)
                if now.metadata_location != location:
                    raise ConflictError(
                        f"{shown(identifier)} cannot be read as it was at this transaction's "
                        "begin: others have changed it since, and its metadata file of then is "
                        "deleted. Run the transaction again; use the table early in it, or keep "
                        "more files by write.metadata.previous-versions-max"
                    ) from error
                return now
            return self._loaded_table(identifier, metadata, location)

        return load

    # -- parts -----------------------------------------------------------------------------------

    def _checked_move(self, name: Identifier, commit: TableCommit, location: str | None) -> _Move:
        """What the commit makes of the table, checked."""
        creates = any(isinstance(each, AssertCreate) for each in commit.requirements)
        if location is None:
            if not creates:
                raise self._no_table(name)
            self._require_namespace(name[:-1])
            check_requirements(None, commit.requirements)
            made = apply_updates(None, commit.updates)
            return _Move(
                None, self._loaded_table(name, made, new_metadata_file_path(made, version=0))
            )
        if creates:
            raise TableAlreadyExistsError(f"the table {shown(name)} exists in {self.name}")
        if commit.base is not None:
            self._check_pointer(name, commit.base.metadata_location, location)
        current = self._loaded_table(name, read_pointed_metadata(self.io, location), location)
        check_requirements(current.metadata, commit.requirements)
        updated = apply_updates(current.metadata, commit.updates)
        if updated is current.metadata:
            return _Move(current, current)
        updated = with_previous_metadata(
            updated, location, updated_ms=current.metadata.last_updated_ms
        )
        return _Move(current, self._successor(current, updated))

    def _move_all(self, connection: Connection, moves: Sequence[_Move]) -> None:
        for move in moves:
            if move.base is None:
                row = self._rows.row(move.name, move.table.metadata_location)
                self._rows.refuse_namespace(connection, move.name)
                connection.execute(insert(TABLES).values(row))
            elif move.moves:
                self._move_pointer(connection, move.base, move.table)
            elif self._rows.held_location(connection, move.name) != move.base.metadata_location:
                self._raise_lost_race(connection, move.base)

    def _move_pointer(
        self, connection: Connection, base: LoadedTable, updated: LoadedTable
    ) -> None:
        """Move the pointer; CommitFailedError if it does not point to the base any more."""
        before, after = base.metadata_location, updated.metadata_location
        if not self._rows.move_pointer(connection, base.identifier, base=before, to=after):
            self._raise_lost_race(connection, base)

    def _all_took_place(self, moving: Sequence[_Move]) -> bool | None:
        """Whether the pointers were moved: all were or none, so that any that can tell decides."""
        answers = (self._took_place(move.base, move.table) for move in moving)
        return next((answer for answer in answers if answer is not None), None)

    def metadata_locations(self, names: Sequence[Identifier]) -> dict[Identifier, str]:
        return self._rows.locations_of(names)

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
