"""Records of an Avro container under names of our own, matched by field ids (SPEC rules 101, 106).

Writers name fields differently, some leave ids or logical types out, and bytes from a store may be
anything.  So the writer's schema is rebuilt with canonical names and physical types, refused where
it would let a few bytes stand for endless records, and only then given to the decoder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import accumulate, pairwise
from typing import Any, cast

import fastavro

from frazil.errors import InvalidManifestError
from frazil.storage.avro.container import (
    AvroContainer,
    as_container_of_blocks,
    read_container,
)

_PRIMITIVES = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}
_MOST_NODES = 100_000
_DEEPEST = 64
_LARGEST_FIXED = 1 << 20


@dataclass(frozen=True, slots=True)
class Level:
    """The fields of one record: names by field id, and the levels of the records within.

    Attributes:
        names: canonical name by field id; a field without an id is matched by that name.
        inner: by canonical name, the level of a record or of an array's records.
        keeps_ids: fields are named ``p<field id>``, and their types are reported.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    inner: Mapping[str, Level] = field(default_factory=dict)
    keeps_ids: bool = False


@dataclass(frozen=True, slots=True)
class IdField:
    """A field of a level that keeps ids, as its writer declared it.

    Attributes:
        field_id: None where the writer left it out.
        name: as written.
        column: the canonical name of its value in a record.
        avro_type: without null, with its logical type.
    """

    field_id: int | None
    name: str
    column: str
    avro_type: Any


@dataclass(frozen=True, slots=True)
class Records:
    """A decoded container.

    Attributes:
        metadata: the header's key-value pairs.
        id_fields: the fields of the level that keeps ids, in the writer's order.
        names: every canonical name that the schema has.
        rows: one dict a record.
    """

    metadata: Mapping[str, bytes]
    id_fields: tuple[IdField, ...]
    names: frozenset[str]
    rows: list[dict[str, Any]]


def read_records(data: bytes, level: Level, *, file: str) -> Records:
    """Decode a container.

    Raises:
        InvalidManifestError: the bytes are no Avro container, or do not fit their own schema.
        UnsupportedError: the file is encrypted or its codec is unknown.
    """
    [found] = read_many_records([(data, file)], level)
    return found


def read_many_records(files: Sequence[tuple[bytes, str]], level: Level) -> list[Records]:
    """Decode containers; those of one schema cost little more than one of their size.

    Args:
        files: the bytes of each, and the name of the file for errors.
        level: the fields to read.

    Raises:
        InvalidManifestError: the bytes are no Avro container, or do not fit their own schema.
        UnsupportedError: a file is encrypted or its codec is unknown.
    """
    containers = [read_container(data, file=file) for data, file in files]
    groups: dict[bytes, list[int]] = {}
    for index, container in enumerate(containers):
        groups.setdefault(container.metadata["avro.schema"], []).append(index)
    found: dict[int, Records] = {}
    for schema_text, indexes in groups.items():
        names = [files[index][1] for index in indexes]
        some = [containers[index] for index in indexes]
        schema, rebuilder = _rebuilt(schema_text, level, file=names[0])
        for index, container, rows in zip(
            indexes, some, _decoded(schema, some, names), strict=True
        ):
            found[index] = Records(
                container.metadata, tuple(rebuilder.id_fields), frozenset(rebuilder.names), rows
            )
    return [found[index] for index in range(len(files))]


def _rebuilt(schema_text: bytes, level: Level, *, file: str) -> tuple[dict[str, Any], _Rebuilder]:
    rebuilder = _Rebuilder()
    try:
        return rebuilder.rebuild(json.loads(schema_text), level), rebuilder
    except _MalformedError as error:
        raise InvalidManifestError(f"the Avro schema is malformed: {error}", file=file) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidManifestError(
            f"the Avro schema is malformed: {type(error).__name__}", file=file
        ) from None


def _decoded(
    schema: Mapping[str, Any], containers: Sequence[AvroContainer], files: Sequence[str]
) -> list[list[dict[str, Any]]]:
    """The rows of each container, which is a block: none reads the bytes of another.

    Where a container ends as the one before it, as a snapshot's list of manifests often does, only
    what stands before that is decoded.
    """
    blocks = [(container.count, b"".join(container.blocks)) for container in containers]
    news = _new_rows(schema, blocks)
    whole = [index for index in range(len(blocks)) if index not in news]
    try:
        stream = BytesIO(as_container_of_blocks(schema, [blocks[index] for index in whole]))
        rows = cast(list[dict[str, Any]], list(fastavro.reader(stream)))
    except Exception as error:
        if len(containers) > 1:
            alone = zip(containers, files, strict=True)
            return [_decoded(schema, [one], [file])[0] for one, file in alone]
        # The decoder answers damaged bytes with whatever error its own code runs into.
        raise InvalidManifestError(
            f"the records do not fit the Avro schema: {type(error).__name__}: {error}",
            file=files[0],
        ) from None
    ends = list(accumulate((blocks[index][0] for index in whole), initial=0))
    decoded = iter([rows[start:end] for start, end in pairwise(ends)])
    found: list[list[dict[str, Any]]] = []
    for index in range(len(blocks)):
        new = news.get(index)
        found.append(next(decoded) if new is None else new + found[-1])
    return found


