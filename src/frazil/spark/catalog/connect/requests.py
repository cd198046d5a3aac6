"""Requests of clients, in which what reads or changes a lake's table by a method is ours.

Spark's planner answers a message of its own kinds by itself, and asks plug-ins for what it does not
know. So a read by name and some writers are wrapped, as a request comes in, into a message that our
plug-ins answer: a stream, hidden columns, `mergeInto` and writers that replace partitions have no
way through a catalog.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

from google.protobuf.any_pb2 import Any as AnyMessage
from pyspark.sql.connect.proto import base_pb2, commands_pb2, relations_pb2

from frazil.errors import UnsupportedError
from frazil.spark.catalog.connect.wire import Data, field_bytes, fields_of, values_of
from frazil.spark.files.projection import METADATA_COLUMNS

READ: Final = "frazil/read"
COMMAND: Final = "frazil/command"
"""What our messages are called by."""

ANY: Final = AnyMessage.DESCRIPTOR
_RELATION: Final = relations_pb2.Relation.DESCRIPTOR
_COMMAND: Final = commands_pb2.Command.DESCRIPTOR
_OVERWRITES_PARTITIONS: Final = commands_pb2.WriteOperationV2.MODE_OVERWRITE_PARTITIONS
_OVERWRITES: Final = commands_pb2.WriteOperation.SAVE_MODE_OVERWRITE
_INSERTS: Final = commands_pb2.WriteOperation.SaveTable.TABLE_SAVE_METHOD_INSERT_INTO
_HIDDEN: Final = [each.name for each in METADATA_COLUMNS]
REQUESTS: Final = {
    "ExecutePlan": base_pb2.ExecutePlanRequest.DESCRIPTOR,
    "AnalyzePlan": base_pb2.AnalyzePlanRequest.DESCRIPTOR,
}
"""The methods of the service that have plans, and what they are asked by."""


@dataclass(frozen=True)
class ClientRequest:
    """A request as it comes in.

    Attributes:
        data: its bytes.
        kind: the descriptor of the message.
        is_lakes: whether a name, as the client wrote it, is that of a lake's table.
    """

    data: bytes
    kind: Any
    is_lakes: Callable[[str], bool]

    def with_ours(self) -> bytes | None:
        """Return the request with our messages in it; None where it stays as it is.

        Raises:
            UnsupportedError: the plan is nested too deep.
        """
        try:
            return self._message(memoryview(self.data), self.kind)
        except RecursionError:
            raise UnsupportedError(
                "the plan of this DataFrame is nested too deep: build it in fewer steps, or keep "
                "a part of it as a temporary view"
            ) from None

    def _message(self, data: Data, kind: Any) -> bytes | None:
        if kind.full_name == _RELATION.full_name:
            read = self._read(data)
            if read is not None:
                return read
        ways = _ways(self.kind).get(kind.full_name, {})
        pieces: list[Data] = []
        done = 0
        for each in fields_of(data):
            inner = ways.get(each.number)
            if inner is None or not each.is_bytes:
                continue
            made = self._message(data[each.start : each.stop], inner)
            if made is not None:
                pieces += [data[done : each.begin], field_bytes(each.number, made)]
                done = each.stop
        found = None if not pieces else b"".join([*pieces, data[done:]])
        if kind.full_name == _COMMAND.full_name:
            wrapped = self._command(data if found is None else found)
            return found if wrapped is None else wrapped
        return found

    def _read(self, data: Data) -> bytes | None:
        """A relation that reads a lake's table by its name, as our message."""
        read = values_of(data, _RELATION).get("read")
        if read is None:
            return None
        said = relations_pb2.Read.FromString(read[-1])
        if said.WhichOneof("read_type") != "named_table":
            return None
        name = said.named_table.unparsed_identifier
        if not self.is_lakes(name):
            return None
        told = {
            "name": name,
            "options": dict(said.named_table.options),
            "is_stream": said.is_streaming,
            "hidden": self._hidden_columns,
        }
        kept = b"".join(
            bytes(data[each.begin : each.stop])
            for each in fields_of(data)
            if each.number == _RELATION.fields_by_name["common"].number
        )
        return kept + _plugin_message(_RELATION, READ, json.dumps(told).encode())

    @cached_property
    def _hidden_columns(self) -> list[str]:
        """Hidden columns that the request may name."""
        text = self.data.lower()
        return [name for name in _HIDDEN if name.encode() in text]

    def _command(self, data: Data) -> bytes | None:
        """A command that changes a lake's table in a way that a catalog is not told of."""
        said = values_of(data, _COMMAND)
        name = next(
            (found for each in said if (found := _changed_table(each, said[each][-1]))), None
        )
        if name is None or not self.is_lakes(name):
            return None
        return _plugin_message(_COMMAND, COMMAND, data)


