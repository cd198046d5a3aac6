"""How a manifest's records are laid out, and a byte-compatible schema that decodes them as columns.

Avro writes a record as its fields one after the other, with nothing between them. So a record
within a record can be read as fields of the outer one, under any names: `flatten` turns the
writer's schema, matched by field ids (rules 52, 91, 101), into one flat record with canonical
names, whose columns a columnar decoder can pick or skip one by one.

The same holds for the statistics maps, which are arrays of (key, value) pairs (rule 116). Where
every entry of a manifest holds the same keys in the same order, as files of one schema do, a map
reads as plain columns, and the bounds of one column cost a tenth of decoding all of them.
`fixed_maps` proposes such a layout from the first entry; `FixedMap.holds` proves it after decoding:
up to the first entry that deviates everything was read right, so its count, its keys or its end are
read right too, and differ. Where it does not hold, the maps are read as lists.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from io import BytesIO
from typing import Any

import numpy as np
import polars as pl

from frazil.errors import InvalidManifestError
from frazil.storage.avro.container import as_container, zigzag
from frazil.storage.avro.resolved import kind_of, physical, resolve_schema

ENTRY_FIELDS: Mapping[int, str] = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
}
FILE_FIELDS: Mapping[int, str] = {
    134: "content",
    100: "file_path",
    101: "file_format",
    103: "record_count",
    104: "file_size_in_bytes",
    131: "key_metadata",
    132: "split_offsets",
    135: "equality_ids",
    140: "sort_order_id",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
MAP_FIELDS: Mapping[int, str] = {
    108: "column_sizes",
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
}
DATA_FILE_ID = 2
PARTITION_ID = 102
STATISTICS: tuple[str, ...] = tuple(MAP_FIELDS.values())
PARTITION_PREFIX = "partition."
POLARS_FAILURES = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
)
_PATTERN_BYTES = 4

PartitionNames = tuple[tuple[str, int], ...]
"""Names of partition fields in an Avro schema, and the fields' ids."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A partition field as the manifest's writer encoded it.

    Attributes:
        field_id: None where the writer gave none and the field's name is not known.
        avro_name: as the writer calls it.
    """

    field_id: int | None
    avro_name: str
    avro_type: Any

    @property
    def name(self) -> str:
        """The name of its decoded column."""
        known = self.avro_name if self.field_id is None else self.field_id
        return f"{PARTITION_PREFIX}{known}"


@dataclass(frozen=True, slots=True)
class FlatSchema:
    """A manifest's records as one flat record.

    Attributes:
        fields: Avro fields in the order of the bytes.
        branches: columns that hold a union's branch, and the branch that every entry must take
            (a required record that its writer declared optional).
        partition: the partition fields.
    """

    fields: tuple[Mapping[str, Any], ...]
    branches: Mapping[str, int]
    partition: tuple[PartitionColumn, ...]

    @property
    def uuids(self) -> frozenset[str]:
        """The columns of partition fields that hold UUIDs as their 16 bytes or as text."""
        kinds = {column.name: column.avro_type for column in self.partition}
        return frozenset(
            name
            for name, kind in kinds.items()
            if isinstance(kind, dict) and kind.get("logicalType") == "uuid"
        )

    @property
    def names(self) -> frozenset[str]:
        """The columns that can be decoded."""
        return frozenset(field["name"] for field in self.fields)

    def as_avro(self) -> dict[str, Any]:
        """The Avro schema, with every named type named apart."""
        return {"type": "record", "name": "entry", "fields": list(self.fields)}

    def read(
        self, count: int, blocks: Sequence[bytes], columns: Collection[str]
    ) -> pl.DataFrame | None:
        """The columns of records by polars; None where its decoder cannot read these bytes."""
        data = as_container(self.for_columns(columns), count, blocks)
        try:
            frame = pl.read_avro(BytesIO(data), columns=list(columns))
        except POLARS_FAILURES:
            return None
        return frame if len(frame) == count else None

    def for_columns(self, columns: Collection[str]) -> dict[str, Any]:
        """The Avro schema by which polars decodes these columns.

        It cannot step over what is always null: a field of that type, which has no bytes, is left
        out, and of a union of it the number of the branch is all there is.
        """
        fields = []
        for each in self.fields:
            kind = each["type"]
            is_skipped = each["name"] not in columns
            if is_skipped and kind == "null":
                continue
            is_branch_alone = isinstance(kind, list) and all(branch == "null" for branch in kind)
            fields.append({**each, "type": "long"} if is_skipped and is_branch_alone else each)
        return {"type": "record", "name": "entry", "fields": fields}


@dataclass(frozen=True, slots=True)
class FixedMap:
    """A statistics map whose keys are the same in every entry: its columns and the proof of it."""

    name: str
    keys: tuple[int, ...]

    def columns(self, field_ids: Collection[int]) -> list[str]:
        """The columns to decode for the values of `field_ids`, and for the proof."""
        checked = self._checked_keys(field_ids)
        return [
            *(f"{self.name}#{part}" for part in ("branch", "count", "end")),
            *(f"{self.name}#key{index}" for index in checked),
            *(f"{self.name}#value{index}" for index in checked if self.keys[index] in field_ids),
        ]

    def holds(self, frame: pl.DataFrame, field_ids: Collection[int]) -> bool:
        """Whether every entry of the decoded frame has this layout."""
        expected = {
            f"{self.name}#branch": 1,
            f"{self.name}#count": len(self.keys),
            f"{self.name}#end": 0,
            **{f"{self.name}#key{i}": self.keys[i] for i in self._checked_keys(field_ids)},
        }
        return all(bool((frame[column] == value).all()) for column, value in expected.items())

    def value(self, frame: pl.DataFrame, field_id: int) -> pl.Series | None:
        """The values of one column, one an entry; None where the map does not hold it."""
        if field_id not in self.keys:
            return None
        return frame[f"{self.name}#value{self.keys.index(field_id)}"]

    def _checked_keys(self, field_ids: Collection[int]) -> list[int]:
        has_all = all(field_id in self.keys for field_id in field_ids)
        return [i for i, key in enumerate(self.keys) if not has_all or key in field_ids]


@lru_cache(maxsize=256)
def flatten(schema_text: bytes, *, file: str, partition_names: PartitionNames = ()) -> FlatSchema:
    """The flat form of a manifest's Avro schema.

    A field without an id is known by its name; `partition_names` are those of the spec's fields,
    for a schema without ids.
    """
    schema = resolve_schema(schema_text, file=file)
    builder = _Flattener(dict(partition_names))
    try:
        builder.add_record(schema, {**ENTRY_FIELDS, DATA_FILE_ID: "data_file"})
    except (TypeError, KeyError, AttributeError, StopIteration, ValueError) as error:
        raise InvalidManifestError(
            f"the Avro schema is malformed ({type(error).__name__}: {error})", file=file
        ) from error
    flat = FlatSchema(tuple(builder.fields), builder.branches, tuple(builder.partition))
    missing = {"status", "file_path", "record_count", "file_size_in_bytes"} - flat.names
    if missing:
        raise InvalidManifestError(
            f"the Avro schema is not that of a manifest: it has no {', '.join(sorted(missing))}",
            file=file,
        )
    return flat


def fixed_maps(
    flat: FlatSchema,
    first_entry: Mapping[str, Any],
    wanted: Mapping[str, Collection[int]],
    blocks: Sequence[bytes],
    count: int,
) -> dict[str, FixedMap]:
    """The wanted maps that seem to hold the same keys in every entry, by the first one.

    A map's head (the end of what stands before it, its branch, its count and its first key) must
    occur in the records as often as there are entries; that is no proof, but rarely wrong.
    """
    proposals: dict[str, FixedMap] = {}
    patterns: dict[str, bytes] = {}
    previous: Mapping[str, Any] | None = None
    for avro in flat.fields:
        name = avro["name"]
        pairs = first_entry.get(name)
        usable = name in STATISTICS and pairs and _nullable_array(avro) and _plain_pairs(avro)
        # What stands before must end in 0: an array's end, or the null branch of one.
        if pairs and usable and previous is not None and _nullable_array(previous):
            keys = tuple(pair["key"] for pair in pairs)
            head = b"\x00\x02" + zigzag(len(keys)) + zigzag(keys[0])
            patterns[name] = head[:_PATTERN_BYTES]
            proposals[name] = FixedMap(name, keys)
        previous = avro
    needed = {patterns[name] for name in wanted if name in patterns}
    found = {pattern: sum(_occurrences(block, pattern) for block in blocks) for pattern in needed}
    expected = {p: count * sum(q == p for q in patterns.values()) for p in needed}
    return {
        name: proposals[name]
        for name in wanted
        if name in proposals
        and found[patterns[name]] >= expected[patterns[name]]
        and all(key >= 0 for key in proposals[name].keys)
        and len(set(proposals[name].keys)) == len(proposals[name].keys)
    }


def with_fixed_maps(flat: FlatSchema, maps: Mapping[str, FixedMap]) -> FlatSchema:
    """The flat schema, in which these maps are plain columns."""
    fields: list[Mapping[str, Any]] = []
    for avro in flat.fields:
        layout = maps.get(avro["name"])
        if layout is None:
            fields.append(avro)
            continue
        value_type = avro["type"][1]["items"]["fields"][1]["type"]
        fields += [
            {"name": f"{layout.name}#branch", "type": "long"},
            {"name": f"{layout.name}#count", "type": "long"},
        ]
        for index in range(len(layout.keys)):
            fields += [
                {"name": f"{layout.name}#key{index}", "type": "long"},
                {"name": f"{layout.name}#value{index}", "type": value_type},
            ]
        fields.append({"name": f"{layout.name}#end", "type": "long"})
    return replace(flat, fields=tuple(fields))


def _occurrences(body: bytes, pattern: bytes) -> int:
    """How often four bytes occur; in C and without the interpreter lock."""
    word = np.frombuffer(pattern, dtype="<u4")[0]
    total = 0
    for shift in range(_PATTERN_BYTES):
        words = max(len(body) - shift, 0) // _PATTERN_BYTES
        view = np.frombuffer(body, dtype="<u4", count=words, offset=shift) if words else None
        total += int(np.count_nonzero(view == word)) if view is not None else 0
    return total


def _nullable_array(avro: Mapping[str, Any]) -> bool:
    kind = avro["type"]
    return isinstance(kind, list) and kind[0] == "null" and kind_of(kind[1]) == "array"


def _plain_pairs(avro: Mapping[str, Any]) -> bool:
    """Whether a map's pairs are records of two required primitives."""
    pair = avro["type"][1]["items"]
    return kind_of(pair) == "record" and all(isinstance(f["type"], str) for f in pair["fields"])


