"""The sort order that new files are written in (rules 93-98)."""

from __future__ import annotations

from collections.abc import Sequence

from frazil.format.changes import LAST_ADDED, AddSortOrder, SetDefaultSortOrder, Update
from frazil.format.metadata import TableMetadata
from frazil.format.sorting import SortExpr, SortField, order_for, reuse_order
from frazil.table.commit.operation import MetadataOperation


def replace_sort_order(
    fields: Sequence[str | SortExpr | SortField], *, case_sensitive: bool = True
) -> MetadataOperation:
    """Sort new files by these keys (`"ts desc nulls last"`); by none, leave them unsorted.

    Existing files keep the order they were written in (rule 96).
    """
    wanted = tuple(fields)

    def updates(base: TableMetadata) -> list[Update]:
        order = reuse_order(
            base.sort_orders, order_for(base.schema, wanted, case_sensitive=case_sensitive)
        )
        if order.order_id == base.default_sort_order_id:
            return []
        if order.order_id in base.sort_orders_by_id:
            return [SetDefaultSortOrder(order.order_id)]
        return [AddSortOrder(order), SetDefaultSortOrder(LAST_ADDED)]

    return MetadataOperation(updates)
