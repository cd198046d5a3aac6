"""What a Hive catalog is told: where its metastores are, who asks, and how long it waits."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from frazil.catalog.pointer.hive.login import TicketUser
from frazil.errors import ConfigurationError
from frazil.format.properties.kinds import FLAG, LONG_MAX, Property, whole_number
from frazil.storage.paths import redact

UGI: Final = "ugi"
KERBEROS: Final = Property("hive.kerberos-authentication", FLAG, default=False)
KERBEROS_SERVICE: Final = "hive.kerberos-service-name"
HIVE2_COMPATIBLE: Final = Property("hive.hive2-compatible", FLAG, default=False)
CONNECT_TIMEOUT: Final = "hive.metastore.client.connection.timeout"
CALL_TIMEOUT: Final = "hive.metastore.client.socket.timeout"
ENGINE_ENABLED: Final = Property("iceberg.engine.hive.enabled", FLAG, default=False)
LOCK_ENABLED: Final = Property("iceberg.engine.hive.lock-enabled", FLAG, default=True)
KEEP_STATISTICS: Final = Property("iceberg.hive.keep.stats", FLAG, default=False)

_CHARACTERS = whole_number("characters", largest=LONG_MAX)
_MILLISECONDS = whole_number("milliseconds", smallest=1, largest=LONG_MAX)
PARAMETER_SIZE: Final = Property("iceberg.hive.table-property-max-size", _CHARACTERS, 32_672)
LOCK_TIMEOUT: Final = Property("iceberg.hive.lock-timeout-ms", _MILLISECONDS, 180_000)
LOCK_CHECK_MIN: Final = Property("iceberg.hive.lock-check-min-wait-ms", _MILLISECONDS, 50)
LOCK_CHECK_MAX: Final = Property("iceberg.hive.lock-check-max-wait-ms", _MILLISECONDS, 5_000)
LOCK_CREATION_TIMEOUT: Final = Property(
    "iceberg.hive.lock-creation-timeout-ms", _MILLISECONDS, 180_000
)
LOCK_CREATION_MIN: Final = Property("iceberg.hive.lock-creation-min-wait-ms", _MILLISECONDS, 50)
LOCK_CREATION_MAX: Final = Property("iceberg.hive.lock-creation-max-wait-ms", _MILLISECONDS, 5_000)
LOCK_HEARTBEAT: Final = Property("iceberg.hive.lock-heartbeat-interval-ms", _MILLISECONDS, 240_000)

_SINGLE: Final = (
    *(KERBEROS, HIVE2_COMPATIBLE, ENGINE_ENABLED, LOCK_ENABLED, KEEP_STATISTICS, PARAMETER_SIZE),
    *(LOCK_TIMEOUT, LOCK_CHECK_MIN, LOCK_CHECK_MAX, LOCK_CREATION_TIMEOUT, LOCK_CREATION_MIN),
    *(LOCK_CREATION_MAX, LOCK_HEARTBEAT),
)
PROPERTY_NAMES: Final = frozenset(
    {"uri", UGI, KERBEROS_SERVICE, CONNECT_TIMEOUT, CALL_TIMEOUT, *(each.name for each in _SINGLE)}
)

_PORT = 9083
_CONNECT_SECONDS = 30.0
_CALL_SECONDS = 600.0
_DURATION = re.compile(r"(\d+) *(|ms|msec|s|sec|m|min|h|hour)")
_UNITS: Final = {"ms": 0.001, "": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a metastore listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How metastores are reached.

    Attributes:
        addresses: the servers, each of which knows all tables.
        user: who asks; None leaves that to the server.
        groups: the user's.
        kerberos_service: the service's name where the servers want Kerberos.
        connect_seconds: how long a server may take to accept a connection.
        call_seconds: how long it may take to answer a call.
    """

    addresses: tuple[Address, ...]
    user: str | None
    groups: tuple[str, ...]
    kerberos_service: str | None
    connect_seconds: float
    call_seconds: float

    @classmethod
    def from_properties(cls, name: str, properties: Mapping[str, str]) -> ConnectionSettings:
        """Read them from a catalog's properties."""
        user, _, groups = properties.get(UGI, "").partition(":")
        service = properties.get(KERBEROS_SERVICE, "hive") if KERBEROS.of(properties) else None
        if service is not None and user:
            raise ConfigurationError(
                f"{UGI} and {KERBEROS.name} both say who asks: with Kerberos the ticket does, so "
                f"remove {UGI}"
            )
        return cls(
            addresses=_addresses(name, properties.get("uri", "")),
            user=user or None,
            groups=tuple(group for group in re.split("[:,]", groups) if group),
            kerberos_service=service,
            connect_seconds=_seconds(properties, CONNECT_TIMEOUT, _CONNECT_SECONDS),
            call_seconds=_seconds(properties, CALL_TIMEOUT, _CALL_SECONDS),
        )