@dataclass(slots=True)
class _Flattener:
    """Collects the fields of nested records in the order of their bytes."""

    partition_ids: Mapping[str, int]
    fields: list[Mapping[str, Any]] = field(default_factory=list)
    branches: dict[str, int] = field(default_factory=dict)
    partition: list[PartitionColumn] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def add_record(self, record: Any, names: Mapping[int, str]) -> None:
        by_name = {name: field_id for field_id, name in names.items()}
        for avro in record["fields"]:
            field_id = avro.get("field-id", by_name.get(avro["name"]))
            match names.get(field_id):
                case "data_file":
                    known = {**FILE_FIELDS, **MAP_FIELDS, PARTITION_ID: "partition"}
                    self.add_record(self._required_record(avro["type"]), known)
                case "partition":
                    self._add_partition(self._required_record(avro["type"]))
                case name:
                    self._add(name, avro["type"])

    def _add_partition(self, record: Any) -> None:
        for avro in record["fields"]:
            name = avro["name"]
            field_id = avro.get("field-id", self.partition_ids.get(name))
            column = PartitionColumn(field_id, name, _without_null(avro["type"]))
            if column.name in self.seen:
                raise ValueError(f"two partition fields have the id {column.field_id}")
            self.partition.append(column)
            self._add(column.name, avro["type"])

    def _required_record(self, kind: Any) -> Any:
        """The record of a field; one declared optional is read as its branch and its fields."""
        if isinstance(kind, list):
            index = next(i for i, branch in enumerate(kind) if branch != "null")
            name = f"branch#{len(self.fields)}"
            if kind[index]["fields"]:
                # A record without fields has no bytes: null or not is the same.
                self.branches[name] = index
            self.fields.append({"name": name, "type": "long"})
            return kind[index]
        return kind

    def _add(self, name: str | None, kind: Any) -> None:
        if name is None or name in self.seen:
            name = f"unread#{len(self.fields)}"
        self.seen.add(name)
        if name in STATISTICS:
            kind = _canonical_map(kind)
        self.fields.append({"name": name, "type": physical(kind)})


def _canonical_map(kind: Any) -> Any:
    """A statistics map with its pairs' fields named `key` and `value`."""
    if isinstance(kind, list):
        return [_canonical_map(branch) for branch in kind]
    if kind_of(kind) == "array":
        return {"type": "array", "items": _canonical_map(kind["items"])}
    if kind_of(kind) == "record":
        named = [{"name": n, "type": f["type"]} for n, f in zip(_PAIR, kind["fields"], strict=True)]
        return {**kind, "fields": named}
    return kind


_PAIR: Sequence[str] = ("key", "value")


def _without_null(kind: Any) -> Any:
    if isinstance(kind, list):
        others = [branch for branch in kind if branch != "null"]
        return others[0] if others else "null"
    return kind
