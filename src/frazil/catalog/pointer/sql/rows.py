"""Rows of ``iceberg_tables``: names with a pointer each, of tables or of views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    delete,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.engine import Connection

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.outcome import Sending
from frazil.catalog.pointer.sql.database import Database
from frazil.catalog.pointer.sql.namespaces import SqlNamespaces, namespace_text
from frazil.catalog.pointer.sql.schema import TABLES
from frazil.errors import (
    AlreadyExistsError,
    CommitFailedError,
    FrazilError,
    InvalidMetadataError,
    NoSuchTableError,
    NoSuchViewError,
    NotFoundError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)

_NAMES_A_QUERY: Final = 300
"""The most conditions that databases take in one statement."""

_POINTERS = (TABLES.c.metadata_location, TABLES.c.previous_metadata_location)


@dataclass(frozen=True, slots=True)
class RelationKind:
    """What a row is of.

    Attributes:
        word: for messages.
        other: the kind that shares the names.
        row_type: what Java's JdbcCatalog calls it in the row.
        missing, taken: the errors of a name that is not there, and of one that is.
    """

    word: str
    other: str
    row_type: str
    missing: type[NotFoundError]
    taken: type[AlreadyExistsError]


OF_TABLES: Final = RelationKind("table", "view", "TABLE", NoSuchTableError, TableAlreadyExistsError)
OF_VIEWS: Final = RelationKind("view", "table", "VIEW", NoSuchViewError, ViewAlreadyExistsError)


@dataclass(frozen=True, slots=True)
class Pointers:
    """Where a row points to, and where it pointed to before."""

    location: str
    previous: str | None = None


class SqlRows:
    """The rows of one catalog that are tables, or those that are views.

    Args:
        database: where they are.
        namespaces: of the same catalog.
        catalog: its name.
        kind: of what the rows are.
        typed: whether rows say of what they are (schema V1); those of V0 are all tables.
        status_checks: say how long to ask after a lost answer.
    """

    def __init__(
        self,
        database: Database,
        namespaces: SqlNamespaces,
        catalog: str,
        kind: RelationKind,
        *,
        typed: bool,
        status_checks: Mapping[str, str],
    ) -> None:
        self.kind = kind
        self._database = database
        self._namespaces = namespaces
        self._catalog = catalog
        self._typed = typed
        self._status_checks = status_checks

    # -- looks -----------------------------------------------------------------------------------

    def names_in(self, levels: Identifier) -> list[Identifier]:
        """The names directly in a namespace, sorted; NoSuchNamespaceError if there is none."""
        text = namespace_text(levels)

        def work(connection: Connection) -> Sequence[object]:
            if not self._namespaces.is_stored(connection, text):
                raise self._namespaces.missing_error(levels)
            here = and_(self.is_any_row(), TABLES.c.table_namespace == text)
            return connection.scalars(select(TABLES.c.table_name).where(here)).all()

        names = self._database.read(work)
        return sorted((*levels, name) for name in names if isinstance(name, str))

    def location_of(self, name: Identifier) -> str | None:
        """Where a name points to; None where there is none."""
        query, row = self._find, _parameters(name)
        found = self._database.read(lambda connection: connection.execute(query, row).first())
        return None if found is None else self.location_in(name, found[0])

    def locations_of(self, names: Iterable[Identifier]) -> dict[Identifier, str]:
        """Where names point to; those that are not there are left out."""
        by_key = {row_key(name): name for name in names}
        keys = list(by_key)
        found: dict[Identifier, str] = {}

        def work(connection: Connection) -> None:
            found.clear()
            for begin in range(0, len(keys), _NAMES_A_QUERY):
                some = {"keys": keys[begin : begin + _NAMES_A_QUERY]}
                for namespace, row_name, location in connection.execute(self._find_several, some):
                    name = by_key[namespace, row_name]
                    found[name] = self.location_in(name, location)

        self._database.read(work)
        return found

    def require_no_namespace(self, name: Identifier) -> None:
        """Check that no namespace has a name; the kind's error where one has."""
        self._database.read(lambda connection: self.refuse_namespace(connection, name))

    def has_name(self, name: Identifier) -> bool:
        """Whether there is a row of a name, of either kind."""
        query = select(TABLES.c.table_name).where(self._is_named(name))
        return self._database.read(lambda connection: connection.execute(query).first()) is not None

    def all_pointers(self) -> dict[tuple[str, str], object]:
        """What all rows point to at this moment, by `row_key`; broken ones too."""
        query = _select_key(self.is_any_row())
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return {(namespace, name): location for namespace, name, location in rows}

    def location_in(self, name: Identifier, pointer: object) -> str:
        """The pointer of a row; InvalidMetadataError if it has no pointer."""
        if not isinstance(pointer, str) or not pointer:
            raise InvalidMetadataError(
                f"the row of the {self.kind.word} {shown(name)} in the catalog {self._catalog} has "
                f"no metadata location but {pointer!r}",
                field="metadata_location",
            )
        return pointer

    # -- changes ---------------------------------------------------------------------------------

    def insert(
        self,
        name: Identifier,
        location: str,
        *,
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        sending: Sending,
    ) -> None:
        """Make a name that points to a metadata file, if it is free; else the kind's error."""
        row = self.row(name, location)

        def work(connection: Connection) -> None:
            self._namespaces.hold_name(connection, name)
            self.refuse_namespace(connection, name)
            connection.execute(insert(TABLES).values(row))

        self._database.change(
            f"the new {self.kind.word} {shown(name)} of {location}",
            work,
            took_place=took_place,
            properties={**self._status_checks, **properties},
            taken=self.taken_name_error(name),
            sending=sending,
        )

    def swap(
        self,
        name: Identifier,
        location: str,
        *,
        move: Callable[[Connection], None],
        took_place: Callable[[], bool | None],
        properties: Mapping[str, str],
        sending: Sending,
    ) -> None:
        """Move a pointer to another metadata file, as `move` does it."""
        self._database.change(
            f"the swap of {shown(name)} to {location}",
            move,
            took_place=took_place,
            properties={**self._status_checks, **properties},
            sending=sending,
        )

    def move_pointer(self, connection: Connection, name: Identifier, *, base: str, to: str) -> bool:
        """Move a pointer if it still points to its base; whether it did."""
        row = {**_parameters(name), "old": base, "new": to}
        return connection.execute(self._swap, row).rowcount == 1

    def raise_lost_race(self, connection: Connection, name: Identifier, base: str) -> None:
        """Tell who was first."""
        row = self.lock_row(connection, name)
        if row is None:
            raise self.kind.missing(f"the {self.kind.word} {shown(name)} was dropped or renamed")
        raise CommitFailedError(
            f"{shown(name)} points to {row.location}, not to {base}: another writer was first"
        )

    def delete(self, name: Identifier) -> None:
        """Remove a name; the kind's error if there is none."""
        seen: list[Pointers] = []

        def work(connection: Connection) -> None:
            seen[:] = [self._require_row(connection, name)]
            connection.execute(delete(TABLES).where(self.is_row(name)))

        def took_place(connection: Connection) -> bool | None:
            row = self.lock_row(connection, name)
            if row is None:
                return True
            return False if [row] == seen else None

        self._database.change(
            f"the end of the {self.kind.word} {shown(name)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self._status_checks,
        )

    def rename(self, old: Identifier, new: Identifier) -> None:
        """Give a row another name; the kind's errors where there is none, or where it is taken."""
        if old == new:
            if self.location_of(old) is None:
                raise self.missing_error(old)
            return
        namespace, name = row_key(new)
        seen: list[Pointers] = []

        def work(connection: Connection) -> None:
            if not self._namespaces.is_stored(connection, namespace):
                raise self._namespaces.missing_error(new[:-1])
            self._namespaces.hold_name(connection, new)
            self.refuse_namespace(connection, new)
            seen[:] = [self._require_row(connection, old)]
            connection.execute(
                update(TABLES)
                .where(self.is_row(old))
                .values(table_namespace=namespace, table_name=name)
            )

        def took_place(connection: Connection) -> bool | None:
            before, after = self.lock_row(connection, old), self.lock_row(connection, new)
            if before is None and [after] == seen:
                return True
            return False if [before] == seen and after is None else None

        self._database.change(
            f"the renaming of {shown(old)} to {shown(new)}",
            work,
            took_place=lambda: self._database.look(took_place),
            properties=self._status_checks,
            taken=self.taken_name_error(new),
        )

    # -- rows in a transaction -------------------------------------------------------------------

    def refuse_namespace(self, connection: Connection, name: Identifier) -> None:
        """Raise the kind's error where a namespace has the name: their folders would be one."""
        if "." not in name[-1] and self._namespaces.is_stored(connection, namespace_text(name)):
            raise self.kind.taken(f"{shown(name)} is a namespace in the catalog {self._catalog}")

    def lock_row(self, connection: Connection, name: Identifier) -> Pointers | None:
        """Where a row points and pointed to, once it is ours to change; None without a row."""
        query = select(*_POINTERS).where(self.is_row(name)).with_for_update()
        row = connection.execute(query).first()
        return None if row is None else Pointers(*row)

    def held_location(self, connection: Connection, name: Identifier) -> object:
        """Where a row points to, which stays so until the transaction ends."""
        return connection.scalar(
            select(TABLES.c.metadata_location).where(self.is_row(name)).with_for_update(read=True)
        )

    def settled_pointers(self, name: Identifier, *, is_new: bool) -> Pointers | None:
        """Where a row points and pointed to once no transaction is at work on its name.

        `is_new`: whether a transaction may be making the name.
        """

        def work(connection: Connection) -> Pointers | None:
            row = self.lock_row(connection, name)
            if row is not None:
                return Pointers(self.location_in(name, row.location), row.previous)
            if is_new:
                # An unfinished INSERT shows no row: another INSERT of its key waits for its end.
                connection.execute(insert(TABLES).values(self.row(name, "")))
            return None

        return self._database.look(work)

    def is_named(self, location: str) -> bool:
        """Whether any row points to a metadata file, or did so before its present one."""
        named = or_(*(pointer == location for pointer in _POINTERS))
        query = select(TABLES.c.table_name).where(self.is_any_row(), named)
        return self._database.read(lambda connection: connection.execute(query).first()) is not None

    def row(self, name: Identifier, location: str) -> dict[str, str | None]:
        """The row of a name that is made."""
        namespace, row_name = row_key(name)
        row: dict[str, str | None] = {
            "catalog_name": self._catalog,
            "table_namespace": namespace,
            "table_name": row_name,
            "metadata_location": location,
            "previous_metadata_location": None,
        }
        return {**row, "iceberg_type": self.kind.row_type} if self._typed else row

    def is_row(self, name: Identifier) -> ColumnElement[bool]:
        """The condition of a name's row."""
        return and_(self.is_any_row(), self._is_named(name))

    def is_any_row(self) -> ColumnElement[bool]:
        """The condition of all these rows."""
        here = TABLES.c.catalog_name == self._catalog
        if not self._typed:
            return here
        is_kind = TABLES.c.iceberg_type == self.kind.row_type
        # PyIceberg and older catalogs leave the type of tables out.
        return and_(
            here,
            or_(is_kind, TABLES.c.iceberg_type.is_(None)) if self.kind is OF_TABLES else is_kind,
        )

    # -- statements that are built once, since that takes longer than to run them ----------------

    @cached_property
    def _find(self) -> Select[Any]:
        """What finds where a name points to."""
        return select(TABLES.c.metadata_location).where(self._is_given)

    @cached_property
    def _find_several(self) -> Select[Any]:
        """What finds where the names of `keys` point to."""
        key = tuple_(TABLES.c.table_namespace, TABLES.c.table_name)
        return _select_key(and_(self.is_any_row(), key.in_(bindparam("keys", expanding=True))))

    @cached_property
    def _swap(self) -> Update:
        """What moves a pointer from its old place to a new one."""
        old: BindParameter[str] = bindparam("old")
        return (
            update(TABLES)
            .where(self._is_given, TABLES.c.metadata_location == old)
            .values(metadata_location=bindparam("new"), previous_metadata_location=old)
        )

    @property
    def _is_given(self) -> ColumnElement[bool]:
        """The condition of the row that `_parameters` name."""
        return and_(
            self.is_any_row(),
            TABLES.c.table_namespace == bindparam("namespace"),
            TABLES.c.table_name == bindparam("name"),
        )

    # -- errors ----------------------------------------------------------------------------------

    def missing_error(self, name: Identifier) -> FrazilError:
        """The error of a name that is not there."""
        return self.kind.missing(
            f"there is no {self.kind.word} {shown(name)} in the catalog {self._catalog}"
        )

    def taken_name_error(self, name: Identifier) -> FrazilError:
        """The error of a name that a table or a view has."""
        return self.kind.taken(
            f"the {self.kind.word} {shown(name)} exists in {self._catalog}, or a "
            f"{self.kind.other} of that name"
        )

    def _require_row(self, connection: Connection, name: Identifier) -> Pointers:
        row = self.lock_row(connection, name)
        if row is None:
            raise self.missing_error(name)
        return row

    def _is_named(self, name: Identifier) -> ColumnElement[bool]:
        namespace, row_name = row_key(name)
        return and_(
            TABLES.c.catalog_name == self._catalog,
            TABLES.c.table_namespace == namespace,
            TABLES.c.table_name == row_name,
        )


def row_key(name: Identifier) -> tuple[str, str]:
    """Return what tells a name's row, by which rows are taken in order."""
    return namespace_text(name[:-1]), name[-1]


def _parameters(name: Identifier) -> dict[str, str]:
    namespace, row_name = row_key(name)
    return {"namespace": namespace, "name": row_name}


def _select_key(condition: ColumnElement[bool]) -> Select[Any]:
    columns = (TABLES.c.table_namespace, TABLES.c.table_name, TABLES.c.metadata_location)
    return select(*columns).where(condition)
