"""Changes of a table's properties and columns, as Spark tells them to a catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from frazil.errors import UnsupportedError
from frazil.spark.table import Table

_OF_PROPERTIES: Final = frozenset({"SetProperty", "RemoveProperty"})
_OF_COLUMNS: Final = frozenset(
    {"AddColumn", "DeleteColumn", "UpdateColumnType", "UpdateColumnComment"}
)


def alter(table: Any, changes: Any) -> None:
    """Change a table in one commit, or as a part of the transaction that it is in.

    Args:
        changes: Spark's `TableChange` objects.

    Raises:
        UnsupportedError: a change is of another kind; then nothing is done.
        ValidationError: there is no such column, or a property is reserved.
    """
    told = [(str(each.getClass().getSimpleName()), each) for each in changes]
    lacking = sorted({kind for kind, _ in told} - _OF_PROPERTIES - _OF_COLUMNS)
    if lacking:
        raise UnsupportedError(f"Spark asks for {', '.join(lacking)}: use ALTER TABLE")
    if isinstance(table, Table):
        with table.transaction() as transaction:
            _apply(transaction, told)
    else:
        _apply(table, told)


def _apply(table: Any, told: Sequence[tuple[str, Any]]) -> None:
    """Change a table in a transaction."""
    columns = [(kind, each) for kind, each in told if kind in _OF_COLUMNS]
    if columns:
        with table.update_schema() as update:
            for kind, each in columns:
                _change_column(update, kind, each)
    new = {str(each.property()): str(each.value()) for kind, each in told if kind == "SetProperty"}
    gone = [str(each.property()) for kind, each in told if kind == "RemoveProperty"]
    if new:
        table.set_properties(new)
    if gone:
        table.remove_properties(*gone)


def _change_column(update: Any, kind: str, change: Any) -> None:
    """Note one change in a builder."""
    name = tuple(str(part) for part in change.fieldNames())
    if kind == "AddColumn":
        update.add_column(name, str(change.dataType().sql()), doc=change.comment())
    elif kind == "DeleteColumn":
        update.delete_column(name)
    elif kind == "UpdateColumnType":
        update.update_column(name, str(change.newDataType().sql()))
    else:
        update.update_column(name, doc=str(change.newComment()))
