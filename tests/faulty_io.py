"""A store that fails at one call, or that a process does not live to see answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from frazil.catalog.protocol import Catalog
from frazil.errors import StorageError, ValidationError
from frazil.storage.files import FileIO

ERRORS: dict[str, Callable[[str], BaseException]] = {
    "typed": lambda where: StorageError(f"the store failed at {where}"),
    "refusal": lambda where: ValidationError(f"not a path: {where}"),
    "bug": RuntimeError,
    "memory": MemoryError,
    "interrupt": KeyboardInterrupt,
}


class FaultyIO(FileIO):
    """Raises once, before or after its n-th call; or, where it `stays_down`, at each from there on.

    Attributes:
        left: the calls up to the fault; None while there is none to come.
        after: whether the store does what it was asked before the fault.
        stays_down: as for a process that is killed, nothing more is done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None
        self.after = False
        self.stays_down = False
        self.error: Callable[[str], BaseException] = RuntimeError

    def __reduce__(self) -> tuple[type[FileIO], tuple[()]]:
        """Executors get a store without faults."""
        return FileIO, ()

    def _run(self, verb: str, path: str, on_disk: Any, on_store: Any) -> Any:
        due = False
        if self.left is not None:
            self.left -= 1
            due = self.left == 0
            if self.left < 0 and self.stays_down:
                raise self.error(f"{verb} {path}")
        if due and not self.after:
            raise self.error(f"{verb} {path}")
        result = super()._run(verb, path, on_disk, on_store)
        if due:
            raise self.error(f"{verb} {path}")
        return result


def watch_for_swap(catalog: Catalog, sent: list[bool]) -> None:
    """Note when the catalog is asked to commit."""
    real = catalog.commit_table

    def commit_table(identifier: Any, requirements: Any, updates: Any, **base: Any) -> Any:
        sent.append(True)
        return real(identifier, requirements, updates, **base)

    catalog.commit_table = commit_table  # type: ignore[method-assign]
