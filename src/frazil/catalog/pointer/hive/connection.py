"""Connections to one of several metastores: kept, one for each call at a time, made anew."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from frazil.catalog.outcome import Sending
from frazil.catalog.pointer.hive.login import AnonymousSocket, kerberos_transport, open_transport
from frazil.catalog.pointer.hive.settings import Address, ConnectionSettings
from frazil.errors import AccessDeniedError, ConfigurationError, StorageError

Result = TypeVar("Result")
# An AccessDeniedError is an OSError too, and is looked for before these.
_BROKEN: Final = (TTransportException, TProtocolException, OSError, EOFError)


class UnansweredError(Exception):
    """A call was sent and its answer is not known; it stays inside this package."""


class AnsweredError(Exception):
    """What a metastore answers instead of a result; it stays inside this package.

    Attributes:
        message: in the server's words.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class NotThereError(AnsweredError):
    """What was named is not there."""


class AlreadyThereError(AnsweredError):
    """The name is taken."""


class RefusedError(AnsweredError):
    """The metastore refuses it before it changes anything."""


_ANSWERS: Final[dict[str, type[AnsweredError]]] = {
    "NoSuchObjectException": NotThereError,
    "UnknownDBException": NotThereError,
    "AlreadyExistsException": AlreadyThereError,
    "InvalidObjectException": RefusedError,
    "InvalidOperationException": RefusedError,
}


def thrift_types() -> Any:
    """Return the module of the metastore's structures."""
    return _module("ttypes")


@dataclass(frozen=True, slots=True)
class MetastoreConnection:
    """A connection that was opened.

    Attributes:
        address: the server's.
        client: sends calls over it.
        transport: beneath the client.
    """

    address: Address
    client: Any
    transport: Any


class Metastores:
    """Calls of whichever server answers.

    Each call has a connection for itself, so that no slow one keeps heartbeats from the server.
    `UnansweredError` and `AnsweredError` are for this package alone, which makes of them what they
    mean for the change.
    """

    def __init__(self, name: str, settings: ConnectionSettings) -> None:
        self._name = name
        self._settings = settings
        self._service = _module("ThriftHiveMetastore")
        self._lock = threading.Lock()
        self._free: list[MetastoreConnection] = []
        self._address = settings.addresses[0]

    def read(self, call: Callable[[Any], Result]) -> Result:
        """Return what a call gives that may be sent again, to another server if one broke.

        Raises AccessDeniedError: no server lets us in; StorageError: no server answers, or it
        answers with an error.
        """
        try:
            return self.repeat(call)
        except AnsweredError as error:
            raise self._error_of_answer(error) from None

    def find(self, call: Callable[[Any], Result]) -> Result | None:
        """Return what `read` gives; None where what the call names is not there.

        Raises StorageError where no server answers, or one answers with another error.
        """
        try:
            return self.repeat(call)
        except NotThereError:
            return None
        except AnsweredError as error:
            raise self._error_of_answer(error) from None

    def repeat(self, call: Callable[[Any], Result]) -> Result:
        """Return what a call gives that may be sent again.

        Raises AccessDeniedError: no server lets us in; AnsweredError: the metastore answers with an
        error; StorageError: no server answers.
        """
        tries = len(self._settings.addresses) + 1
        for left in reversed(range(tries)):
            connection = self._unused_connection()
            try:
                return self._send_call(call, connection)
            except AccessDeniedError:
                raise
            except _BROKEN as error:
                if not left:
                    raise self._failure(connection, error) from None
        raise AssertionError("unreachable")

    def change(self, call: Callable[[Any], Result], sending: Sending | None = None) -> Result:
        """Return what a call gives that is sent once.

        Raises AnsweredError: the metastore answers with an error; AccessDeniedError: no server lets
        us in, and nothing was changed; StorageError: no server can be reached, and nothing was
        sent; UnansweredError: it was sent and no answer came.
        """
        connection = self._unused_connection()
        was_begun = sending is not None and sending.is_begun
        if sending is not None:
            sending.begin()
        try:
            return self._send_call(call, connection)
        except AccessDeniedError as error:
            if error.__cause__ is not None:
                # The connection broke, and may have carried the call out before.
                raise UnansweredError(str(error)) from None
            if sending is not None and not was_begun:
                sending.refute()
            raise
        except _BROKEN as error:
            raise UnansweredError(str(self._failure(connection, error))) from None

    def close(self) -> None:
        """End the connections; the next call makes another."""
        with self._lock:
            ended, self._free = self._free, []
        for connection in ended:
            connection.transport.close()

    def _send_call(self, call: Callable[[Any], Result], connection: MetastoreConnection) -> Result:
        is_kept = False
        try:
            result = call(connection.client)
            is_kept = True
            return result
        except AccessDeniedError:
            raise
        except _BROKEN:
            # Others to the same server may be dead too, and silent.
            self.close()
            raise
        except TException as error:
            # An error that the server answers leaves the connection as it was.
            is_kept = True
            answer = _ANSWERS.get(type(error).__name__, AnsweredError)
            raise answer(str(getattr(error, "message", None) or error)) from None
        finally:
            if is_kept:
                with self._lock:
                    self._free.append(connection)
            else:
                connection.transport.close()

    def _unused_connection(self) -> MetastoreConnection:
        """Return a connection that nobody else uses."""
        while True:
            with self._lock:
                if not self._free:
                    break
                kept = self._free.pop()
            # A server that went meanwhile has closed it.
            if kept.transport.isOpen():
                return kept
            kept.transport.close()
        others = [each for each in self._settings.addresses if each != self._address]
        failures, is_denied = [], False
        for address in (self._address, *others):
            try:
                with self._open_transport(address) as transport:
                    client = self._service.Client(TBinaryProtocolAccelerated(transport))
                    if self._settings.user is not None:
                        client.set_ugi(self._settings.user, list(self._settings.groups))
            except (AccessDeniedError, *_BROKEN) as error:
                failures.append(f"{address}: {error}")
                is_denied |= isinstance(error, AccessDeniedError)
                continue
            self._address = address
            return MetastoreConnection(address, client, transport)
        reasons = "; ".join(failures)
        if is_denied:
            raise AccessDeniedError(
                f"no metastore of the hive catalog {self._name} is open: {reasons}"
            )
        raise StorageError(
            f"no metastore of the hive catalog {self._name} can be reached: {reasons}"
        )

    @contextmanager
    def _open_transport(self, address: Address) -> Iterator[Any]:
        socket = TSocket(address.host, address.port, socket_keepalive=True)
        socket.setTimeout(self._settings.connect_seconds * 1000)
        service = self._settings.kerberos_service
        if service is None:
            transport = TBufferedTransport(AnonymousSocket(socket))
        else:
            transport = kerberos_transport(socket, address.host, service)
        try:
            open_transport(transport)
            socket.setTimeout(self._settings.call_seconds * 1000)
            yield transport
        except BaseException:
            transport.close()
            raise

    def _error_of_answer(self, error: AnsweredError) -> StorageError:
        return StorageError(
            f"the metastore {self._address} of the hive catalog {self._name} failed: "
            f"{error.message}"
        )

    def _failure(self, connection: MetastoreConnection, error: BaseException) -> StorageError:
        return StorageError(f"the metastore {connection.address} gave no answer: {error}")


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"pymetastore.hive_metastore.{name}")
    except ImportError:
        raise ConfigurationError(
            "a catalog of the type hive needs pymetastore: pip install frazil[hive]"
        ) from None
