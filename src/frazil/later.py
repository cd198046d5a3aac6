"""Names whose modules are imported when they are first used.

A process that looks at one table should not wait for what merges rows. So a module that names much
and uses little of it at a time names what is heavy in this way:

    if TYPE_CHECKING:
        import polars as pl

        from frazil.spark.row_level.delete import Delete
    else:
        pl = later("polars")
        Delete = later("frazil.spark.row_level.delete", "Delete")

Such a name is called, asked for an attribute, or given to `isinstance` or `issubclass`, and nothing
else: it stands for what it names, and is not that. Type checkers and import contracts read the
other branch.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from frazil.installed_spark import (
    find_by_home,
    is_of_pyspark,
    lack_of_pyspark,
    refuse_old_pyspark,
)


def later(module: str, *names: str) -> Any:
    """Return what stands for a module, for a name in it, or for several in their order."""
    if not names:
        return _Later(module, None)
    found = tuple(_Later(module, name) for name in names)
    return found[0] if len(found) == 1 else found


def import_now(module: str) -> ModuleType:
    """Import a module.

    Raises:
        ConfigurationError: it needs PySpark, which is not there, is too old, or has no Spark.
    """
    try:
        found = _module_of(module)
    except ImportError as error:
        if not is_of_pyspark(error):
            raise
        refuse_old_pyspark()
        raise lack_of_pyspark(error) from error
    if module.startswith("frazil.spark"):
        refuse_old_pyspark()
    return found


def _module_of(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != "pyspark" or not find_by_home():
            raise
        return import_module(module)


class _Later:
    """Stands for a module, or for a function or class in it."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str | None) -> None:
        self._module = module
        self._name = name

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return _meaning_of(self)(*arguments, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(_meaning_of(self), name)

    def __instancecheck__(self, value: object) -> bool:
        # Of a class that nobody has imported there is no instance.
        return self._module in sys.modules and isinstance(value, _meaning_of(self))

    def __subclasscheck__(self, value: type) -> bool:
        return self._module in sys.modules and issubclass(value, _meaning_of(self))

    def __repr__(self) -> str:
        return f"later({self._module!r}, {self._name!r})"

    def __reduce__(self) -> Any:
        # Other processes get what it stands for.
        return _named_in, (self._module, self._name)


def _meaning_of(self: _Later) -> Any:
    return _named_in(self._module, self._name)


def _named_in(module: str, name: str | None) -> Any:
    found = import_now(module)
    return found if name is None else getattr(found, name)
