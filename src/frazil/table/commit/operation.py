"""What a change of a table is: a pure function from metadata to requirements and updates.

A commit (`frazil.table.commit.loop`) runs an operation against the newest metadata, hands what it
returns to the catalog, and runs it again on newer metadata when another writer was first.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from frazil.format.changes import (
    LAST_ADDED,
    AddSnapshot,
    AssignUUID,
    Requirement,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    Update,
    apply_updates,
)
from frazil.format.metadata import TableMetadata
from frazil.table.commit.requirements import requirements_for


@dataclass(frozen=True, slots=True)
class Changes:
    """What one run of an operation asks of the catalog.

    Attributes:
        requirements: what must still hold of the base when the pointer is swapped.
        updates: what changes, in order.
        reads: those of the requirements that what was read asks for, whatever is changed.
    """

    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    reads: tuple[Requirement, ...] = ()

    @classmethod
    def of(
        cls, base: TableMetadata, updates: Sequence[Update], reads: Sequence[Requirement] = ()
    ) -> Changes:
        """The updates with the requirements that they, and what was read, put on their base.

        A table of version 1 without a uuid gets one along with them, as the Java runtime does it:
        the next commit can then ask whether it is the same table.
        """
        chosen = with_chosen_ids(base, updates)
        is_named = base.table_uuid is not None or any(isinstance(u, AssignUUID) for u in chosen)
        if chosen and not is_named:
            chosen = (AssignUUID(str(uuid.uuid4())), *chosen)
        asked = (*requirements_for(base, chosen), *reads)
        return cls(tuple(dict.fromkeys(asked)), chosen, tuple(reads))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return not self.updates


class Operation(Protocol):
    """A change that can be run again on newer metadata.

    `changes` may write files that only this operation refers to (manifests, manifest lists); the
    last three methods let the commit say how it ended, so that such files are kept or removed.
    """

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the requirements and updates that apply this operation to `base`.

        `committed`: the table as others see it, where `base` has earlier steps of a transaction
        that nobody else sees; the same as `base` unless given.
        Raises ConflictError: when what was committed since contradicts the operation; not retried.
        """
        ...

    def before_another(self) -> None:
        """Hear that another operation of the same commit builds on this one's result.

        What a later try adds to the result beside what the first one did would go unseen there.
        """
        ...

    @property
    def made_snapshots(self) -> frozenset[int]:
        """The ids of the snapshots that the operation makes, or makes a branch's head."""
        ...

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether the last changes are part of `metadata`; None where that cannot be told."""
        ...

    def on_committed(self, metadata: TableMetadata) -> None:
        """Remove what earlier attempts wrote and the committed metadata does not use."""
        ...

    def on_abandoned(self) -> None:
        """Remove everything that this operation wrote: it is not part of the table."""
        ...


class WritesNothing:
    """What an operation that writes no files has to say of how a commit ended."""

    def before_another(self) -> None:
        """Nothing is added later."""

    @property
    def made_snapshots(self) -> frozenset[int]:
        """None."""
        return frozenset()

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Not known: other writers may have made the same change, or there is nothing to see."""
        return None

    def on_committed(self, metadata: TableMetadata) -> None:
        """Nothing was written."""

    def on_abandoned(self) -> None:
        """Nothing was written."""


class MetadataOperation(WritesNothing):
    """An operation that writes no files: a function from metadata to updates."""

    def __init__(self, updates: Callable[[TableMetadata], Sequence[Update]]) -> None:
        self._updates = updates

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the updates with their requirements."""
        return Changes.of(base, self._updates(base))


class CompositeOperation:
    """Several operations as one: each is run on the result of those before it."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self._operations = tuple(operations)

    def changes(self, base: TableMetadata, *, committed: TableMetadata | None = None) -> Changes:
        """Return the updates of all operations, with requirements on the common base."""
        others_see = base if committed is None else committed
        updates: list[Update] = []
        reads: list[Requirement] = []
        current = base
        for operation in self._operations:
            step = operation.changes(current, committed=others_see)
            current = apply_updates(current, step.updates)
            updates.extend(step.updates)
            reads.extend(step.reads)
        return Changes.of(base, updates, reads)

    def before_another(self) -> None:
        """Tell every part."""
        for operation in self._operations:
            operation.before_another()

    @property
    def made_snapshots(self) -> frozenset[int]:
        """Those of all parts."""
        return frozenset().union(*(operation.made_snapshots for operation in self._operations))

    def is_in(self, metadata: TableMetadata) -> bool | None:
        """Whether the parts that can tell are all part of `metadata`."""
        known = [
            answer
            for operation in self._operations
            if (answer := operation.is_in(metadata)) is not None
        ]
        return all(known) if known else None

    def on_committed(self, metadata: TableMetadata) -> None:
        """Tell every part."""
        for operation in self._operations:
            operation.on_committed(metadata)

    def on_abandoned(self) -> None:
        """Tell every part."""
        for operation in self._operations:
            operation.on_abandoned()


# -- ids in place of the last added ----------------------------------------------------------------


def with_chosen_ids(base: TableMetadata, updates: Sequence[Update]) -> tuple[Update, ...]:
    """Return the updates with ids in index of `LAST_ADDED`, where these are not the same.

    Whoever applies the updates gives out the ids. Manifests and snapshots of the same commit name
    those that were expected: if others are given out, since a schema or spec was removed
    meanwhile, the update fails. What the table has already is not added, so that there is no last
    one (a REST server refuses that).
    """
    names_ids = any(isinstance(update, AddSnapshot) for update in updates)
    return tuple(
        _with_chosen_id(base, updates, index, names_ids=names_ids) for index in range(len(updates))
    )


def _with_chosen_id(
    base: TableMetadata, updates: Sequence[Update], index: int, *, names_ids: bool
) -> Update:
    update = updates[index]
    match update:
        case SetCurrentSchema(schema_id) if schema_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: index + 1]).current_schema_id
            if names_ids or chosen in base.schemas_by_id:
                return dataclasses.replace(update, schema_id=chosen)
        case SetDefaultSpec(spec_id) if spec_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: index + 1]).default_spec_id
            if names_ids or chosen in base.specs_by_id:
                return dataclasses.replace(update, spec_id=chosen)
        case SetDefaultSortOrder(order_id) if order_id == LAST_ADDED:
            chosen = apply_updates(base, updates[: index + 1]).default_sort_order_id
            if names_ids or chosen in base.sort_orders_by_id:
                return dataclasses.replace(update, sort_order_id=chosen)
    return update
