"""Our messages in the plans of clients: the rows that they read, and the changes that they ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql.connect.proto import commands_pb2, expressions_pb2

from frazil.errors import NoSuchTableError, UnsupportedError, ValidationError
from frazil.spark.attached.dataframes.batch_reads import found_name
from frazil.spark.attached.dataframes.java_options import Given
from frazil.spark.attached.dataframes.merges import LakeMergeWriter
from frazil.spark.attached.dataframes.stream_reads import stream_of
from frazil.spark.attached.dataframes.table_writes import TableWrite
from frazil.spark.attached.kinds import stream_writer
from frazil.spark.catalog.connect.requests import ANY, COMMAND, READ
from frazil.spark.catalog.connect.wire import values_of
from frazil.spark.catalog.own_statements import own_statements
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.queries import plan_of_read
from frazil.spark.plans.machine import JavaObject, Machine, analysed_plan, answers
from frazil.spark.sql.context import NamedView

PlaceOf = Callable[[Any], SessionPlace]
"""Returns the place of a session of the virtual machine."""

_CLAUSES: Final = {
    "match_actions": "when_matched",
    "not_matched_actions": "when_not_matched",
    "not_matched_by_source_actions": "when_not_matched_by_source",
}
_ACTIONS: Final = {
    "ACTION_TYPE_DELETE": "delete",
    "ACTION_TYPE_INSERT": "insert",
    "ACTION_TYPE_INSERT_STAR": "insert_all",
    "ACTION_TYPE_UPDATE": "update",
    "ACTION_TYPE_UPDATE_STAR": "update_all",
}
_NESTED: Final = 10_000
"""How deep a message may be nested that Spark has read already."""

_TRIGGERS: Final = {
    "processing_time_interval": "processingTime",
    "available_now": "availableNow",
    "once": "once",
    "continuous_checkpoint_interval": "continuous",
    "real_time_batch_duration": "realTime",
}
"""When a stream's batches begin, as PySpark calls it."""

_TEXTS: Final = frozenset(
    {
        "format",
        "output_mode",
        "query_name",
        "table_name",
        "processing_time_interval",
        "continuous_checkpoint_interval",
        "real_time_batch_duration",
    }
)


class _PlugIn(JavaObject):
    def __init__(self, machine: Machine, place_of: PlaceOf) -> None:
        self.machine = machine
        self._place_of = place_of


class ReadAnswers(_PlugIn):
    """A plug-in of Spark Connect that answers reads of lakes' tables."""

    @answers()
    def transform(self, message: bytes, planner: Any) -> Any:
        """Return the plan of a read; nothing where the message is another plug-in's."""
        optional = self.machine.jvm.java.util.Optional
        asked = _content_of(message, READ)
        if asked is None:
            return optional.empty()
        said = json.loads(asked)
        place = self._place_of(planner.session())
        with own_statements(place.spark):
            return optional.of(self._plan(place, said))

    def _plan(self, place: SessionPlace, said: Mapping[str, Any]) -> Any:
        names = place.names_now()
        parts = names.parts_of(said["name"])
        given = Given.of(said["options"])
        named = None
        if parts is not None:
            try:
                named = found_name(names, place.spark, parts)
            except NoSuchTableError:
                named = None
        if parts is None or named is None:
            return self._sparks(place, said)
        if isinstance(named, NamedView):
            if said["is_stream"]:
                raise UnsupportedError(f"{said['name']} is a view: a stream follows a table")
            if given.values:
                raise ValidationError(f"{said['name']} is a view, which has no versions")
            return self._sparks(place, said)
        if said["is_stream"]:
            names.refuse_in_transaction("a stream")
            return analysed_plan(stream_of(named, given).alias(parts[-1]))
        return plan_of_read(place, parts, named, given, said["hidden"])

    def _sparks(self, place: SessionPlace, said: Mapping[str, Any]) -> Any:
        """The relation as Spark's planner makes it."""
        options = self.machine.map(said["options"])
        strings = self.machine.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap(options)
        parser = place.session.sessionState().sqlParser()
        return self.machine.catalyst.analysis.UnresolvedRelation(
            parser.parseMultipartIdentifier(said["name"]), strings, said["is_stream"]
        )

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.spark.sql.connect.plugin.RelationPlugin"]


