"""Which statistics of a column a manifest keeps, as properties write it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

_TRUNCATE = re.compile(r"truncate\(([0-9]+)\)")


@dataclass(frozen=True, slots=True)
class MetricsMode:
    """What is kept of a column: nothing, counts, or counts and bounds.

    Attributes:
        kind: ``none``, ``counts``, ``truncate`` or ``full``.
        length: of truncated bounds, in code points or bytes; 0 for the other kinds.
    """

    kind: Literal["none", "counts", "truncate", "full"]
    length: int = 0

    @property
    def has_bounds(self) -> bool:
        """Whether lower and upper bounds are kept."""
        return self.kind in ("truncate", "full")


NONE: Final = MetricsMode("none")
COUNTS: Final = MetricsMode("counts")
FULL: Final = MetricsMode("full")
TRUNCATE_16: Final = MetricsMode("truncate", 16)


def metrics_mode_of(text: str) -> MetricsMode:
    """Return the mode that a text names; ValueError where it names none."""
    lowered = text.strip().lower()
    match = _TRUNCATE.fullmatch(lowered)
    if match and int(match.group(1)) > 0:
        return MetricsMode("truncate", int(match.group(1)))
    try:
        return {"none": NONE, "counts": COUNTS, "full": FULL}[lowered]
    except KeyError:
        raise ValueError(f"{text!r} is no metrics mode") from None
