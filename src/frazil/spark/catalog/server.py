"""Spark Connect and JDBC for clients that know nothing of Frazil."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.later import later
from frazil.spark.catalog.health import OK
from frazil.spark.catalog.sessions import (
    Attach,
    forget_served,
    is_pinned,
    serve_sessions,
    served_place,
    served_sessions,
)
from frazil.spark.catalog.shutdown import Shutdown
from frazil.spark.catalog.thrift.service import entries, has_statements, list_lakes
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.plans.machine import Machine, machine_of, value_of

if TYPE_CHECKING:
    from frazil.spark.catalog.connect.interception import answer_requests
else:
    answer_requests = later("frazil.spark.catalog.connect.interception", "answer_requests")

_TOKEN: Final = "spark.connect.authenticate.token"  # noqa: S105 The name of a setting.

_TRACES: Final = "spark.sql.connect.serverStacktrace.enabled"

_THRIFT_LOGINS: Final = ("LDAP", "KERBEROS")
_THRIFT_LOGIN: Final = "spark.hive.server2.authentication"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkListening:
    """Where clients are answered.

    Attributes:
        host: the address.
        connect: the port of Spark Connect; None where it is not served.
        thrift: the port of JDBC and ODBC; None where it is not served.
        health: the port that says by HTTP whether all is well; None where none does.
        token: what clients of Connect have to show.
        settings: of Spark, as the user gave them.
    """

    host: str = "127.0.0.1"
    connect: int | None = None
    thrift: int | None = None
    health: int | None = None
    token: str | None = None
    settings: Mapping[str, str]

    def check(self) -> None:
        """Check that other machines have to say who they are.

        Raises:
            ConfigurationError: they would not, nothing is served, or two have one port.
        """
        if self.connect is None and self.thrift is None:
            raise ConfigurationError(
                "nothing is served: give a port of Connect, of Thrift, or both"
            )
        ports = [each for each in (self.connect, self.thrift, self.health) if each is not None]
        if len(ports) > len(set(ports)):
            raise ConfigurationError(f"the ports {ports} are not each of one server alone")
        if self.is_loopback:
            return
        if self.connect is not None and not self.token:
            raise ConfigurationError(
                f"on {self.host} whoever reaches the port could run code as this user: give "
                "Connect a token, and a proxy that ends TLS before it"
            )
        if self.thrift is not None and self.thrift_login not in _THRIFT_LOGINS:
            raise ConfigurationError(
                f"on {self.host} whoever reaches the port could run code as this user: set "
                f"{_THRIFT_LOGIN} to LDAP or KERBEROS, and what that needs"
            )

    @property
    def thrift_login(self) -> str:
        """How clients of Thrift say who they are."""
        return self.settings.get(_THRIFT_LOGIN, "NONE").upper()

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine are answered."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def spark_settings(self) -> dict[str, str]:
        """The settings that a session needs before it starts.

        The token is none of them: whoever has a login on this machine sees with what a virtual
        machine was started.
        """
        found = {"spark.sql.catalogImplementation": "in-memory", **self.settings}
        if self.connect is not None:
            # Of what a client asks by methods the traces tell how Spark calls Python.
            found.setdefault(_TRACES, "false")
            found["spark.connect.grpc.binding.address"] = self.host
            found["spark.connect.grpc.binding.port"] = str(self.connect)
        if self.thrift is not None:
            found["spark.hive.server2.thrift.bind.host"] = self.host
            found["spark.hive.server2.thrift.port"] = str(self.thrift)
        return found


class SparkServer:
    """A driver that answers clients, whose sessions have lakes.

    Raises:
        ConfigurationError: see `SparkListening.check`.
        UnsupportedError: threads are not pinned.
    """

    def __init__(self, spark: SparkSession, attach: Attach, listening: SparkListening) -> None:
        listening.check()
        if not is_pinned():
            raise UnsupportedError(
                "with PYSPARK_PIN_THREAD=false Spark calls Python in threads of no statement: "
                "leave it out to serve Spark"
            )
        self._spark = spark
        self._machine: Machine = machine_of(spark)
        self._listening = listening
        self._thrift: Any = None
        self._operations: Any = None
        self._shutdown = Shutdown()
        self._thrift_thread: Any = None
        self._missing: dict[str, float] = {}
        serve_sessions(spark, attach)

    def start(self) -> None:
        """Answer clients from now on.

        Raises:
            ConfigurationError: a port is taken, or this Spark has no such server.
        """
        session: Any = self._spark
        classes = self._machine.jvm.org.apache.spark.sql
        if self._listening.connect is not None:
            context = session.sparkContext._jsc.sc()
            if self._listening.token:
                context.conf().set(_TOKEN, self._listening.token)
            self._connect.start(context)
            answer_requests(self._machine, served_place, self._shutdown)
        if self._listening.thrift is not None:
            context = session._jsparkSession.newSession().sqlContext()
            for name in ("bind.host", "port"):
                key = f"hive.server2.thrift.{name}"
                context.setConf(key, self._listening.spark_settings[f"spark.{key}"])
            thrift = classes.hive.thriftserver.HiveThriftServer2
            self._thrift = found = thrift.startWithContext(context)
            if self._listening.thrift_login != "KERBEROS":
                # There the processor that answers a call is what knows the user.
                list_lakes(self._machine, found, self._shutdown)
            self._thrift_thread = value_of(value_of(found, "thriftCLIService"), "serverThread")
            for name in ("cliService", "sessionManager", "sparkSqlOperationManager"):
                found = value_of(found, name)
            self._operations = found

    def forget_closed(self, *, after: float = 60.0) -> None:
        """Drop what is kept of sessions that are closed, and roll back what they have begun.

        Args:
            after: how many seconds a session has to be missing: it may have a statement before
                its server knows it.
        """
        now, live = time.monotonic(), self._live_sessions()
        gone = served_sessions() - live
        self._missing = {key: self._missing.get(key, now) for key in gone}
        for key, since in self._missing.items():
            if now - since >= after:
                forget_served(key)

    def _live_sessions(self) -> set[str]:
        """The ids of the sessions that clients have."""
        found = set()
        if self._listening.connect is not None:
            sessions = self._connect.sessionManager().listActiveSessions()
            found |= {str(sessions.apply(i).serverSessionId()) for i in range(sessions.size())}
        if self._operations is not None:
            found |= {
                str(each.sessionUUID()) for each in entries(self._operations, "sessionToContexts")
            }
        return found

    def status(self) -> str:
        """Return ``ok``, or why no statement is answered now."""
        session: Any = self._spark
        try:
            if session.sparkContext._jsc.sc().isStopped():
                return "stopped"
            if self._listening.connect is not None and self._connect.server().isShutdown():
                return "not listening"
            if self._thrift_thread is not None and not self._thrift_thread.isAlive():
                return "not listening"
        except (AttributeError, OSError, Py4JError):
            # The session has no context any more, or the virtual machine is gone.
            return "stopped"
        return OK

    @property
    def _connect(self) -> Any:
        """Spark's server of Connect."""
        service = self._machine.jvm.org.apache.spark.sql.connect.service
        return getattr(getattr(service, "SparkConnectService$"), "MODULE$")

    def stop(self, *, seconds: float) -> None:
        """Begin no new statement, let those that run end, and stop Spark.

        Args:
            seconds: how long to wait for them.
        """
        self._shutdown.begin(self._has_statements, seconds=seconds)
        if self._listening.connect is not None:
            some, unit = self._machine.jvm.scala.Some, self._machine.jvm.java.util.concurrent
            # Calls that are no statements: Java's number is a long one.
            self._connect.stop(some(1 << 32), some(unit.TimeUnit.NANOSECONDS))
        if self._thrift is not None:
            self._thrift.stop()
        self._spark.stop()

    def _has_statements(self) -> bool:
        """Whether a client's statement runs, or its answer is read."""
        of_connect = self._listening.connect is not None and bool(
            self._connect.listActiveExecutions().isRight()
        )
        return of_connect or (self._operations is not None and has_statements(self._operations))
