"""The `frazil` command."""

from frazil.cli.commands import main

__all__ = ["main"]
