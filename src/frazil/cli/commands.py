"""All commands of `frazil`, in the order in which the help lists them."""

from __future__ import annotations

from frazil.cli import cdc, change, look, optimize, procedures, read, report, statistics, upkeep
from frazil.cli.app import main

__all__ = [
    "cdc",
    "change",
    "look",
    "main",
    "optimize",
    "procedures",
    "read",
    "report",
    "statistics",
    "upkeep",
]
