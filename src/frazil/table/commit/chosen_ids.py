"""Which schema, spec or order becomes the table's own: the last added one, or one by its id."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from frazil.format.changes import (
    LAST_ADDED,
    AddSnapshot,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    Update,
    apply_updates,
)
from frazil.format.metadata import TableMetadata


def with_chosen_ids(base: TableMetadata, updates: Sequence[Update]) -> tuple[Update, ...]:
    """Return the updates with ids in place of `LAST_ADDED`, where these are not the same.

    Whoever applies the updates gives out the ids. Manifests and snapshots of the same commit name
    those that were expected: if others are given out, since a schema or spec was removed
    meanwhile, the update fails. What the table has already is not added, so that there is no last
    one (a REST server refuses that).
    """
    names_ids = any(isinstance(update, AddSnapshot) for update in updates)
    return tuple(
        _chosen(base, updates, place, names_ids=names_ids) for place in range(len(updates))
    )


def _chosen(
    base: TableMetadata, updates: Sequence[Update], place: int, *, names_ids: bool
) -> Update:
    update = updates[place]
    match update:
        case SetCurrentSchema(schema_id) if schema_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: place + 1]).current_schema_id
            if names_ids or chosen in base.schemas_by_id:
                return dataclasses.replace(update, schema_id=chosen)
        case SetDefaultSpec(spec_id) if spec_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: place + 1]).default_spec_id
            if names_ids or chosen in base.specs_by_id:
                return dataclasses.replace(update, spec_id=chosen)
        case SetDefaultSortOrder(order_id) if order_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: place + 1]).default_sort_order_id
            if names_ids or chosen in base.sort_orders_by_id:
                return dataclasses.replace(update, sort_order_id=chosen)
    return update
