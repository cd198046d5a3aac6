"""What the tests of the REST catalog share."""

from __future__ import annotations

from typing import Final

QUICK_CHECKS: Final = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
}
"""Lost answers are asked for twice, at once."""
