"""What stores raise, as Frazil's errors: one line, without a credential."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Final

from frazil.errors import AlreadyExistsError, FrazilError, MissingFileError, StorageError
from frazil.storage.paths import redact

_LONGEST_REASON: Final = 500
_DETAILS: Final = ("RequestId:", "Time:", "ErrorCode:", "Content:", "<")
_MAKING: Final = ("create", "write", "make")


def typed_error(
    verb: str, path: str, error: Exception, properties: Mapping[str, str]
) -> FrazilError:
    """Return the error to raise for what a store raised.

    Secrets of `properties`, the store's settings, are left out of the message.
    """
    shown = redact(path, properties)
    if isinstance(error, FileNotFoundError):
        what = "bucket or folder" if verb in _MAKING else "file"
        return MissingFileError(f"cannot {verb} {shown}: there is no such {what}")
    if isinstance(error, FileExistsError):
        return AlreadyExistsError(f"cannot {verb} {shown}: it exists")
    reason = getattr(error, "strerror", None) or _reason(str(error)) or type(error).__name__
    return StorageError(f"cannot {verb} {shown}: {redact(str(reason), properties)}")


def _reason(text: str) -> str:
    """What a store says in words, on one line, without the headers and the XML behind it."""
    lines = [line.strip() for line in text.strip().splitlines()]
    details = itertools.takewhile(lambda line: not line.startswith(_DETAILS), lines[1:])
    said = "; ".join(line for line in (*lines[:1], *details) if line)
    return said if len(said) <= _LONGEST_REASON else f"{said[:_LONGEST_REASON]}…"
