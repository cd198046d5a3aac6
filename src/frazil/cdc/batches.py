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
Reader = Callable[[Relation], tuple[Sequence[ValueColumn], RowLoader]]
"""Says which columns of a relation are taken over, and how its rows are parsed."""
Lookup = Callable[[Sequence[Key]], Mapping[Key, Mapping[str, Any]]]
"""Returns the rows that the table has for keys."""


@dataclass(slots=True)
class _Open:
    """A row with values that the log does not hold, which the table has under a key."""

    key: Key
    row: list[Any]
    order: int


@dataclass(slots=True, kw_only=True)
class TransactionBatch:
    """Changes of one table, in the order of the log.

    Attributes:
        oid: of the table.
        keys: the columns that tell its rows apart.
        has_old_rows: the log has all values of the row before (replica identity full).
        applied: transactions that commit before this position are passed over.
        read: says how a relation's rows are parsed.
        end_lsn: the position behind the last transaction.
        transactions: how many there are.
        changes: how many rows came or went.
        is_truncated: the table was emptied, and the changes are those afterwards.
        committed_at: when the last transaction was committed.
    """

    oid: int
    keys: tuple[str, ...]
    has_old_rows: bool
    applied: int
    read: Reader
    end_lsn: int = 0
    transactions: int = 0
    changes: int = 0
    is_truncated: bool = False
    committed_at: datetime | None = None
    _skips: bool = False
    _columns: tuple[ValueColumn, ...] = ()
    _places: tuple[int, ...] = ()
    _loader: RowLoader | None = None
    _rows: list[list[Any]] = field(default_factory=list)
    _parts: list[pa.Table] = field(default_factory=list)
    _last: dict[Key, list[Any] | None] = field(default_factory=dict)
    _open: list[tuple[tuple[ValueColumn, ...], _Open]] = field(default_factory=list)
    _origin: dict[int, Key] = field(default_factory=dict)
    _order: int = 0
    _remembers: bool = False

    def take(self, message: Message) -> None:
        """Add a message.

        Raises:
            ValidationError: a row cannot be taken over.
        """
        match message:
            case Begin(commit_lsn=lsn, microseconds=microseconds):
                self._skips = lsn < self.applied
                self.committed_at = EPOCH + timedelta(microseconds=microseconds)
            case Commit(end_lsn=end):
                if not self._skips:
                    self.end_lsn = max(self.end_lsn, end)
                    self.transactions += 1
            case Relation() if message.oid == self.oid:
                self._flush()
                columns, self._loader = self.read(message)
                self._columns = tuple(columns)
                names = [column.name for column in columns]
                self._places = tuple(names.index(key) for key in self.keys)
                self._remembers = not self.has_old_rows and any(
                    column.name not in self.keys and _may_be_left_out(column) for column in columns
                )
            case _ if self._skips:
                pass
            case InsertMessage() if message.oid == self.oid:
                self._upsert(self._loaded(message.new))
            case UpdateMessage() if message.oid == self.oid:
                self._update(message)
            case DeleteMessage() if message.oid == self.oid:
                self._delete(self._loaded(message.old))
            case Truncate() if self.oid in message.oids:
                self._rows, self._parts, self._open = [], [], []
                self._last, self._origin = {}, {}
                self.is_truncated = True
            case _:
                pass

    def table(self, lookup: Lookup) -> pa.Table | None:
        """Return the changes as rows; None without any.

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
        """The columns that the log has at the end of the batch."""
        return self._columns

    # -- rows ------------------------------------------------------------------------------------

    def _loaded(self, values: Values) -> list[Any]:
        assert self._loader is not None, "a relation comes before its rows"
        return self._loader.row(values)

    def _update(self, message: UpdateMessage) -> None:
        row = self._loaded(message.new)
        old = None if message.old is None else self._loaded(message.old)
        before = self._key(row if old is None else old)
        origin = before
        if TOAST in row:
            known = old if message.is_old_whole else self._last.get(before)
            if known is not None:
                origin = self._origin.get(id(known), before)
                row = [b if a is TOAST else a for a, b in zip(row, known, strict=True)]
            elif before in self._last:
                raise ValidationError(f"the log updates a row that it deleted: {before}")
        if old is not None and before != self._key(row):
            self._delete(old)
        self._upsert(row, origin)

    def _key(self, row: Sequence[Any]) -> Key:
        return tuple(row[place] for place in self._places)

    def _upsert(self, row: list[Any], origin: Key | None = None) -> None:
        self._order += 1
        self.changes += 1
        key = self._key(row)
        if self._remembers:
            self._last[key] = row
        if origin is not None and TOAST in row:
            if self.is_truncated:
                raise ValidationError(f"the log updates a row that it truncated: {key}")
            # Kept, so that the address of the list stays its own.
            self._origin[id(row)] = origin
            self._open.append((self._columns, _Open(origin, row, self._order)))
            return
        self._add(["u", self._order, *row])

    def _delete(self, row: list[Any]) -> None:
        self._order += 1
        self.changes += 1
        key = self._key(row)
        if self._remembers:
            self._last[key] = None
        values: list[Any] = [None] * len(row)
        for place, value in zip(self._places, key, strict=True):
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
        found = lookup(sorted({one.key for _, one in self._open}, key=repr))
        by_columns: dict[tuple[ValueColumn, ...], list[list[Any]]] = {}
        for columns, one in self._open:
            known = found.get(one.key)
            if known is None:
                raise ValidationError(
                    f"an update left values as they were, and the table has no row of the key "
                    f"{one.key} that has them: load the table again, with --load-again"
                )
            row = [
                known[column.name] if value is TOAST else value
                for column, value in zip(columns, one.row, strict=True)
            ]
            by_columns.setdefault(columns, []).append(["u", one.order, *row])
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
    names = [column.name for column in columns]
    return pa.Table.from_arrays([gone, order, *arrays], names=[GONE, ORDER, *names])
