"""Table metadata while updates are applied to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from frazil.errors import ValidationError
from frazil.format.metadata.table_metadata import (
    TableMetadata,
)

UNSET = -1


class MetadataState:
    """The metadata while updates are applied to it, and what the updates did so far.

    Attributes:
        base: the metadata before.
        now: the metadata so far.
        now_ms: the time of the change, unless a snapshot of it says.
        updated_ms: the time that a snapshot says.
        last_schema_id, last_spec_id, last_order_id: what "the last added" means.
        added_snapshots, set_as_main: ids of snapshots.
        removed_snapshots: whether any was removed.
    """

    def __init__(self, base: TableMetadata, now_ms: int) -> None:
        self.base = base
        self.now = base
        self.now_ms = now_ms
        self.updated_ms: int | None = None
        self.last_schema_id: int | None = None
        self.last_spec_id: int | None = None
        self.last_order_id: int | None = None
        self.added_snapshots: set[int] = set()
        self.set_as_main: set[int] = set()
        self.removed_snapshots = False
        self._checks: list[Callable[[TableMetadata], object]] = []

    def change(self, **fields: Any) -> None:
        """Set fields of the metadata."""
        self.now = replace(self.now, **fields)

    def check_now_or_at_the_end(self, check: Callable[[TableMetadata], object]) -> None:
        """Check the metadata; what does not hold yet must hold when all updates are applied.

        `check`: raises `ValidationError` where it does not hold.
        """
        try:
            check(self.now)
        except ValidationError:
            self._checks.append(check)

    def check_the_end(self) -> None:
        """Check what did not hold before; `ValidationError` where it does not hold now."""
        for check in self._checks:
            check(self.now)
