"""Test cases, and the circle of each: what runs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CIRCLES = ("test", "check")
"""Circles that are to find faults, the first first; `make soak` has the rest."""
ROOT = Path(__file__).resolve().parents[2]
PLUGINS = (ROOT / "scripts", ROOT / "tests")
"""Where this package lies, and what it uses of the tests: `ci_share` and `rooms`."""
SERVERS = {"spark", "connect_url", "postgres", "logical", "s3", "glue"}
"""Fixtures and marks of cases for which a server starts first."""


@dataclass(frozen=True)
class Case:
    """One case as it once ran.

    Attributes:
        id: pytest's.
        circle: what runs it: `test`, `check` or `soak`.
        seconds: of the case, without the start of what many cases share.
        server: whether Spark or another server starts for it.
    """

    id: str
    circle: str
    seconds: float
    server: bool

    @property
    def file(self) -> str:
        """The path of its module."""
        return self.id.partition("::")[0]
