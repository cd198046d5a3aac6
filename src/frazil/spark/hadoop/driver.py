"""The files of a session's stores, for processes that have no virtual machine."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener
from typing import Any, Final

from pyspark.sql import SparkSession

from frazil.errors import ConfigurationError
from frazil.spark.hadoop.wire import (
    OPERATIONS,
    UPLOAD,
    error_answer,
    parts,
    prove_as_server,
    receive,
    send,
    send_at_once,
)
from frazil.storage.stores.store import Store

PORT_SETTING: Final = "frazil.files.port"
"""Session setting: where executors ask the driver for files of ``io=hadoop``; else any port."""

Open = Callable[[str], Store]


@dataclass(frozen=True, slots=True)
class FileServer:
    """A port of this process where those who know a key read and write files.

    Attributes:
        address: host and port, as executors reach them.
        key: which they have to know.
    """

    address: tuple[str, int]
    key: bytes = field(repr=False)

    @classmethod
    def start(cls, spark: SparkSession, open_store: Open) -> FileServer:
        """Listen until this process ends, on the addresses of the session's driver.

        Raises:
            ConfigurationError: the port is none, or is taken.
        """
        settings = spark.sparkContext.getConf()
        host = settings.get("spark.driver.host") or "127.0.0.1"
        bound = settings.get("spark.driver.bindAddress") or host
        key = secrets.token_bytes(32)
        listener = _listener(bound, spark.conf.get(PORT_SETTING, "0") or "0")
        found: Any = listener.address
        threading.Thread(
            target=_accept, args=(listener, key, open_store), name="frazil-files", daemon=True
        ).start()
        return cls((host, int(found[1])), key)


def _listener(host: str, port: str) -> Listener:
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigurationError(f"{PORT_SETTING} is {port!r}: it must be a port")
    try:
        return Listener((host, int(port)), backlog=64)
    except OSError as error:
        raise ConfigurationError(
            f"the driver cannot listen on {host}:{port} for the files of executors: "
            f"{error.strerror or error}; {PORT_SETTING} names another port"
        ) from None


def _accept(listener: Listener, key: bytes, open_store: Open) -> None:
    while True:
        try:
            connection = listener.accept()
        except ConnectionError:
            continue
        except OSError:
            return
        # Who says nothing keeps only its own thread waiting.
        threading.Thread(
            target=_serve, args=(connection, key, open_store), name="frazil-files", daemon=True
        ).start()


def _serve(connection: Connection, key: bytes, open_store: Open) -> None:
    with connection, contextlib.suppress(EOFError, OSError, AuthenticationError):
        send_at_once(connection)
        prove_as_server(connection, key)
        while True:
            said, data = receive(connection)
            if said["do"] != UPLOAD:
                send(connection, *_answer(said, data, open_store))
                continue
            with _receive(connection) as local:
                send(connection, *_answer({**said, "source": local}, data, open_store))


def _answer(said: dict[str, Any], data: bytes, open_store: Open) -> tuple[dict[str, Any], bytes]:
    try:
        store = open_store(str(said["scheme"]))
        found = OPERATIONS[str(said["do"])](store, str(said["path"]), said, data)
    except Exception as error:
        return error_answer(error), b""
    return ({}, found) if isinstance(found, bytes) else ({"found": found}, b"")


@contextlib.contextmanager
def _receive(connection: Connection) -> Iterator[str]:
    """A local file, gone afterwards, of the bytes that come."""
    with tempfile.NamedTemporaryFile(prefix="frazil-hadoop-") as stream:
        for part in parts(connection):
            stream.write(part)
        stream.flush()
        yield stream.name
