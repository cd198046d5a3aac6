"""Connections by which threads of the virtual machine call Python, closed when the threads end.

py4j gives each thread of the virtual machine that calls a connection of its own, behind which a
thread of Python waits, and keeps both for ever. A server's statements come on new threads.
"""

from __future__ import annotations

import json
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from frazil.later import later
from frazil.spark.gateway_errors import Py4JError

if TYPE_CHECKING:
    from py4j.clientserver import ClientServer
else:
    # PySpark's client alone has none of it.
    ClientServer = later("py4j.clientserver", "ClientServer")

_FEW: Final = 32
"""So many connections are kept without a look whether their threads have ended."""

_CALLERS: Final = 1_024
"""So many threads may begin to call at once. py4j lets 5: the others are heard a second later, or
three, when their systems try again."""


class CallbackConnections:
    """The connections of one virtual machine's threads.

    Of a thread its number is known alone: it may hold a session.

    Args:
        gateway: of py4j, which was called back.
    """

    def __init__(self, gateway: Any) -> None:
        self._client = gateway.java_gateway_server.getCallbackClient()
        gateway.get_callback_server().server_socket.listen(_CALLERS)
        java = gateway.jvm.java
        self._threads, self._texts = java.lang.Thread, java.util.Arrays
        self._running = java.lang.management.ManagementFactory.getThreadMXBean()
        self._known: list[tuple[int, Any]] = []
        self._most = _FEW
        self._lock = Lock()

    def add_current(self) -> None:
        """Add the connection of the thread that calls; at times close those of ended threads."""
        connection = self._client.getPerThreadConnection()
        if connection is None or not connection.isInitiatedFromClient():
            return
        number = int(self._threads.currentThread().getId())
        with self._lock:
            self._known.append((number, connection))
            if len(self._known) <= self._most:
                return
            known, self._known = self._known, []
        # The numbers of the threads that have not ended, by one text: an array has many calls.
        running = set(json.loads(self._texts.toString(self._running.getAllThreadIds())))
        left = [each for each in known if each[0] in running]
        with self._lock:
            self._known += left
            self._most = max(_FEW, 2 * len(self._known))
        for number, connection in known:
            if number not in running:
                # py4j has it among those that it may use again; closing alone leaves it there.
                self._client.connectionStopped(connection)
                connection.shutdown()


_KNOWN: Final[WeakKeyDictionary[Any, CallbackConnections]] = WeakKeyDictionary()


def add_current_connection(gateway: Any) -> None:
    """Add the connection of the thread of the virtual machine that calls.

    A gateway whose threads share connections closes those that are not used itself.
    """
    if not isinstance(gateway, ClientServer):
        return
    try:
        found = _KNOWN.get(gateway)
        if found is None:
            found = _KNOWN.setdefault(gateway, CallbackConnections(gateway))
        found.add_current()
    except (AttributeError, OSError, Py4JError):
        # What is called is answered all the same; connections are kept, as py4j does.
        return
