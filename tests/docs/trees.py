"""Python as trees of its syntax."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path


def tree_of(text: str, where: str = "<text>") -> ast.Module:
    """The tree of a text.

    Some releases of Python count how deep a tree is for all threads at once: where garbage is
    collected while it is made, another thread may have its turn, and make a tree that counts too.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text, where)
    finally:
        if was_on:
            gc.enable()


def tree_of_file(path: Path) -> ast.Module:
    """The tree of a file."""
    return tree_of(path.read_text(encoding="utf-8"), str(path))


def trees_of(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    """The files below a folder, each with its tree."""
    for path in sorted(folder.rglob("*.py")):
        yield path, tree_of_file(path)
