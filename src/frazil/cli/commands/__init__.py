"""All commands of `frazil`."""

from __future__ import annotations

from frazil.cli.app import main
from frazil.cli.commands import (
    add_files,
    call,
    cdc,
    change,
    look,
    optimize,
    read,
    report,
    run,
    serve,
    sql,
    statistics,
    upkeep,
)

__all__ = [
    "add_files",
    "call",
    "cdc",
    "change",
    "look",
    "main",
    "optimize",
    "read",
    "report",
    "run",
    "serve",
    "sql",
    "statistics",
    "upkeep",
]
