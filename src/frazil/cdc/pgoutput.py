"""Messages of PostgreSQL's output plugin `pgoutput`, version 1 of its protocol.

The format is that of "Logical Replication Message Formats" in PostgreSQL's manual. Values are the
texts that the server sends; they are parsed elsewhere.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from frazil.errors import InvalidFormatError


class Unchanged(Enum):
    """The value of a column that an update left as it was, and that the log does not hold."""

    TOAST = "unchanged"


TOAST: Final = Unchanged.TOAST

Values: TypeAlias = tuple[bytes | Unchanged | None, ...]
"""A row's values in the order of the relation's columns; None is NULL."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins.

    Attributes:
        commit_lsn: where its commit is written.
        microseconds: when it was committed, since 2000-01-01 UTC.
        xid: its id.
    """

    commit_lsn: int
    microseconds: int
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction ends.

    Attributes:
        end_lsn: the position behind it.
    """

    end_lsn: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the log has it from here on.

    Attributes:
        is_key: whether it is part of the replica identity.
        type_oid: of its type.
        modifier: of its type, -1 for none.
    """

    name: str
    is_key: bool
    type_oid: int
    modifier: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the log has it from here on.

    Attributes:
        identity: ``d``, ``n``, ``f`` or ``i``: default, nothing, full or an index.
    """

    oid: int
    namespace: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class InsertMessage:
    """A row is new."""

    oid: int
    new: Values


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """A row is changed.

    Attributes:
        old: the row before, if the replica identity is full or the key changed.
        is_old_whole: whether `old` has all columns, or those of the key alone.
    """

    oid: int
    old: Values | None
    is_old_whole: bool
    new: Values


@dataclass(frozen=True, slots=True)
class DeleteMessage:
    """A row is gone; `old` has the columns of the replica identity at least."""

    oid: int
    old: Values


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables are emptied."""

    oids: tuple[int, ...]


Message: TypeAlias = (
    Begin | Commit | Relation | InsertMessage | UpdateMessage | DeleteMessage | Truncate
)

_BEGIN: Final = struct.Struct(">QqI")
_COMMIT: Final = struct.Struct(">BQQq")
_UINT32: Final = struct.Struct(">I")
_INT32: Final = struct.Struct(">i")
_UINT16: Final = struct.Struct(">H")
_COLUMN: Final = struct.Struct(">Ii")

_TEXT: Final = ord("t")
_NULL: Final = ord("n")
_UNCHANGED: Final = ord("u")
_NEW: Final = ord("N")
_OLD: Final = ord("O")
_KEY: Final = ord("K")

_PASSED_OVER: Final = b"YOM"
"""Names of types, origins, and messages that applications write into the log."""


def message_of(data: bytes) -> Message | None:
    """Return the message that bytes hold; None where it says nothing of rows.

    Raises:
        InvalidFormatError: they hold no message of the protocol's version 1.
    """
    try:
        return _parse(data)
    except (struct.error, IndexError, ValueError) as error:
        raise InvalidFormatError(
            f"a message of {len(data)} bytes of kind {data[:1]!r} is not one of pgoutput: {error}"
        ) from error


def _parse(data: bytes) -> Message | None:
    kind = data[:1]
    match kind:
        case b"I":
            [oid] = _UINT32.unpack_from(data, 1)
            _expect(data[5], _NEW)
            return InsertMessage(oid, _values(data, 6)[0])
        case b"U":
            return _update(data)
        case b"D":
            [oid] = _UINT32.unpack_from(data, 1)
            _expect(data[5], _KEY, _OLD)
            return DeleteMessage(oid, _values(data, 6)[0])
        case b"B":
            return Begin(*_BEGIN.unpack_from(data, 1))
        case b"C":
            _, _, end_lsn, _ = _COMMIT.unpack_from(data, 1)
            return Commit(end_lsn)
        case b"R":
            return _relation(data)
        case b"T":
            [count] = _UINT32.unpack_from(data, 1)
            return Truncate(struct.unpack_from(f">{count}I", data, 6))
    if kind and kind in _PASSED_OVER:
        return None
    raise ValueError("the kind is not known")


def _update(data: bytes) -> UpdateMessage:
    [oid] = _UINT32.unpack_from(data, 1)
    old: Values | None = None
    mark, at = data[5], 6
    is_old_whole = mark == _OLD
    if mark in (_OLD, _KEY):
        old, at = _values(data, at)
        mark, at = data[at], at + 1
    _expect(mark, _NEW)
    return UpdateMessage(oid, old, is_old_whole, _values(data, at)[0])


def _relation(data: bytes) -> Relation:
    [oid] = _UINT32.unpack_from(data, 1)
    namespace, at = _string(data, 5)
    name, at = _string(data, at)
    identity = chr(data[at])
    [count] = _UINT16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        type_oid, modifier = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(RelationColumn(column, bool(flags & 1), type_oid, modifier))
    return Relation(oid, namespace or "pg_catalog", name, identity, tuple(columns))


def _values(data: bytes, at: int) -> tuple[Values, int]:
    [count] = _UINT16.unpack_from(data, at)
    at += 2
    values: list[bytes | Unchanged | None] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == _TEXT:
            [size] = _INT32.unpack_from(data, at)
            at += 4
            if size < 0 or at + size > len(data):
                raise ValueError(f"a value of {size} bytes does not fit in")
            values.append(data[at : at + size])
            at += size
        elif kind == _NULL:
            values.append(None)
        elif kind == _UNCHANGED:
            values.append(TOAST)
        else:
            raise ValueError(f"a value of the kind {chr(kind)!r}")
    return tuple(values), at


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _expect(mark: int, *known: int) -> None:
    if mark not in known:
        raise ValueError(f"a row is marked {chr(mark)!r}")
