"""A terminal of the system, and what it is told."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import termios
from threading import Thread


def told_terminal(work, *, width=None):
    """Run `work` with a stream that leads to a terminal; return what the terminal got."""
    ours, theirs = pty.openpty()
    if width is not None:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    told = []

    def read():
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                return
            if not piece:
                return
            told.append(piece)

    reader = Thread(target=read)
    reader.start()
    with open(theirs, "w", buffering=1, encoding="utf-8") as stream:
        work(stream)
    reader.join(20)
    os.close(ours)
    return b"".join(told).decode()
