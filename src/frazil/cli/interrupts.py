"""Commands that go on until a signal ends them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType

import click


@contextmanager
def until_interrupted() -> Iterator[Event]:
    """Give an event that SIGINT and SIGTERM set; what runs is ended, and its files are removed."""
    stop = Event()

    def ask(_: int, __: FrameType | None) -> None:
        stop.set()
        raise KeyboardInterrupt

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    except KeyboardInterrupt:
        # A second signal while files are removed would leave some of them.
        click.echo("ending what runs", err=True)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
