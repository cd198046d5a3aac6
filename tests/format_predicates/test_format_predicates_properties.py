"""Properties against the independent model: meaning, projections, metrics."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from predicate_oracle import DAY_US, HOUR_US, OPS, VALUES, build, key, predicates, rows, truth

from ci_share import examples, in_circles
from frazil.format.manifests import DataFile, FieldSummary, ManifestFile
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import parse_transform
from frazil.format.predicates import (
    AlwaysTrue,
    bind,
    inclusive_projection,
    parse_predicate,
    strict_projection,
)
from frazil.format.schema import Schema
from frazil.format.types import NestedField
from frazil.format.values import to_bytes
from frazil.planning import prune
from pruned_by_columns import may_keep, may_match, must_keep, must_match
from scalar_predicates import keeps

NAMES = list(VALUES)
SCHEMA = Schema(tuple(NestedField(n, name, VALUES[name][0]) for n, name in enumerate(NAMES, 1)))
IDS = {name: n for n, name in enumerate(NAMES, 1)}
TRANSFORMS = {
    "i": ["identity", "bucket[3]", "truncate[1]", "truncate[3]", "truncate[10]", "truncate[16]"],
    "l": ["identity", "bucket[3]", "truncate[10]"],
    "dec": ["identity", "bucket[3]", "truncate[7]", "truncate[50]"],
    "d": ["identity", "bucket[3]", "year", "month", "day"],
    "ts": ["identity", "bucket[3]", "year", "month", "day", "hour"],
    "tz": ["year", "month", "day", "hour"],
    "ns": ["year", "month", "day", "hour", "bucket[4]"],
    "s": ["identity", "bucket[3]", "truncate[1]", "truncate[2]", "truncate[3]"],
    "b": ["identity", "bucket[3]", "truncate[1]", "truncate[2]"],
    "fx": ["identity", "bucket[3]"],
    "u": ["identity", "bucket[3]"],
    "flag": ["identity"],
    "f": ["identity"],
    "g": ["identity"],
}

TENS = "truncate[10]"


def by_id(row: dict[str, Any]) -> dict[int, Any]:
    return {IDS[name]: value for name, value in row.items()}


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_a_bound_predicate_keeps_the_rows_for_which_sql_says_true(name: str, data: Any) -> None:
    names = [name, data.draw(st.sampled_from(NAMES))]
    tree, row = data.draw(predicates(names)), data.draw(rows(names))
    expression = build(tree)
    bound = bind(expression, SCHEMA)
    assert keeps(bound, by_id(row)) == (truth(tree, row) is True)
    # SQL text says the same, before and after binding.
    assert bind(parse_predicate(expression.to_sql()), SCHEMA) == bound
    assert keeps(bind(parse_predicate(bound.to_sql()), SCHEMA), by_id(row)) == keeps(
        bound, by_id(row)
    )
    assert keeps(bind(~expression, SCHEMA), by_id(row)) == (truth(tree, row) is False)


def stored_values(transform: str, name: str, value: Any) -> list[Any]:
    """The partition values under which some writer has stored a value."""
    column_type = VALUES[name][0]
    right = parse_transform(transform).apply(column_type, value)
    stored = [right]
    if value is not None:
        is_time = transform in ("year", "month", "day", "hour")
        if is_time and right < 0 and not (transform == "day" and name == "d"):
            stored.append(right + 1)
        if transform.startswith("truncate") and name in ("i", "l"):
            bits = 32 if name == "i" else 64
            if right < -(2 ** (bits - 1)):
                stored = [right + 2**bits]
    return stored


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=examples(30), deadline=None)
@given(data=st.data())
def test_projections_agree_with_rows(name: str, data: Any) -> None:
    """Rules 172, 173, 183: no kept row is pruned, no row is kept by its partition wrongly."""
    other = data.draw(st.sampled_from(NAMES))
    names = [name, other]
    tree, row = data.draw(predicates(names)), data.draw(rows(names))
    fields: list[PartitionField] = []
    partition: list[Any] = []
    chosen = data.draw(
        st.lists(
            st.sampled_from([(n, t) for n in dict.fromkeys(names) for t in TRANSFORMS[n]]),
            min_size=1,
            max_size=3,
        )
    )
    for n, transform in [*chosen, (name, "void"), (name, "zorder[7]")]:
        fields.append(
            PartitionField(
                (IDS[n],), 1000 + len(fields), parse_transform(transform), f"p{len(fields)}"
            )
        )
        known = transform not in ("void", "zorder[7]")
        partition.append(
            data.draw(st.sampled_from(stored_values(transform, n, row[n]))) if known else None
        )
    spec = PartitionSpec(1, tuple(fields))
    bound = bind(build(tree), SCHEMA)
    kept = truth(tree, row) is True
    if kept:
        assert may_keep(inclusive_projection(bound, spec, SCHEMA), spec, SCHEMA, partition)
    if must_keep(strict_projection(bound, spec, SCHEMA), spec, SCHEMA, partition):
        assert kept


@pytest.mark.parametrize(("name", "bits"), [("i", 31), ("l", 63)])
@pytest.mark.parametrize("op", OPS)
def test_the_least_numbers_are_found_where_they_are_truncated_to_others(
    name: str, bits: int, op: str
) -> None:
    """Rule 85: the least of all, truncated to tens, is a lower number than the type has."""
    spec = PartitionSpec(1, (PartitionField((IDS[name],), 1000, parse_transform(TENS), "p"),))
    least = -(1 << bits)
    for literal, value in itertools.product((least, least + 3), (least, least + 3, 20)):
        tree = ("cmp", name, op, literal)
        projected = inclusive_projection(bind(build(tree), SCHEMA), spec, SCHEMA)
        for stored in stored_values(TENS, name, value):
            assert may_keep(projected, spec, SCHEMA, [stored]) or not truth(tree, {name: value})


def cut_bounds(name: str, low: Any, high: Any, width: int) -> tuple[Any, Any]:
    """Bounds as the metrics mode truncate(n) writes them (rule 311)."""
    if name not in ("s", "b", "fx"):
        return low, high
    upper: Any = high
    if len(high) > width:
        upper = None
        for size in range(width, 0, -1):
            if name == "s":
                code = ord(high[size - 1]) + 1
                if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                    upper = high[: size - 1] + chr(code)
                    break
            elif high[size - 1] < 255:
                upper = high[: size - 1] + bytes([high[size - 1] + 1])
                break
    return low[:width], upper


def raw(name: str, value: Any) -> bytes | None:
    if value is None:
        return None
    return bytes(value) if name == "fx" else to_bytes(VALUES[name][0], value)


@pytest.mark.parametrize("name", in_circles(NAMES, test=5, check=3))
@settings(max_examples=examples(20), deadline=None)
@given(data=st.data())
def test_metrics_never_contradict_the_rows(name: str, data: Any) -> None:
    """Rules 117, 119, 120, 174, with any of the statistics missing."""
    tree = data.draw(predicates([name]))
    held = data.draw(st.lists(rows([name]), max_size=4))
    values = [row[name] for row in held]
    order = key
    if name == "u" and data.draw(st.booleans()):

        def order(value: Any) -> Any:  # Java's UUID.compareTo: two signed halves
            return tuple(
                int.from_bytes(part, "big", signed=True)
                for part in (value.bytes[:8], value.bytes[8:])
            )

    present = sorted((v for v in values if v is not None and v == v), key=order)
    width = data.draw(st.integers(1, 3))
    low, high = cut_bounds(name, present[0], present[-1], width) if present else (None, None)
    field_id = IDS[name]

    def perhaps(value: Any) -> dict[int, Any] | None:
        return None if value is None or data.draw(st.booleans()) else {field_id: value}

    file = DataFile(
        file_path="f",
        record_count=len(values),
        file_size_in_bytes=1,
        value_counts=perhaps(len(values)),
        null_value_counts=perhaps(sum(v is None for v in values)),
        nan_value_counts=perhaps(sum(v is not None and v != v for v in values)),
        lower_bounds=perhaps(raw(name, low)),
        upper_bounds=perhaps(raw(name, high)),
    )
    bound = bind(build(tree), SCHEMA)
    kept = [truth(tree, row) is True for row in held]
    assert may_match(bound, file) or not any(kept)
    assert not must_match(bound, file) or all(kept)


@pytest.mark.parametrize("name", in_circles(NAMES, test=5, check=3))
@settings(max_examples=examples(15), deadline=None)
@given(data=st.data())
def test_summaries_never_contradict_the_partitions(name: str, data: Any) -> None:
    """Rules 163, 164, 171."""
    transform = parse_transform(data.draw(st.sampled_from(TRANSFORMS[name])))
    spec = PartitionSpec(1, (PartitionField((IDS[name],), 1000, transform, "p"),))
    tree = data.draw(predicates([name]))
    held = data.draw(st.lists(rows([name]), min_size=1, max_size=4))
    result_type = transform.result_type(VALUES[name][0])
    values = [
        data.draw(st.sampled_from(stored_values(str(transform), name, row[name]))) for row in held
    ]
    present = sorted((v for v in values if v is not None and v == v), key=key)
    has_nan = any(v is not None and v != v for v in values)
    summary = FieldSummary(
        contains_null=None in values,
        contains_nan=data.draw(st.sampled_from([None, has_nan])),
        lower_bound=to_bytes(result_type, present[0]) if present else None,
        upper_bound=to_bytes(result_type, present[-1]) if present else None,
    )
    manifest = ManifestFile(
        manifest_path="m", manifest_length=1, partition_spec_id=1, partitions=(summary,)
    )
    bound = bind(build(tree), SCHEMA)
    if any(truth(tree, row) is True for row in held):
        assert prune.may_match_manifests(bound, [manifest], {1: spec}, SCHEMA) == [True]


@pytest.mark.parametrize(
    ("name", "unit"), [("ts", DAY_US), ("tz", HOUR_US), ("i", 10), ("s", 1), ("l", 1)]
)
def test_pruning_does_prune(name: str, unit: int) -> None:
    """Sound is not enough: a point query must exclude a far partition and a far file."""
    transform = {
        "ts": "day",
        "tz": "hour",
        "i": "truncate[10]",
        "s": "truncate[1]",
        "l": "bucket[64]",
    }
    spec = PartitionSpec(
        1, (PartitionField((IDS[name],), 1000, parse_transform(transform[name]), "p"),)
    )
    value: Any = "a" if name == "s" else 40 * unit
    far: Any = "b" if name == "s" else 402 * unit
    tree = ("cmp", name, "=", value)
    if name in ("ts", "tz"):
        bound = bind(parse_predicate(f"{name} = timestamp_ntz '1970-01-01' "), SCHEMA)
        value = 0
    else:
        bound = bind(build(tree), SCHEMA)
    apply = spec.fields[0].transform.apply
    here, there = (apply(VALUES[name][0], v) for v in (value, far))
    assert here != there
    projected = inclusive_projection(bound, spec, SCHEMA)
    assert may_keep(projected, spec, SCHEMA, [here])
    assert not may_keep(projected, spec, SCHEMA, [there])
    file = DataFile(
        file_path="f",
        record_count=1,
        file_size_in_bytes=1,
        lower_bounds={IDS[name]: to_bytes(VALUES[name][0], far)},
        upper_bounds={IDS[name]: to_bytes(VALUES[name][0], far)},
        null_value_counts={IDS[name]: 0},
    )
    assert not may_match(bound, file)
    assert must_match(bind(~bound, SCHEMA), file)
    assert bind(AlwaysTrue(), SCHEMA) == AlwaysTrue()
