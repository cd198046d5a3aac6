"""A terminal of the system, and what it is told."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from threading import Thread
from typing import Final

# Linux may lose what a terminal has not passed on when its last writer closes it.
_END: Final = "\x05the end\x05"


def told_terminal(work, *, width=None):
    """Run `work` with a stream that leads to a terminal; return what the terminal got."""
    ours, theirs = pty.openpty()
    if width is not None:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    told = bytearray()

    def read():
        while not told.endswith(_END.encode()):
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            told.extend(piece)

    reader = Thread(target=read)
    reader.start()
    with open(theirs, "w", buffering=1, encoding="utf-8") as stream:
        try:
            work(stream)
        finally:
            stream.write(_END)
            stream.flush()
            reader.join(20)
    os.close(ours)
    return told.decode().removesuffix(_END)
