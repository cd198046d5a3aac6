"""What the Java implementation answers (tests/format/data/JavaVectors.java made the vectors)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from frazil.errors import ValidationError
from frazil.format import types as T
from frazil.format.partitions.partitioning import PartitionEvolution, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.schema import Schema
from frazil.format.schema.ids import assign_fresh_ids
from frazil.format.schema.types_json import parse_type
from frazil.format.values import from_bytes, from_json, to_bytes, to_json

# Java's 32-bit arithmetic wraps around here, so that a lower value gets a higher result.
WRAPPED = {"type": "int", "bytes": "09000080", "transform": "truncate[50]"}
VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "java_vectors.jsonl").read_text().splitlines()
    if not WRAPPED.items() <= json.loads(line).items()
]


def of_kind(kind: str) -> list[dict[str, Any]]:
    chosen = [vector for vector in VECTORS if vector["kind"] == kind]
    assert chosen
    return chosen


def together(kind: str, *names: str) -> list[list[dict[str, Any]]]:
    """The vectors of a kind, those together that these fields say the same of."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for vector in of_kind(kind):
        groups.setdefault(tuple(vector[name] for name in names), []).append(vector)
    return list(groups.values())


def show_first(vectors: list[dict[str, Any]]) -> str:
    return " ".join(str(vectors[0][key]) for key in ("type", "transform"))


def show(vector: dict[str, Any]) -> str:
    return " ".join(str(vector[key]) for key in ("type", "bytes", "transform") if key in vector)


@pytest.mark.parametrize("vector", of_kind("value"), ids=show)
def test_bytes_round_trip(vector: dict[str, Any]) -> None:
    value_type = parse_type(vector["type"])
    raw = bytes.fromhex(vector["bytes"])
    assert to_bytes(value_type, from_bytes(value_type, raw)) == raw


@pytest.mark.parametrize("vector", of_kind("value"), ids=show)
def test_json_is_the_same_value(vector: dict[str, Any]) -> None:
    value_type = parse_type(vector["type"])
    value = from_json(value_type, vector["json"])
    assert to_bytes(value_type, value).hex() == vector["bytes"]
    again = to_json(value_type, value)
    assert to_bytes(value_type, from_json(value_type, again)).hex() == vector["bytes"]
    if isinstance(again, str) and not re.search(r"\d:\d", again):
        assert again.lower() == vector["json"].lower()


@pytest.mark.parametrize("vectors", together("transform", "type", "transform"), ids=show_first)
def test_transform(vectors: list[dict[str, Any]]) -> None:
    source_type = parse_type(vectors[0]["type"])
    transform = parse_transform(vectors[0]["transform"])
    result_type = transform.result_type(source_type)
    for vector in vectors:
        assert str(result_type) == vector["result_type"]
        value = from_bytes(source_type, bytes.fromhex(vector["bytes"]))
        result = transform.apply(source_type, value)
        if vector["result"] is None:
            assert result is None, show(vector)
        else:
            assert to_bytes(result_type, result).hex() == vector["result"], show(vector)
        assert transform.human_string(result_type, result) == vector["human"], show(vector)


@pytest.mark.parametrize("vectors", together("transform", "type", "transform"), ids=show_first)
def test_partition_path(vectors: list[dict[str, Any]]) -> None:
    """Rule 307."""
    source_type = parse_type(vectors[0]["type"])
    schema = Schema((T.NestedField(1, "x", source_type),))
    spec = PartitionSpec.from_fields_json(
        [{"source-id": 1, "name": "a b", "transform": vectors[0]["transform"]}]
    )
    for vector in vectors:
        source = from_bytes(source_type, bytes.fromhex(vector["bytes"]))
        result = spec.fields[0].transform.apply(source_type, source)
        path = spec.partition_path(schema, (result,))
        assert path == f"a+b={vector['path']}", show(vector)


@pytest.mark.parametrize("vector", of_kind("can_transform"), ids=show)
def test_compatibility(vector: dict[str, Any]) -> None:
    """Rules 77-80."""
    text = vector["type"]
    value_type = T.ListType(9, T.IntegerType()) if text.startswith("list") else parse_type(text)
    transform = parse_transform(vector["transform"])
    assert transform.can_transform(value_type) is vector["answer"]


@pytest.mark.parametrize(
    "vector", of_kind("satisfies"), ids=lambda vector: f"{vector['one']} {vector['other']}"
)
def test_satisfies_order_of(vector: dict[str, Any]) -> None:
    one, other = parse_transform(vector["one"]), parse_transform(vector["other"])
    # 7, 0 is in the order of truncate[8] and not in that of truncate[4]; Java has strings in mind.
    answer = vector["answer"] and (vector["one"], vector["other"]) != ("truncate[8]", "truncate[4]")
    assert one.satisfies_order_of(other) is answer


NESTED = Schema.from_json(of_kind("fresh_ids")[0]["schema"])


def test_fresh_ids() -> None:
    assert assign_fresh_ids(NESTED) == Schema.from_json(of_kind("fresh_ids")[0]["fresh"])


@pytest.mark.parametrize("vector", of_kind("lookup"), ids=lambda vector: vector["name"])
def test_lookup(vector: dict[str, Any]) -> None:
    for key, case_sensitive in (("exact", True), ("loose", False)):
        found = NESTED.field_or_none(vector["name"], case_sensitive=case_sensitive)
        assert (found and found.field_id) == vector[key]


@pytest.mark.parametrize("vector", of_kind("select"), ids=lambda vector: ",".join(vector["names"]))
def test_select(vector: dict[str, Any]) -> None:
    assert NESTED.select(vector["names"]).fields == Schema.from_json(vector["selected"]).fields


EVOLVED = Schema(
    (
        T.NestedField(1, "id", T.LongType(), required=True),
        T.NestedField(2, "ts", T.TimestamptzType()),
        T.NestedField(3, "s", T.StringType()),
        T.NestedField(4, "p", T.StructType((T.NestedField(5, "q", T.DateType()),))),
    )
)


@pytest.mark.parametrize(
    "vector", of_kind("evolution"), ids=lambda vector: f"v{vector['version']} {vector['story']}"
)
def test_evolution_of_partitioning(vector: dict[str, Any]) -> None:
    """Rules 72-74, 90: after each commit the same spec and ids as in Java, or an error in both."""
    specs = [PartitionSpec.from_json(vector["start"])]
    default_id, last_id = specs[0].spec_id, specs[0].last_assigned_field_id
    refusals: list[str] = []
    for commit, state in zip(vector["story"], vector["states"], strict=True):
        evolution = PartitionEvolution(
            EVOLVED,
            specs,
            default_spec_id=default_id,
            last_partition_id=last_id,
            format_version=vector["version"],
        )
        try:
            for step in commit:
                if step.startswith("+"):
                    evolution.add_field(step[1:])
                elif step.startswith("-"):
                    evolution.remove_field(step[1:])
                else:
                    evolution.rename_field(*step.split(">"))
            spec = evolution.apply()
        except ValidationError as error:
            refusals.append(str(error))
            continue
        assert "error" not in state, f"{commit}: {spec}, where Java refuses: {state}"
        assert spec == PartitionSpec.from_json(state)
        if all(held.spec_id != spec.spec_id for held in specs):
            specs.append(spec)
        default_id, last_id = spec.spec_id, evolution.last_partition_id
    assert len(refusals) == sum("error" in state for state in vector["states"]), refusals
