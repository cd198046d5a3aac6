"""The service of Spark Connect with our messages in requests, and plug-ins that answer them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from frazil.spark.catalog.connect.answers import CommandAnswers, PlaceOf, ReadAnswers, message_of
from frazil.spark.catalog.connect.requests import (
    REQUESTS,
    ClientRequest,
    begins_statement,
    is_of_pipeline,
    session_key,
)
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.shutdown import REFUSAL, Shutdown
from frazil.spark.plans.machine import (
    JavaObject,
    Machine,
    field_of,
    text_of_error,
    value_of,
)

_SERVICE: Final = "spark.connect.SparkConnectService"
_CALLS: Final = "org.sparkproject.connect.grpc.stub.ServerCalls"


@dataclass(frozen=True, kw_only=True)
class _Service:
    """The service whose methods are ours.

    Attributes:
        theirs: Spark's.
        session: returns the place of a session by its user and its id.
        shutdown: says whether no new statement is begun.
    """

    machine: Machine
    theirs: Any
    session: Callable[[str, str], SessionPlace]
    shutdown: Shutdown


class _Method(JavaObject):
    """A method of the service."""

    def __init__(self, service: _Service, name: str) -> None:
        self.machine = service.machine
        self._service = service
        self._name = name
        self._kind = REQUESTS[name]
        self._session = service.session

    def invoke(self, request: Any, observer: Any) -> None:
        """Answer a request; of an error of ours the client has the words."""
        try:
            self._answer(request, observer)
        except Exception as error:
            status = self.machine.jvm.org.sparkproject.connect.grpc.Status.INTERNAL
            failure = status.withDescription(text_of_error(error)).asRuntimeException()
            observer.onError(failure)

    def _answer(self, request: Any, observer: Any) -> None:
        data = request.toByteArray()
        if self._service.shutdown.is_begun and begins_statement(data, self._kind):
            # Of UNAVAILABLE a client would try again, for minutes, what has lost its session.
            status = self.machine.jvm.org.sparkproject.connect.grpc.Status.FAILED_PRECONDITION
            observer.onError(status.withDescription(REFUSAL).asRuntimeException())
            return
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
        getattr(self._service.theirs, self._name[0].lower() + self._name[1:])(request, observer)


class _StreamMethod(_Method):
    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CALLS}$ServerStreamingMethod"]


class _UnaryMethod(_Method):
    class Java:
        """What the virtual machine takes it for."""

        implements: Final = [f"{_CALLS}$UnaryMethod"]


def answer_requests(machine: Machine, place_of: PlaceOf, shutdown: Shutdown) -> None:
    """Have a service of Spark Connect that runs answer what concerns tables of lakes by us.

    Args:
        place_of: returns the place of a session.
        shutdown: says whether no new statement is begun.
    """
    connect = machine.jvm.org.apache.spark.sql.connect
    service = getattr(getattr(connect.service, "SparkConnectService$"), "MODULE$")
    _register(machine, place_of)

    def session(user: str, key: str) -> SessionPlace:
        none = machine.jvm.scala.Option.empty()
        return place_of(service.getOrCreateIsolatedSession(user, key, none).session())

    theirs = connect.service.SparkConnectService(False)
    ours = _Service(machine=machine, theirs=theirs, session=session, shutdown=shutdown)
    calls = machine.jvm.org.sparkproject.connect.grpc.stub.ServerCalls
    registry = value_of(service.server(), "registry")
    field = field_of(registry, "methods")
    methods = machine.jvm.java.util.HashMap(field.get(registry))
    for name, handler in (
        ("ExecutePlan", calls.asyncServerStreamingCall(_StreamMethod(ours, "ExecutePlan"))),
        ("AnalyzePlan", calls.asyncUnaryCall(_UnaryMethod(ours, "AnalyzePlan"))),
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
