"""Whole transactions from the log become one batch of changes by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from frazil.cdc.pgoutput import (
    TOAST,
    Begin,
    Commit,
    DeleteMessage,
    InsertMessage,
    Message,
    Relation,
    Truncate,
    UpdateMessage,
    Values,
)
from frazil.cdc.values import RowLoader, ValueColumn, arrays_of
from frazil.errors import ValidationError

GONE: Final = "_frazil_cdc_gone"
ORDER: Final = "_frazil_cdc_order"
"""Columns beside those of the table: ``d`` or ``u``, and the place of a change in the batch."""

EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
ROWS_AT_ONCE: Final = 50_000

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RowLayout:
    """How the rows of a relation of the log are read.

    Attributes:
        columns: those that are taken over.
        places: where their values are in a row of the log.
        loader: parses them.
    """

    columns: tuple[ValueColumn, ...]
    places: tuple[int, ...]
    loader: RowLoader


Reader = Callable[[Relation, Begin], RowLayout]
"""Says how the rows of a relation are read, which a transaction has changes of."""
Lookup = Callable[[Sequence[Key]], Mapping[Key, Mapping[int, Any]]]
"""Returns the rows that the table has for keys, by the numbers of columns."""


@dataclass(slots=True)
class _Row:
    """A row as an event of the batch left it.

    Attributes:
        columns: what its values are of.
        origin: the key under which the table has the values that the log has not.
    """

    values: list[Any]
    columns: tuple[ValueColumn, ...]
    origin: Key
    order: int = 0


@dataclass(slots=True, kw_only=True)
class TransactionBatch:
    """Changes of one table, in the order of the log.

    Attributes:
        oid: of the table.
        keys: the numbers of the columns that tell its rows apart.
        applied: transactions that commit before this position are passed over.
        read: says how a relation's rows are parsed.
        end_lsn: the position behind the last transaction.
        transactions: how many there are.
        changes: how many rows came or went.
        is_truncated: the table was emptied, and the changes are those afterwards.
        committed_at: when the last transaction was committed.
    """

    oid: int
    keys: tuple[int, ...]
    applied: int
    read: Reader
    end_lsn: int = 0
    transactions: int = 0
    changes: int = 0
    is_truncated: bool = False
    committed_at: datetime | None = None
    _begin: Begin | None = None
    _skips: bool = False
    _relation: Relation | None = None
    _layout: RowLayout | None = None
    _takes_all: bool = True
    _key_places: tuple[int, ...] = ()
    _seen: dict[int, ValueColumn] = field(default_factory=dict)
    _rows: list[list[Any]] = field(default_factory=list)
    _parts: list[pa.Table] = field(default_factory=list)
    _last: dict[Key, _Row | None] = field(default_factory=dict)
    _open: list[tuple[Key, _Row]] = field(default_factory=list)
    _order: int = 0
    _remembers: bool = False

    def take(self, message: Message) -> None:
        """Add a message.

        Raises:
            ValidationError: a row cannot be taken over.
        """
        match message:
            case Begin(commit_lsn=lsn, microseconds=microseconds):
                self._begin = message
                self._skips = lsn < self.applied
                self.committed_at = EPOCH + timedelta(microseconds=microseconds)
            case Commit(end_lsn=end):
                if not self._skips:
                    self.end_lsn = max(self.end_lsn, end)
                    self.transactions += 1
            case Relation() if message.oid == self.oid:
                # Read once there is a row: others may be of before the table's position.
                self._relation = message
            case _ if self._skips:
                pass
            case InsertMessage() if message.oid == self.oid:
                self._upsert(self._load(message.new))
            case UpdateMessage() if message.oid == self.oid:
                self._update(message)
            case DeleteMessage() if message.oid == self.oid:
                self._delete(self._load(message.old))
            case Truncate() if self.oid in message.oids:
                self._rows, self._parts, self._open, self._last = [], [], [], {}
                self.is_truncated = True

    def table(self, lookup: Lookup) -> pa.Table | None:
        """Return the changes as rows, whose columns are named by their numbers; None without any.

        Args:
            lookup: asked for values that updates left as they were, if the log has none.

        Raises:
            ValidationError: the table has not the row that such an update is of.
        """
        self._flush()
        if self._open:
            self._close(lookup)
        if not self._parts:
            return None
        return pa.concat_tables(self._parts, promote_options="permissive")

    @property
    def columns(self) -> tuple[ValueColumn, ...]:
        """The columns that the log had, each as it was last."""
        return tuple(self._seen.values())

    # -- rows ------------------------------------------------------------------------------------

    def _follow(self, relation: Relation) -> None:
        assert self._begin is not None, "a transaction begins before its changes"
        self._flush()
        self._layout = self.read(relation, self._begin)
        columns = self._layout.columns
        self._takes_all = len(columns) == len(relation.columns)
        self._seen.update((column.number, column) for column in columns)
        numbers = [column.number for column in columns]
        self._key_places = tuple(numbers.index(key) for key in self.keys)
        # Also with whole old rows in the log: later updates may come without.
        self._remembers = self._remembers or any(
            column.number not in self.keys and _may_be_left_out(column) for column in columns
        )

    def _load(self, values: Values) -> list[Any]:
        if self._relation is not None:
            self._follow(self._relation)
            self._relation = None
        layout = self._layout
        assert layout is not None, "a relation comes before its rows"
        if not self._takes_all:
            values = tuple(values[place] for place in layout.places)
        return layout.loader.row(values)

    @property
    def _columns(self) -> tuple[ValueColumn, ...]:
        return () if self._layout is None else self._layout.columns

    def _update(self, message: UpdateMessage) -> None:
        row = self._load(message.new)
        old = None if message.old is None else self._load(message.old)
        before = self._key(row if old is None else old)
        origin = before
        if TOAST in row:
            if old is not None and message.is_old_whole:
                row = [b if a is TOAST else a for a, b in zip(row, old, strict=True)]
            elif (known := self._last.get(before)) is not None:
                row = self._fill(row, known)
                origin = known.origin
            elif before in self._last:
                raise ValidationError(f"the log updates a row that it deleted: {before}")
        if old is not None and before != self._key(row):
            self._delete(old)
        self._upsert(row, origin)

    def _fill(self, row: list[Any], known: _Row) -> list[Any]:
        """A row with the values that an earlier event of the batch left it with."""
        before = {
            column.number: value for column, value in zip(known.columns, known.values, strict=True)
        }
        filled = []
        for column, value in zip(self._columns, row, strict=True):
            if value is TOAST and column.number not in before:
                raise ValidationError(
                    f"the log has not the value of the column {column.source_name!r} of a row from "
                    "before the column came: load the table again, with --load-again"
                )
            filled.append(before[column.number] if value is TOAST else value)
        return filled

    def _key(self, row: Sequence[Any]) -> Key:
        return tuple(row[place] for place in self._key_places)

    def _upsert(self, values: list[Any], origin: Key | None = None) -> None:
        self._order += 1
        self.changes += 1
        key = self._key(values)
        is_open = origin is not None and TOAST in values
        if self._remembers or is_open:
            row = _Row(values, self._columns, key if origin is None else origin, self._order)
            self._last[key] = row
            if is_open:
                if self.is_truncated:
                    raise ValidationError(f"the log updates a row that it truncated: {key}")
                self._open.append((row.origin, row))
                return
        self._add(["u", self._order, *values])

    def _delete(self, row: list[Any]) -> None:
        self._order += 1
        self.changes += 1
        key = self._key(row)
        if self._remembers:
            self._last[key] = None
        values: list[Any] = [None] * len(row)
        for place, value in zip(self._key_places, key, strict=True):
            values[place] = value
        self._add(["d", self._order, *values])

    def _add(self, row: list[Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._parts.append(_part(self._rows, self._columns))
            self._rows = []

    def _close(self, lookup: Lookup) -> None:
        """Fill in what the log has not."""
        found = lookup(sorted({key for key, _ in self._open}, key=repr))
        by_columns: dict[tuple[ValueColumn, ...], list[list[Any]]] = {}
        for key, row in self._open:
            known = found.get(key)
            missing = [
                column.source_name
                for column, value in zip(row.columns, row.values, strict=True)
                if value is TOAST and (known is None or column.number not in known)
            ]
            if known is None or missing:
                raise ValidationError(
                    f"an update left values of {', '.join(missing)} as they were, and the table "
                    f"has no row of the key {key} that has them: load the table again, with "
                    "--load-again"
                )
            values = [
                known[column.number] if value is TOAST else value
                for column, value in zip(row.columns, row.values, strict=True)
            ]
            by_columns.setdefault(row.columns, []).append(["u", row.order, *values])
        self._parts.extend(_part(rows, columns) for columns, rows in by_columns.items())
        self._open = []


def _may_be_left_out(column: ValueColumn) -> bool:
    """Whether an update's message may lack the column's value: only long values are."""
    kind = column.type.arrow
    return pa.types.is_nested(kind) or not pa.types.is_primitive(kind)


def _part(rows: Sequence[list[Any]], columns: Sequence[ValueColumn]) -> pa.Table:
    gone = pa.array([row[0] for row in rows], pa.string())
    order = pa.array([row[1] for row in rows], pa.int64())
    arrays = arrays_of([row[2:] for row in rows], columns)
    names = [str(column.number) for column in columns]
    return pa.Table.from_arrays([gone, order, *arrays], names=[GONE, ORDER, *names])
