"""What collects changes in a `with` block, whose end commits them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self


class CommittedAtEnd(ABC):
    """Leaving the `with` block commits; an exception inside of it commits nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end(error)

    @abstractmethod
    def commit(self) -> Any:
        """Commit the changes; leaving the `with` block does this."""

    def end(self, error: BaseException | None) -> None:
        """End the block: commit, unless an error came out of it."""
        if error is None:
            self.commit()