class CommandAnswers(_PlugIn):
    """A plug-in of Spark Connect that runs changes of lakes' tables."""

    @answers()
    def process(self, message: bytes, planner: Any) -> bool:
        """Run a change; False where the message is another plug-in's."""
        asked = _content_of(message, COMMAND)
        if asked is None:
            return False
        place = self._place_of(planner.session())
        [(kind, [data])] = values_of(asked, commands_pb2.Command.DESCRIPTOR).items()
        with own_statements(place.spark):
            _Change(self.machine, place, planner).run(kind, data)
        return True

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["org.apache.spark.sql.connect.plugin.CommandPlugin"]


class _Change:
    """A change that a client asks.

    Args:
        planner: of Spark Connect, which reads relations and expressions.
    """

    def __init__(self, machine: Machine, place: SessionPlace, planner: Any) -> None:
        self._machine = machine
        self._place = place
        self._planner = planner

    def run(self, kind: str, data: bytes) -> None:
        """Run it.

        Raises:
            Py4JJavaError: there is no such table.
        """
        said = values_of(data, commands_pb2.Command.DESCRIPTOR.fields_by_name[kind].message_type)
        try:
            if kind == "merge_into_table_command":
                self._merge(said)
            elif kind == "write_stream_operation_start":
                self._stream(said)
            elif kind == "write_operation_v2":
                self._write(said, said["table_name"][-1]).overwrite_partitions()
            else:
                table = values_of(
                    said["table"][-1], commands_pb2.WriteOperation.SaveTable.DESCRIPTOR
                )
                self._write(said, table["table_name"][-1]).insert(overwrites=True)
        except NoSuchTableError as error:
            name = said.get("target_table_name") or said.get("table_name") or table["table_name"]
            parts = self._place.names_now().parts_of(name[-1].decode())
            raise self._machine.not_found(parts or (name[-1].decode(),)) from error

    def _stream(self, said: Mapping[str, list[Any]]) -> None:
        """Start a query as its own client would, and tell the client which it is."""
        writer = stream_writer(self._place.names_now(), self._rows(said["input"][-1]))
        text = {name: found[-1].decode() for name, found in said.items() if name in _TEXTS}
        writer.options(**_options(said))
        if text.get("output_mode"):
            writer.outputMode(text["output_mode"])
        if text.get("query_name"):
            writer.queryName(text["query_name"])
        if text.get("format"):
            writer.format(text["format"])
        if "partitioning_column_names" in said:
            writer.partitionBy([each.decode() for each in said["partitioning_column_names"]])
        for field, argument in _TRIGGERS.items():
            if field in said:
                writer.trigger(**{argument: text.get(field, True)})
        query: Any = writer.toTable(text["table_name"])
        self._tell(query)

    def _tell(self, query: Any) -> None:
        holder = self._planner.executeHolderOpt().get()
        session = self._planner.sessionHolder()
        service = self._machine.jvm.org.apache.spark.sql.connect.service
        cache = getattr(getattr(service, "SparkConnectService$"), "MODULE$")
        cache.streamingSessionManager().registerNewStreamingQuery(
            session, query._jsq, holder.sparkSessionTags(), holder.operationId()
        )
        messages = _messages(self._machine)
        which = messages.StreamingQueryInstanceId.newBuilder()
        which.setId(str(query.id)).setRunId(str(query.runId))
        result = messages.WriteStreamOperationStartResult.newBuilder().setQueryId(which.build())
        result.setName(query.name or "")
        answer = messages.ExecutePlanResponse.newBuilder()
        answer.setSessionId(session.sessionId()).setServerSideSessionId(session.serverSessionId())
        answer.setWriteStreamOperationStartResult(result.build())
        holder.responseObserver().onNext(answer.build())

    def _write(self, said: Mapping[str, list[Any]], name: bytes) -> TableWrite:
        names = self._place.names_now()
        parts = names.parts_of(name.decode())
        assert parts is not None
        given = Given.of(_options(said))
        return TableWrite(names=names, parts=parts, rows=self._rows(said["input"][-1]), given=given)

    def _merge(self, said: Mapping[str, list[Any]]) -> None:
        names = self._place.names_now()
        parts = names.parts_of(said["target_table_name"][-1].decode())
        assert parts is not None
        condition = self._column(said["merge_condition"][-1])
        writer = LakeMergeWriter(names, self._rows(said["source_table_plan"][-1]), parts, condition)
        for field, clause in _CLAUSES.items():
            for each in said.get(field, ()):
                self._add(writer, clause, each)
        if said.get("with_schema_evolution", [0])[-1]:
            writer.withSchemaEvolution()
        writer.merge()

    def _add(self, writer: LakeMergeWriter, clause: str, data: bytes) -> None:
        kind = expressions_pb2.MergeAction
        [action] = values_of(data, expressions_pb2.Expression.DESCRIPTOR)["merge_action"]
        said = values_of(action, kind.DESCRIPTOR)
        method = _ACTIONS[kind.ActionType.Name(said["action_type"][-1])]
        if clause == "when_not_matched_by_source" and method == "update_all":
            raise UnsupportedError(
                "whenNotMatchedBySource().updateAll() has no row of the source to take values "
                "from: use update({…})"
            )
        condition = said.get("condition")
        values = None
        if method in ("insert", "update"):
            pairs = [values_of(each, kind.Assignment.DESCRIPTOR) for each in said["assignments"]]
            values = {
                str(self._expression(pair["key"][-1]).name()): self._column(pair["value"][-1])
                for pair in pairs
            }
        writer.frazil_add(
            f"{clause}_{method}", None if condition is None else self._column(condition[-1]), values
        )

    def _rows(self, data: bytes) -> DataFrame:
        plan = self._planner.transformRelation(self._message("Relation", data))
        return self._machine.frame(self._place.spark, plan)

    def _column(self, data: bytes) -> Column:
        utilities = self._machine.jvm.org.apache.spark.sql.classic.ExpressionUtils
        return Column(utilities.column(self._expression(data)))

    def _expression(self, data: bytes) -> Any:
        return self._planner.transformExpression(self._message("Expression", data))

    def _message(self, name: str, data: bytes) -> Any:
        return message_of(self._machine, getattr(_messages(self._machine), name), data)


def _options(said: Mapping[str, list[Any]]) -> dict[str, str]:
    """The options of a writer."""
    entry = commands_pb2.WriteOperationV2.OptionsEntry.DESCRIPTOR
    found = {}
    for each in said.get("options", ()):
        pair = values_of(each, entry)
        found[pair["key"][-1].decode()] = pair.get("value", [b""])[-1].decode()
    return found


def message_of(machine: Machine, kind: Any, data: bytes) -> Any:
    """Return a message of the virtual machine from its bytes, which Spark has read before."""
    stream = machine.jvm.org.sparkproject.connect.protobuf.CodedInputStream.newInstance(data)
    stream.setRecursionLimit(_NESTED)
    return kind.parser().parseFrom(stream)


def _messages(machine: Machine) -> Any:
    return machine.jvm.org.apache.spark.connect.proto


def _content_of(message: bytes, name: str) -> bytes | None:
    """What a message of ours holds; None where it is another one."""
    said = values_of(message, ANY)
    if said.get("type_url") != [name.encode()]:
        return None
    return bytes(said["value"][-1])