def begins_statement(data: bytes, kind: Any) -> bool:
    """Whether a request asks for more than a schema, or the values that a change has returned."""
    if kind is not base_pb2.ExecutePlanRequest.DESCRIPTOR:
        return False
    plan = base_pb2.ExecutePlanRequest.FromString(data).plan
    return not plan.root.HasField("local_relation")


def is_of_pipeline(data: Data, kind: Any) -> bool:
    """Return whether a request is about a declarative pipeline."""
    plan = values_of(data, kind).get("plan")
    if plan is None:
        return False
    command = values_of(plan[-1], base_pb2.Plan.DESCRIPTOR).get("command")
    return command is not None and "pipeline_command" in values_of(command[-1], _COMMAND)


def session_key(data: Data, kind: Any) -> tuple[str, str]:
    """Return the user and the session of a request."""
    said = values_of(data, kind)
    user = said.get("user_context")
    known = {} if user is None else values_of(user[-1], base_pb2.UserContext.DESCRIPTOR)
    ids = [known.get("user_id"), said.get("session_id")]
    first, second = ("" if each is None else each[-1].decode() for each in ids)
    return first, second


def _changed_table(kind: str, data: bytes) -> str | None:
    """The table that a command changes, where a catalog is not told what it does."""
    if kind == "merge_into_table_command":
        said = values_of(data, commands_pb2.MergeIntoTableCommand.DESCRIPTOR)
        return _text(said, "target_table_name")
    if kind == "write_stream_operation_start":
        return _text(
            values_of(data, commands_pb2.WriteStreamOperationStart.DESCRIPTOR), "table_name"
        )
    if kind == "write_operation_v2":
        said = values_of(data, commands_pb2.WriteOperationV2.DESCRIPTOR)
        return _text(said, "table_name") if said.get("mode") == [_OVERWRITES_PARTITIONS] else None
    if kind == "write_operation":
        said = values_of(data, commands_pb2.WriteOperation.DESCRIPTOR)
        table = said.get("table")
        if table is None or said.get("mode") != [_OVERWRITES]:
            return None
        inner = values_of(table[-1], commands_pb2.WriteOperation.SaveTable.DESCRIPTOR)
        return _text(inner, "table_name") if inner.get("save_method") == [_INSERTS] else None
    return None


def _text(said: Mapping[str, list[Any]], name: str) -> str | None:
    found = said.get(name)
    return None if found is None else str(found[-1].decode())


def _plugin_message(kind: Any, name: str, value: Data) -> bytes:
    """A message that plug-ins answer."""
    inner = field_bytes(ANY.fields_by_name["type_url"].number, name.encode())
    inner += field_bytes(ANY.fields_by_name["value"].number, value)
    return field_bytes(kind.fields_by_name["extension"].number, inner)


@cache
def _ways(root: Any) -> dict[str, dict[int, Any]]:
    """By names of messages: the fields in which relations and commands can be."""
    known: dict[str, dict[int, Any]] = {}
    left = [root]
    while left:
        kind = left.pop()
        if kind.full_name in known or kind.full_name == ANY.full_name:
            continue
        known[kind.full_name] = {
            each.number: each.message_type for each in kind.fields if each.message_type is not None
        }
        left += known[kind.full_name].values()
    leading, count = {_RELATION.full_name, _COMMAND.full_name}, 0
    while count != len(leading):
        count = len(leading)
        leading |= {
            name
            for name, inner in known.items()
            if any(each.full_name in leading for each in inner.values())
        }
    return {
        name: {number: each for number, each in inner.items() if each.full_name in leading}
        for name, inner in known.items()
    }
