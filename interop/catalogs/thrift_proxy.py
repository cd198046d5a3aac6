"""A proxy before a server of Thrift, which cuts connections at calls that it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from hive_server import free_port


@dataclass(frozen=True)
class Cut:
    """A connection that breaks once.

    Attributes:
        call: at which call.
        arrives: whether the call is carried out before that.
    """

    call: str
    arrives: bool


@dataclass
class Proxy:
    """A proxy that runs.

    Attributes:
        target: the port of the server.
        port: its own.
        cuts: that are still to come, in order.
    """

    target: int
    port: int
    cuts: list[Cut] = field(default_factory=list)
    _open: list[socket.socket] = field(default_factory=list)
    _unheard: dict[socket.socket, threading.Event] = field(default_factory=dict)
    _listening: socket.socket | None = None

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Take connections from now on."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on, and end those that are there."""
        listening, self._listening = self._listening, None
        if listening is not None:
            _ended(listening)
        for each in self._open:
            _ended(each)
        self._open.clear()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self._open += [client, server]
            threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(client, server), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                # A message begins with the name of its call.
                if self.cuts and self.cuts[0].call.encode() in data[:80]:
                    cut = self.cuts.pop(0)
                    if cut.arrives:
                        self._carry_out(data, client, server)
                    break
                server.sendall(data)
        _ended(client)
        _ended(server)

    def _carry_out(self, data: bytes, client: socket.socket, server: socket.socket) -> None:
        answered = self._unheard[server] = threading.Event()
        server.sendall(data)
        client.settimeout(0.3)
        # The rest of a long message may follow.
        with suppress(TimeoutError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        answered.wait(60)

    def _answers(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 16):
                if server in self._unheard:
                    self._unheard[server].set()
                    return
                client.sendall(data)
        _ended(client)


def _ended(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def proxy(target: int) -> Iterator[Proxy]:
    """Stand before a server of this machine."""
    made = Proxy(target, free_port())
    made.start()
    try:
        yield made
    finally:
        made.stop()
