"""What a batch of changes came to."""

from __future__ import annotations

from dataclasses import dataclass

from frazil.format.html_text import ShownInNotebooks


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChangesResult(ShownInNotebooks):
    """What a batch of changes came to.

    Attributes:
        mode: ``equality-deletes`` or ``merge``; None where nothing was written.
        reason: why that mode.
        upserted: keys that have a row afterwards.
        deleted: keys that have none.
        was_applied: the table had the batch already, and nothing was changed.
    """

    mode: str | None = None
    reason: str = ""
    upserted: int = 0
    deleted: int = 0
    was_applied: bool = False

    def __repr__(self) -> str:
        if self.mode is None:
            known = "the table has the batch already" if self.was_applied else "there were none"
            return f"Changes: {known}, and nothing was written"
        return "\n".join(
            [
                f"Changes ({self.mode})",
                f"  keys   {self.upserted:,} upserted, {self.deleted:,} deleted",
                f"  why    {self.reason}",
            ]
        )
