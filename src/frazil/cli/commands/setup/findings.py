"""What a look at this machine finds, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: what was looked at.
        state: whether it will do.
        found: what there is.
        advice: what to do; nothing where it will do.
    """

    check: str
    state: State
    found: str
    advice: str | None = None

    def __str__(self) -> str:
        return self.found if self.advice is None else f"{self.found}: {self.advice}"