@dataclass(frozen=True, slots=True)
class LockTimes:
    """How long a writer waits for a metastore's lock, in seconds; names and defaults are Java's."""

    timeout: float
    check_min: float
    check_max: float
    creation_timeout: float
    creation_min: float
    creation_max: float
    heartbeat: float

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> LockTimes:
        """Read them from a catalog's properties."""
        return cls(
            timeout=LOCK_TIMEOUT.of(properties) / 1000,
            check_min=LOCK_CHECK_MIN.of(properties) / 1000,
            check_max=LOCK_CHECK_MAX.of(properties) / 1000,
            creation_timeout=LOCK_CREATION_TIMEOUT.of(properties) / 1000,
            creation_min=LOCK_CREATION_MIN.of(properties) / 1000,
            creation_max=LOCK_CREATION_MAX.of(properties) / 1000,
            heartbeat=LOCK_HEARTBEAT.of(properties) / 1000,
        )


@dataclass(frozen=True, slots=True)
class TableForm:
    """How tables are written into a metastore.

    Attributes:
        engine_enabled: whether Hive reads a table, unless its ``engine.hive.enabled`` says.
        lock_enabled: whether commits lock, unless the table's ``engine.hive.lock-enabled`` says.
        hive2_compatible: no types that Hive 2 does not know.
        keep_statistics: leave to Hive what it says of its statistics.
        longest_parameter: the most characters of a parameter; 0 leaves out all optional ones.
        user: who asks, where a property says so.
        ticket_user: who asks, where a ticket of Kerberos says so.
    """

    engine_enabled: bool
    lock_enabled: bool
    hive2_compatible: bool
    keep_statistics: bool
    longest_parameter: int
    user: str | None
    ticket_user: TicketUser | None

    @property
    def owner(self) -> str:
        """The owner of new tables, databases and locks."""
        if self.user is not None:
            return self.user
        return _own_name() if self.ticket_user is None else self.ticket_user.name()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> TableForm:
        """Read it from a catalog's properties."""
        return cls(
            engine_enabled=ENGINE_ENABLED.of(properties),
            lock_enabled=LOCK_ENABLED.of(properties),
            hive2_compatible=HIVE2_COMPATIBLE.of(properties),
            keep_statistics=KEEP_STATISTICS.of(properties),
            longest_parameter=PARAMETER_SIZE.of(properties),
            user=properties.get(UGI, "").partition(":")[0] or None,
            ticket_user=TicketUser() if KERBEROS.of(properties) else None,
        )


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _addresses(name: str, uri: str) -> tuple[Address, ...]:
    found = tuple(_address(part.strip()) for part in uri.split(",") if part.strip())
    if not found:
        raise ConfigurationError(
            f"the hive catalog {name} needs the property uri: thrift://host:{_PORT}, or several "
            f"of them with commas between"
        )
    return found


def _address(text: str) -> Address:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or not text.startswith("thrift://") or parts.path.strip("/"):
        raise ConfigurationError(
            f"{redact(text)!r} is no address of a metastore: write thrift://host:port"
        )
    return Address(host, _PORT if port is None else port)


def _seconds(properties: Mapping[str, str], name: str, default: float) -> float:
    text = properties.get(name)
    if text is None:
        return default
    match = _DURATION.fullmatch(text.strip().lower())
    if match is None or int(match[1]) == 0:
        raise ConfigurationError(f"{name} is {text!r}: write a time such as 30s, 500ms or 2m")
    unit = match[2]
    return int(match[1]) * _UNITS["ms" if unit.startswith("ms") else unit[:1]]
