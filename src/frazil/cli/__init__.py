"""The `frazil` command."""

from frazil.cli.app import main

__all__ = ["main"]
