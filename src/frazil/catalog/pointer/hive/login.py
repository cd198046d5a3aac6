"""Logins at a metastore: by a ticket of Kerberos, or none at all."""

from __future__ import annotations

import importlib
from socket import create_connection
from struct import pack
from typing import Any, Final

from thrift.transport.TTransport import TSaslClientTransport, TTransportException

from frazil.errors import AccessDeniedError, ConfigurationError

_MECHANISM: Final = "GSSAPI"
_MOST_BYTES: Final = 1 << 30
"""Of one answer, as Java's client takes them."""
_REFUSALS: Final = (b"\x03", b"\x04")
"""How an answer of SASL begins that ends a connection; one of Thrift begins otherwise."""
_QUESTION: Final = 5.0
"""Seconds for the question whether a server wants a login."""
_NO_KDC: Final = -1765328228
_ADVICE: Final = {
    -1765328243: "take a ticket with kinit, or name a keytab of the user in KRB5_CLIENT_KTNAME",
    -1765328189: "take a ticket with kinit, or name a keytab of the user in KRB5_CLIENT_KTNAME",
    720896: "take a new ticket with kinit, or name a keytab of the user in KRB5_CLIENT_KTNAME",
    -1765328352: "take a new ticket with kinit, or name a keytab of the user in KRB5_CLIENT_KTNAME",
    -1765328377: (
        "write the server's name in uri as its principal has it, and set "
        "hive.kerberos-service-name to the principal's part before that"
    ),
    -1765328230: "name the realm's servers in krb5.conf, which KRB5_CONFIG may name",
    -1765328347: "set the clock of this machine",
}
"""What to do, by the codes of Kerberos."""


class TicketUser:
    """The user whose ticket is at hand, or was before it ended: connections outlive it."""

    def __init__(self) -> None:
        self._last: str | None = None

    def name(self) -> str:
        """Return the user's name, without host and realm."""
        kerberos = _module("kerberos")
        try:
            # Which service it would be for does not matter: nobody is asked.
            _, context = kerberos.authGSSClientInit("hive@localhost")
            kerberos.authGSSClientInquireCred(context)
            principal = str(kerberos.authGSSClientUserName(context))
        except kerberos.KrbError as error:
            if self._last is None:
                reason = _advice_for(error)
                raise AccessDeniedError(f"no ticket of Kerberos is at hand: {reason}") from None
            return self._last
        self._last = principal.partition("@")[0].partition("/")[0]
        return self._last


def kerberos_transport(socket: Any, host: str, service: str) -> Any:
    """Return a transport that begins with a login by the ticket at hand."""
    _module("puresasl.client")
    _module("kerberos")
    transport = TSaslClientTransport(
        socket, host=host, service=service, mechanism=_MECHANISM, max_frame_size=_MOST_BYTES
    )
    transport.sasl = _Login(transport.sasl, f"{service}/{host}")
    return transport


def open_transport(transport: Any) -> None:
    """Open a transport; one that logs in does so.

    Raises AccessDeniedError: there is no ticket, or the server refuses it; TTransportException: the
    server or the KDC cannot be reached.
    """
    login = getattr(transport, "sasl", None)
    try:
        transport.open()
    except AccessDeniedError:
        raise
    except (TTransportException, OSError, EOFError) as error:
        if login is None or not login.is_begun:
            raise
        if getattr(error, "type", None) == TTransportException.NOT_OPEN:
            raise AccessDeniedError(
                f"the metastore refuses the ticket for {login.principal}: {error}; look into its "
                f"log, and whether its keytab is that of {login.principal}"
            ) from None
        raise TTransportException(
            TTransportException.NOT_OPEN,
            f"{error}, when asked for a login by Kerberos; where it wants none, remove "
            f"hive.kerberos-authentication",
        ) from None


class AnonymousSocket:
    """A socket without a login, which finds out whether that is why no answer comes."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._is_answered = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def read(self, size: int) -> bytes:
        """Read at most that many bytes.

        Raises AccessDeniedError where the server wants a login; its cause is the broken connection
        where the server has not said so on this one.
        """
        try:
            found = bytes(self._socket.read(size))
        except (TTransportException, OSError) as error:
            if not self._is_answered and self._wants_login():
                raise self._denial() from error
            raise
        if not self._is_answered and found[:1] in _REFUSALS:
            raise self._denial()
        self._is_answered = True
        return found

    def _wants_login(self) -> bool:
        """Whether the server knows what SASL is: it refuses a mechanism that there is not."""
        try:
            with create_connection((self._socket.host, self._socket.port), _QUESTION) as asked:
                asked.sendall(pack(">BI", TSaslClientTransport.START, 4) + b"NONE")
                return asked.recv(1) in _REFUSALS
        except OSError:
            return False

    def _denial(self) -> AccessDeniedError:
        return AccessDeniedError(
            f"the metastore {self._socket.host}:{self._socket.port} wants a login by Kerberos: set "
            f"hive.kerberos-authentication=true"
        )


class _Login:
    """A client of SASL whose errors are Frazil's, and Thrift's."""

    mechanism: Final = _MECHANISM

    def __init__(self, client: Any, principal: str) -> None:
        self._client = client
        self.principal = principal
        self.is_begun = False

    @property
    def complete(self) -> bool:
        return bool(self._client.complete)

    def process(self, challenge: bytes | None = None) -> bytes:
        self.is_begun = True
        try:
            return bytes(self._client.process(challenge) or b"")
        except Exception as error:
            if _code(error) == _NO_KDC:
                raise TTransportException(TTransportException.UNKNOWN, _reason_of(error)) from None
            raise AccessDeniedError(
                f"no login by Kerberos as a client of {self.principal}: {_advice_for(error)}"
            ) from None

    def wrap(self, data: bytes) -> bytes:
        return self._process(self._client.wrap, data)

    def unwrap(self, data: bytes) -> bytes:
        return self._process(self._client.unwrap, data)

    def dispose(self) -> None:
        self._client.dispose()

    def _process(self, work: Any, data: bytes) -> bytes:
        try:
            return bytes(work(data))
        except Exception as error:
            raise TTransportException(TTransportException.UNKNOWN, _reason_of(error)) from None


def _advice_for(error: BaseException) -> str:
    return f"{_reason_of(error)}; {_ADVICE.get(_code(error), 'klist shows the tickets at hand')}"


def _reason_of(error: BaseException) -> str:
    return _cause(error)[0]


def _code(error: BaseException) -> int:
    return _cause(error)[1]


def _cause(error: BaseException) -> tuple[str, int]:
    """What Kerberos says and its code: it gives two, of which the exact one may say nothing."""
    match error.args:
        case ((str(), int()), (str() as message, int() as code)) if code < 0:
            return message, code
        case ((str() as message, int() as code), *_):
            return message, code
    return str(error), 0


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigurationError(
            f"hive.kerberos-authentication needs a client of Kerberos ({error}): "
            f"pip install frazil[hive-kerberos]"
        ) from None
