"""What another writer commits between a command's read and its commit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def before_the_commit(table: Any, rival: Callable[[], object]) -> None:
    """Run the rival between what the table's next commit read and its swap."""
    real = table.catalog.commit_table

    def commit_table(identifier: Any, requirements: Any, updates: Any, **base: Any) -> Any:
        table.catalog.commit_table = real
        rival()
        return real(identifier, requirements, updates, **base)

    table.catalog.commit_table = commit_table
