"""The service of Spark Connect with our messages in requests, and plug-ins that answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from frazil.spark.catalog.connect.answers import CommandAnswers, PlaceOf, ReadAnswers, message_of
from frazil.spark.catalog.connect.requests import (
    REQUESTS,
    ClientRequest,
    is_of_pipeline,
    session_key,
)
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.plans.machine import JavaObject, Machine, field_of, value_of

_SERVICE: Final = "spark.connect.SparkConnectService"
_CALLS: Final = "org.sparkproject.connect.grpc.stub.ServerCalls"


class _Method(JavaObject):
    """A method of the service."""

    def __init__(
        self, machine: Machine, name: str, theirs: Any, session: Callable[[str, str], SessionPlace]
    ) -> None:
        self.machine = machine
        self._name = name
        self._kind = REQUESTS[name]
        self._theirs = theirs
        self._session = session

    def invoke(self, request: Any, observer: Any) -> None:
        """Answer a request."""
        data = request.toByteArray()
        if is_of_pipeline(data, self._kind):
            # Spark looks for the catalog before it parses anything.
            self._session(*session_key(data, self._kind))

        def is_lakes(name: str) -> bool:
            place = self._session(*session_key(data, self._kind))
            return place.names_now().parts_of(name) is not None

        made = ClientRequest(data, self._kind, is_lakes).with_ours()
        if made is not None:
            messages = self.machine.jvm.org.apache.spark.connect.proto
            request = message_of(self.machine, getattr(messages, f"{self._name}Request"), made)
        getattr(self._theirs, self._name[0].lower() + self._name[1:])(request, observer)


class _StreamMethod(_Method):
    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CALLS}$ServerStreamingMethod"]


class _UnaryMethod(_Method):
    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CALLS}$UnaryMethod"]


def answer_requests(machine: Machine, place_of: PlaceOf) -> None:
    """Have a service of Spark Connect that runs answer what concerns tables of lakes by us.

    Args:
        place_of: returns the place of a session.
    """
    connect = machine.jvm.org.apache.spark.sql.connect
    service = getattr(getattr(connect.service, "SparkConnectService$"), "MODULE$")
    _register(machine, place_of)

    def session(user: str, key: str) -> SessionPlace:
        none = machine.jvm.scala.Option.empty()
        return place_of(service.getOrCreateIsolatedSession(user, key, none).session())

    theirs = connect.service.SparkConnectService(False)
    calls = machine.jvm.org.sparkproject.connect.grpc.stub.ServerCalls
    registry = value_of(service.server(), "registry")
    field = field_of(registry, "methods")
    methods = machine.jvm.java.util.HashMap(field.get(registry))
    for name, handler in (
        (
            "ExecutePlan",
            calls.asyncServerStreamingCall(_StreamMethod(machine, "ExecutePlan", theirs, session)),
        ),
        (
            "AnalyzePlan",
            calls.asyncUnaryCall(_UnaryMethod(machine, "AnalyzePlan", theirs, session)),
        ),
    ):
        key = f"{_SERVICE}/{name}"
        methods.put(key, methods.get(key).withServerCallHandler(handler))
    field.set(registry, methods)


def _register(machine: Machine, place_of: PlaceOf) -> None:
    """Add our plug-ins to those of the settings."""
    plugin = machine.jvm.org.apache.spark.sql.connect.plugin
    registry = getattr(getattr(plugin, "SparkConnectPluginRegistry$"), "MODULE$")
    for known, ours in (
        ("relationRegistry", ReadAnswers(machine, place_of)),
        ("commandRegistry", CommandAnswers(machine, place_of)),
    ):
        theirs = getattr(registry, known)()
        field = field_of(registry, f"{known}Cache")
        field.set(registry, theirs.appended(ours))
