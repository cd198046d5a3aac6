"""The service of Spark's Thrift server, whose lists have the lakes in them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from frazil.spark.catalog.shutdown import REFUSAL, Shutdown
from frazil.spark.catalog.thrift.lists import LIST
from frazil.spark.plans.machine import (
    JavaObject,
    Machine,
    answers,
    field_of,
    holding_answers,
    value_of,
)
from frazil.spark.plans.traces import has_bridge

_BINARY: Final = "ThriftBinaryCLIService"
_WITHOUT_STATUS: Final = "GetQueryId"
_READS_ON: Final = 2_000
"""Milliseconds in which a client asks for the next rows of a result."""


class ListingService(JavaObject):
    """Hands each call on to Spark's service, but for the lists, and for statements at the end."""

    def __init__(self, machine: Machine, theirs: Any, shutdown: Shutdown) -> None:
        self.machine = machine
        self._theirs = theirs
        self._shutdown = shutdown

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "Java":
            raise AttributeError(name)
        method = getattr(self._theirs, name)
        if name == _WITHOUT_STATUS:
            return partial(holding_answers(lambda _, *args: method(*args)), self)
        return partial(holding_answers(lambda _, *args: self._without_bridge(method(*args))), self)

    def _without_bridge(self, answer: Any) -> Any:
        """An answer of Spark's, whose error has no lines of a trace that tell how Python called."""
        status = answer.getStatus()
        said = None if status is None else status.getInfoMessages()
        if said is not None:
            status.setInfoMessages([each for each in map(str, said) if not has_bridge(each)])
        return answer

    @answers()
    def ExecuteStatement(self, request: Any) -> Any:
        """Begin a statement."""
        if not self._shutdown.is_begun:
            return self._without_bridge(self._theirs.ExecuteStatement(request))
        status = self._kinds.TStatus(self._kinds.TStatusCode.ERROR_STATUS)
        status.setErrorMessage(REFUSAL)
        return self._kinds.TExecuteStatementResp(status)

    @answers()
    def GetCatalogs(self, request: Any) -> Any:
        """List the catalogs."""
        return self._list(request, self._kinds.TGetCatalogsResp, kind="catalogs")

    @answers()
    def GetSchemas(self, request: Any) -> Any:
        """List schemas."""
        return self._list(
            request,
            self._kinds.TGetSchemasResp,
            kind="schemas",
            catalog=request.getCatalogName(),
            schema=request.getSchemaName(),
        )

    @answers()
    def GetTables(self, request: Any) -> Any:
        """List tables and views."""
        types = request.getTableTypes()
        return self._list(
            request,
            self._kinds.TGetTablesResp,
            kind="tables",
            catalog=request.getCatalogName(),
            schema=request.getSchemaName(),
            table=request.getTableName(),
            types=None if types is None else [str(each) for each in types],
        )

    @answers()
    def GetColumns(self, request: Any) -> Any:
        """List the columns of tables."""
        return self._list(
            request,
            self._kinds.TGetColumnsResp,
            kind="columns",
            catalog=request.getCatalogName(),
            schema=request.getSchemaName(),
            table=request.getTableName(),
            column=request.getColumnName(),
        )

    @property
    def _kinds(self) -> Any:
        return self.machine.jvm.org.apache.hive.service.rpc.thrift

    def _list(self, request: Any, answer: Callable[[Any], Any], **asked: Any) -> Any:
        """The answer to a statement that our parser reads."""
        statement = self._kinds.TExecuteStatementReq(
            request.getSessionHandle(), LIST + json.dumps(asked)
        )
        found = self.ExecuteStatement(statement)
        made = answer(found.getStatus())
        if found.getOperationHandle() is not None:
            made.setOperationHandle(found.getOperationHandle())
        return made

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.hive.service.rpc.thrift.TCLIService$Iface"]


def list_lakes(machine: Machine, server: Any, shutdown: Shutdown) -> bool:
    """Have a Thrift server that runs list the lakes; False where its transport does not let us."""
    front = value_of(server, "thriftCLIService")
    if str(front.getClass().getSimpleName()) != _BINARY:
        return False
    service = ListingService(machine, front, shutdown)
    processor = machine.jvm.org.apache.hive.service.auth.TSetIpAddressProcessor(service)
    listener = value_of(front, "server")
    factory = machine.jvm.org.apache.thrift.TProcessorFactory(processor)
    field_of(listener, "processorFactory_").set(listener, factory)
    return True


def has_statements(manager: Any) -> bool:
    """Whether a statement runs, or a client reads what one has found.

    Args:
        manager: of the server's operations. It keeps those too that a client forgot to close.
    """
    since = time.time() * 1_000 - _READS_ON
    return any(
        not (each.isFinished() or each.isFailed() or each.isCanceled())
        or each.getLastAccessTime() > since
        for each in entries(manager, "handleToOperation")
    )


def entries(manager: Any, name: str) -> list[Any]:
    """Return what a map of the server's operations holds; others may take from it meanwhile."""
    # What is gone when it is looked for is None.
    return [each for each in value_of(manager, name).values() if each is not None]
