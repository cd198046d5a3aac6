"""A moment of a table of PostgreSQL: its place in the log, its rows, and what they are rows of."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from frazil.cdc.connections import Connection, Dsn
from frazil.cdc.initial import lock_shared
from frazil.cdc.slots import NewSlot
from frazil.cdc.source.tables import SourceTable, table_of
from frazil.errors import ConflictError, NotFoundError

TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class FixedTable:
    """A table that stays as a slot's snapshot has it.

    Attributes:
        start: the slot has all transactions that commit from here on.
        snapshot: the name of one that has all others.
        source: the table in it, which is also what it is now.
        pages: how long the tables are that the rows lie in, by OID, in pages of 8 KiB.
    """

    start: int
    snapshot: str
    source: SourceTable
    pages: Mapping[int, int]


@contextmanager
def fixed_table(
    connection: Connection, dsn: Dsn, oid: int, publication: str, make: Callable[[], NewSlot]
) -> Iterator[FixedTable]:
    """Make a slot, and keep the table as its snapshot has it until the block ends.

    The table is locked in ACCESS SHARE mode, as by any query. That comes after the slot, which
    waits for every open transaction: one of those might want to change the table, and both would
    wait for ever. So nothing is locked while the slot is made, and where the table was changed
    between the two, another slot is made.

    Args:
        make: makes the slot, in place of the last one.

    Raises:
        ConflictError: the table is changed all the time.
        NotFoundError: it was dropped.
    """
    for left in reversed(range(TRIES)):
        made = make()
        try:
            reader = dsn.connect()
            try:
                fixed = _lock(connection, reader, oid, publication, made)
                if fixed is not None:
                    yield fixed
                    return
            finally:
                with suppress(psycopg.Error):
                    reader.close()
        finally:
            with suppress(psycopg.Error):
                made.holder.close()
        if left:
            time.sleep(_PAUSE_SECONDS)
    raise ConflictError(
        "the source's definition or place changed each time that its rows were to be read: try "
        "again once that is done"
    )


def _lock(
    connection: Connection, reader: Connection, oid: int, publication: str, made: NewSlot
) -> FixedTable | None:
    """The table under lock; None where it is not as the snapshot has it."""
    reader.execute("begin isolation level repeatable read read only")
    reader.execute(sql.SQL("set transaction snapshot {}").format(sql.Literal(made.snapshot)))
    try:
        then = table_of(reader, oid, publication)
        if not all(lock_shared(reader, part) for part in then.parts):
            return None
    except psycopg.errors.UndefinedTable:
        return None
    except NotFoundError:
        # It came after the snapshot; where it is gone, this says so.
        table_of(connection, oid, publication)
        return None
    if table_of(connection, oid, publication) != then:
        return None
    # Asked here: another connection would wait behind whoever waits for the lock.
    pages = {leaf.oid: _pages(reader, leaf.oid) for leaf in then.leaves}
    return FixedTable(made.start, made.snapshot, then, pages)


def _pages(reader: Connection, oid: int) -> int:
    row = reader.execute("select pg_relation_size(%s::oid::regclass) / 8192", [oid]).fetchone()
    return 0 if row is None else int(row[0])
