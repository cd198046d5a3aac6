"""Requests of clients of Spark Connect: what of them is ours, and that nothing else changes."""

from __future__ import annotations

import json

import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from pyspark.sql.connect import proto

from frazil.spark.catalog.connect.requests import COMMAND, READ, REQUESTS, ClientRequest
from frazil.spark.catalog.connect.wire import fields_of, values_of

KIND = REQUESTS["ExecutePlan"]


def read(name, *, stream=False, **options):
    """A relation that reads a table by name."""
    named = proto.Read.NamedTable(unparsed_identifier=name, options=options)
    common = proto.RelationCommon(plan_id=7)
    return proto.Relation(common=common, read=proto.Read(named_table=named, is_streaming=stream))


def ours(request, kind=KIND):
    """A request with our messages in it; None where it stays as it is."""
    data = request.SerializeToString()
    return ClientRequest(data, kind, lambda name: name.startswith("lake.")).with_ours()


def executed(**plan):
    """A request to execute a plan."""
    return proto.ExecutePlanRequest(session_id="s", plan=proto.Plan(**plan))


def told(relation):
    """What our message in a relation says."""
    assert relation.common.plan_id == 7
    assert relation.extension.type_url == READ
    return json.loads(relation.extension.value)


def test_a_read_anywhere_in_a_plan_is_ours():
    """What stands around it stays, and reads of others do."""
    join = proto.Join(left=read("lake.db.t", branch="b"), right=read("other.t"), join_type=1)
    limit = proto.Limit(input=proto.Relation(join=join), limit=3)
    request = executed(root=proto.Relation(limit=limit))
    made = proto.ExecutePlanRequest.FromString(ours(request))
    found = made.plan.root.limit.input.join
    said = {"name": "lake.db.t", "options": {"branch": "b"}, "is_stream": False, "hidden": []}
    assert told(found.left) == said
    assert found.right == join.right
    found.left.CopyFrom(join.left)
    assert made == request


def test_hidden_columns_that_a_request_names_are_told():
    """In any case of letters."""
    column = proto.Expression(
        unresolved_attribute=proto.Expression.UnresolvedAttribute(unparsed_identifier="_FILE")
    )
    project = proto.Project(input=read("lake.db.t"), expressions=[column])
    made = proto.ExecutePlanRequest.FromString(ours(executed(root=proto.Relation(project=project))))
    assert told(made.plan.root.project.input)["hidden"] == ["_file"]


def test_a_plan_is_nested_as_deep_as_spark_takes_it():
    """Libraries of protocol buffers refuse what is nested more than a hundred times."""
    depth = 300
    data = read("lake.db.t").SerializeToString()
    relation = proto.Relation.DESCRIPTOR
    kind = relation.fields_by_name["limit"].message_type
    from frazil.spark.catalog.connect.wire import field_bytes

    for _ in range(depth):
        data = field_bytes(
            relation.fields_by_name["limit"].number,
            field_bytes(kind.fields_by_name["input"].number, data),
        )
    plan = field_bytes(proto.Plan.DESCRIPTOR.fields_by_name["root"].number, data)
    whole = field_bytes(KIND.fields_by_name["plan"].number, plan)
    made = ClientRequest(whole, KIND, lambda _: True).with_ours()
    for name in ("plan", "root", *(["limit", "input"] * depth)):
        kind_now = {"plan": KIND, "root": proto.Plan.DESCRIPTOR, "limit": relation}.get(name, kind)
        [made] = values_of(made, kind_now)[name]
    assert told(proto.Relation.FromString(made))["name"] == "lake.db.t"


CHANGES = [
    proto.Command(
        merge_into_table_command=proto.MergeIntoTableCommand(
            target_table_name="lake.db.t", source_table_plan=read("lake.db.u")
        )
    ),
    proto.Command(
        write_operation_v2=proto.WriteOperationV2(
            table_name="lake.db.t", mode=proto.WriteOperationV2.MODE_OVERWRITE_PARTITIONS
        )
    ),
    proto.Command(
        write_operation=proto.WriteOperation(
            mode=proto.WriteOperation.SAVE_MODE_OVERWRITE,
            table=proto.WriteOperation.SaveTable(
                table_name="lake.db.t",
                save_method=proto.WriteOperation.SaveTable.TABLE_SAVE_METHOD_INSERT_INTO,
            ),
        )
    ),
]


@pytest.mark.parametrize("command", CHANGES, ids=lambda each: each.WhichOneof("command_type"))
def test_changes_that_a_catalog_is_not_told_of_are_ours(command):
    """With reads in them that are, too."""
    made = proto.ExecutePlanRequest.FromString(ours(executed(command=command)))
    message = made.plan.command.extension
    assert message.type_url == COMMAND
    kept = proto.Command.FromString(message.value)
    if kept.HasField("merge_into_table_command"):
        source = kept.merge_into_table_command.source_table_plan
        assert told(source)["name"] == "lake.db.u"
        source.CopyFrom(read("lake.db.u"))
    assert kept == command


NOT_OURS = [
    {"root": read("other.db.t")},
    {"command": proto.Command(sql_command=proto.SqlCommand(sql="SELECT * FROM lake.db.t"))},
    {
        "command": proto.Command(
            write_operation_v2=proto.WriteOperationV2(
                table_name="lake.db.t", mode=proto.WriteOperationV2.MODE_APPEND
            )
        )
    },
    {
        "command": proto.Command(
            write_operation=proto.WriteOperation(
                mode=proto.WriteOperation.SAVE_MODE_OVERWRITE, path="lake.db.t"
            )
        )
    },
]


@pytest.mark.parametrize("plan", NOT_OURS)
def test_all_else_stays_as_it_is(plan):
    """Byte for byte."""
    assert ours(executed(**plan)) is None


def test_a_message_is_read_as_the_library_reads_it():
    """Numbers, texts and messages of every width."""
    message = AnyMessage(type_url="x" * 300, value=bytes(70_000))
    data = message.SerializeToString()
    assert [each.number for each in fields_of(data)] == [1, 2]
    assert values_of(data, AnyMessage.DESCRIPTOR)["value"] == [bytes(70_000)]
    literal = proto.Expression.Literal(double=1.5)
    assert [each.stop - each.start for each in fields_of(literal.SerializeToString())] == [8]
