"""Records of an Avro container under names of our own, matched by field ids (SPEC rules 101, 106).

Writers name fields differently, and some leave ids out. So the decoder is given the writer's schema
with canonical names and physical types.
"""

from __future__ import annotations

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
from frazil.storage.avro.resolved import kind_of, physical, resolve_schema


@dataclass(frozen=True, slots=True)
class Level:
    """The fields of one record: names by field id, and the levels of the records within.

    Attributes:
        names: canonical name by field id; a field without an id is matched by that name.
        inner: by canonical name, the level of a record or of an array's records.
    """

    names: Mapping[int, str] = field(default_factory=dict)
    inner: Mapping[str, Level] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Records:
    """A decoded container.

    Attributes:
        names: the canonical names of its records' fields.
        rows: one dict a record.
    """

    names: frozenset[str]
    rows: list[dict[str, Any]]


def read_many_records(files: Sequence[tuple[bytes, str]], level: Level) -> list[Records]:
    """Decode containers; those of one schema cost little more than one of their size."""
    containers = [read_container(data, file=file) for data, file in files]
    groups: dict[bytes, list[int]] = {}
    for index, container in enumerate(containers):
        groups.setdefault(container.metadata["avro.schema"], []).append(index)
    found: dict[int, Records] = {}
    for schema_text, indexes in groups.items():
        names = [files[index][1] for index in indexes]
        some = [containers[index] for index in indexes]
        schema = physical(_with_names(resolve_schema(schema_text, file=names[0]), level))
        columns = frozenset(each["name"] for each in schema["fields"])
        for index, rows in zip(indexes, _decode_rows(schema, some, names), strict=True):
            found[index] = Records(columns, rows)
    return [found[index] for index in range(len(files))]


def _with_names(kind: Any, level: Level) -> Any:
    """A type under canonical names."""
    if isinstance(kind, list):
        return [_with_names(branch, level) for branch in kind]
    if kind_of(kind) == "array":
        return {**kind, "items": _with_names(kind["items"], level)}
    if kind_of(kind) != "record":
        return kind
    by_name = {name: name for name in level.names.values()}
    fields: dict[str, Any] = {}
    for position, each in enumerate(kind["fields"]):
        field_id = each.get("field-id")
        has_id = isinstance(field_id, int)
        name = level.names.get(field_id) if has_id else by_name.get(each["name"])
        name = f"unread{position}" if name is None or name in fields else name
        fields[name] = _with_names(each["type"], level.inner.get(name, Level()))
    return {**kind, "fields": [{"name": name, "type": made} for name, made in fields.items()]}


def _decode_rows(
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
            return [_decode_rows(schema, [one], [file])[0] for one, file in alone]
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
