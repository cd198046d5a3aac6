"""psycopg connections whose every statement is answered within a time, or ended.

The limit is the client's own: a server that is stopped, or a network that swallows what is sent,
does not keep a limit of the server's.  And the server's would end a COMMIT that waits for a standby
as if the standby had answered.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import psycopg


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that is closed when an answer takes too long.

    Attributes:
        limit_ms: how long a statement, a COMMIT among them, may take.
    """

    limit_ms: int = 0

    def wait(self, gen: Any, *args: Any, **options: Any) -> Any:
        """Wait for an answer of the server.

        Raises OperationalError: none came in time; the connection is closed.
        """
        if not self.limit_ms:
            return super().wait(gen, *args, **options)
        try:
            return super().wait(_limited_steps(gen, self.limit_ms / 1000), *args, **options)
        except _NoAnswerError:
            self.close()
            raise _LateAnswerError(
                f"the server gave no answer within {self.limit_ms} ms (sql.statement-timeout-ms)"
            ) from None


def connect_with_limit(limit_ms: int, *args: Any, **options: Any) -> LimitedConnection:
    """A connection, as psycopg.connect makes it, whose statements have a limit in milliseconds."""
    connection = LimitedConnection.connect(*args, **options)
    connection.limit_ms = limit_ms
    return connection


class _LateAnswerError(psycopg.OperationalError):
    """The server gave no answer in time."""

    is_late = True


class _NoAnswerError(Exception):
    """The time is over."""


def _limited_steps(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The driver's steps, told to end once the time is over; it asks ten times a second."""
    end = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > end:
                raise _NoAnswerError
            wanted = gen.send(ready)
    except StopIteration as ended:
        return ended.value