def _new_rows(
    schema: Mapping[str, Any], blocks: Sequence[tuple[int, bytes]]
) -> dict[int, list[dict[str, Any]]]:
    """What stands before the rows of the block before, by the index of a block that ends in them.

    A block has the bytes of the other at its end; and if its further rows end where those begin, a
    decoder of the whole comes to the same rows.
    """
    found: dict[int, list[dict[str, Any]]] = {}
    parsed: Any = None
    for index, ((known, tail), (count, body)) in enumerate(pairwise(blocks), 1):
        if not 0 < known <= count or not body.endswith(tail):
            continue
        stream, rows = BytesIO(body), []
        # Damaged bytes are told of by the decoder of the whole.
        with suppress(Exception):
            parsed = parsed or fastavro.parse_schema(dict(schema))
            rows = [fastavro.schemaless_reader(stream, parsed, None) for _ in range(count - known)]
        if len(rows) == count - known and stream.tell() == len(body) - len(tail):
            found[index] = cast(list[dict[str, Any]], rows)
    return found


class _MalformedError(Exception):
    """What is wrong with a schema."""


@dataclass(slots=True)
class _Rebuilder:
    """Copies a schema with canonical names, fresh type names and no logical types."""

    id_fields: list[IdField] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    definitions: dict[str, Any] = field(default_factory=dict)
    open_types: list[str] = field(default_factory=list)
    nodes: int = 0
    types: int = 0

    def rebuild(self, schema: Any, level: Level) -> dict[str, Any]:
        built = self._type(schema, level)
        if not isinstance(built, dict) or built.get("type") != "record":
            raise _MalformedError("it is not a record")
        return built

    def _type(self, schema: Any, level: Level | None) -> Any:
        self.nodes += 1
        if self.nodes > _MOST_NODES or len(self.open_types) > _DEEPEST:
            raise _MalformedError("it nests too deeply")
        if isinstance(schema, str):
            if schema in _PRIMITIVES:
                return schema
            return self._reference(schema, level)
        if isinstance(schema, list):
            return [self._type(branch, level) for branch in schema]
        kind = schema["type"]
        if not isinstance(kind, str):
            return self._type(kind, level)
        match kind:
            case "record" | "error":
                return self._named(schema, lambda: self._record(schema, level))
            case "array":
                return {"type": "array", "items": self._items(schema["items"], level)}
            case "map":
                return {"type": "map", "values": self._items(schema["values"], level)}
            case "fixed":
                self.definitions[str(schema.get("name"))] = schema
                size = schema["size"]
                if not isinstance(size, int) or not 0 <= size <= _LARGEST_FIXED:
                    raise _MalformedError(f"a fixed type has the size {size!r}")
                return {"type": "fixed", "name": self._fresh_name(), "size": size}
            case "enum":
                self.definitions[str(schema.get("name"))] = schema
                return {
                    "type": "enum",
                    "name": self._fresh_name(),
                    "symbols": list(schema["symbols"]),
                }
        return self._type(kind, level)

    def _items(self, schema: Any, level: Level | None) -> Any:
        items = self._type(schema, level)
        if _least_bytes(items) == 0:
            raise _MalformedError("the items of an array or map take no bytes")
        return items

    def _reference(self, name: str, level: Level | None) -> Any:
        found = self.definitions.get(name) or self.definitions.get(name.rpartition(".")[2])
        if found is None:
            raise _MalformedError(f"the type {name[:80]!r} is not known")
        return self._type(found, level)

    def _named(self, schema: Any, build: Any) -> Any:
        name = str(schema.get("name"))
        if name in self.open_types:
            raise _MalformedError(f"the type {name[:80]!r} holds itself")
        self.definitions[name] = schema
        self.open_types.append(name)
        built = build()
        self.open_types.pop()
        return built

    def _record(self, schema: Any, level: Level | None) -> dict[str, Any]:
        own = level or Level()
        by_name = {name: name for name in own.names.values()}
        used: set[str] = set()
        fields = []
        for position, avro in enumerate(schema["fields"]):
            field_id = avro.get("field-id")
            if not isinstance(field_id, int):
                field_id = None
            name = own.names.get(field_id) if field_id is not None else by_name.get(avro["name"])
            if level is None or own.keeps_ids:
                name = f"p{position}" if own.keeps_ids else None
            if name is None or name in used:
                name = f"unread{position}"
            used.add(name)
            if own.keeps_ids:
                kind = _without_null(avro["type"], self.definitions)
                self.id_fields.append(IdField(field_id, str(avro["name"]), name, kind))
            else:
                self.names.add(name)
            inner = own.inner.get(name)
            fields.append({"name": name, "type": self._type(avro["type"], inner)})
        return {"type": "record", "name": self._fresh_name(), "fields": fields}

    def _fresh_name(self) -> str:
        self.types += 1
        return f"type{self.types}"


def _least_bytes(built: Any) -> int:
    """The fewest bytes that a value of a rebuilt type takes."""
    if isinstance(built, str):
        return _PRIMITIVES[built]
    if isinstance(built, list):
        return 1
    match built["type"]:
        case "record":
            return sum(_least_bytes(each["type"]) for each in built["fields"])
        case "fixed":
            return int(built["size"])
    return 1


def _without_null(kind: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(kind, list):
        others = [branch for branch in kind if branch != "null"]
        kind = others[0] if len(others) == 1 else "null" if not others else kind
    if isinstance(kind, str) and kind in definitions:
        return definitions[kind]
    return kind
