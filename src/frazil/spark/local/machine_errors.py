"""What the virtual machine of Spark writes to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import Final

_KEPT: Final = 65536
_LAST_WAIT: Final = 2.0
_STDERR: Final = 2


class MachineErrors:
    """Takes what a virtual machine writes to standard error, from its start on.

    The machine takes over what standard error is at its start, and writes there before its log has
    a level. So it gets a pipe: what comes out of it is kept, and from `pass_on` on shown.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept = bytearray()
        self._shows = False
        self._reader: Thread | None = None

    @contextmanager
    def of_programs(self) -> Iterator[None]:
        """Take the errors of programs that start in the block; this one's go on as before."""
        try:
            kept = os.dup(_STDERR)
        except OSError:
            # Standard error is closed: there is nothing to take it from.
            yield
            return
        ours = sys.stderr
        stream = os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
        sys.stderr = stream if ours is sys.__stderr__ else ours
        source, target = os.pipe()
        os.dup2(target, _STDERR)
        os.close(target)
        self._reader = Thread(
            target=self._read, args=(source,), name="frazil-machine-errors", daemon=True
        )
        self._reader.start()
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            sys.stderr = ours
            stream.close()

    def hold(self) -> None:
        """Show nothing of what comes from now on."""
        with self._lock:
            self._shows = False

    def pass_on(self) -> None:
        """Write to standard error what comes from now on."""
        with self._lock:
            self._shows = True
            self._kept.clear()

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines of a machine that has ended, and of one that has not."""
        if self._reader is not None:
            self._reader.join(_LAST_WAIT)
        with self._lock:
            lines = bytes(self._kept).decode(errors="replace").splitlines()
        return [line.strip() for line in lines if line.strip()][-count:]

    def _read(self, source: int) -> None:
        with suppress(OSError):
            while piece := os.read(source, _KEPT):
                self._take(piece)
        os.close(source)

    def _take(self, piece: bytes) -> None:
        with self._lock:
            if not self._shows:
                self._kept += piece
                del self._kept[:-_KEPT]
                return
        with suppress(OSError):
            os.write(_STDERR, piece)
