"""The encoded records of a manifest, each found among the bytes, to be copied as they are.

What changes when an entry moves to another manifest stands at a record's head (its status, snapshot
id and sequence numbers) and in its first row id. All else is copied, so the statistics of a file
are neither decoded nor encoded.

A record begins with its head, and its path follows within a few bytes, so its first bytes are known
from the decoded columns. They are searched for forwards and backwards. The first occurrences can
only be too early, the last ones only too late: where the two searches agree, they are right.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from typing import Any, Final

import polars as pl

from frazil.storage.avro.container import AvroContainer, as_container, zigzag
from frazil.storage.avro.manifest_layout import ENTRY_FIELDS, FlatSchema, flatten

HEAD: Final = tuple(ENTRY_FIELDS.values())
FIRST_ROW_ID: Final = "first_row_id"
_LEAD: Final = (*HEAD, "content", "file_path")


class RecordLayout:
    """Where the fields that change stand in a record, and how they are encoded."""

    def __init__(self, flat: FlatSchema) -> None:
        self.flat = flat
        self._types: Mapping[str, Any] = {f["name"]: f["type"] for f in flat.fields}
        names = [field["name"] for field in flat.fields]
        self.head = tuple(name for name in names if name in HEAD)
        self._to_path = tuple(names[: names.index("file_path") + 1])
        after = names[names.index(FIRST_ROW_ID) :] if FIRST_ROW_ID in names else []
        self.tail = tuple(after)

    @property
    def columns(self) -> list[str]:
        """The columns whose values tell the bytes of these fields."""
        return list(dict.fromkeys((*self._to_path, *self.tail)))

    @property
    def is_known(self) -> bool:
        """Whether a record starts with its head, and the path follows it."""
        return (
            self.head == self._to_path[: len(self.head)]
            and set(self._to_path) <= set(_LEAD)
            and not self.flat.branches
            and all(self._is_plain(name) for name in self.columns)
        )

    def encode(self, name: str, value: Any) -> bytes:
        """A field's value as the record holds it."""
        kind = self._types[name]
        if isinstance(kind, list):
            if value is None:
                return zigzag(kind.index("null"))
            branch = next(each for each in kind if each != "null")
            return zigzag(kind.index(branch)) + _plain(value)
        return _plain(value)

    def heads(self, frame: pl.DataFrame) -> list[bytes]:
        """The head of each row."""
        return self._joined(frame, self.head)

    def leads(self, frame: pl.DataFrame) -> list[bytes]:
        """The bytes of each row up to the end of its path."""
        before = self._joined(frame, self._to_path[:-1])
        kind = self._types["file_path"]
        branch = b"" if isinstance(kind, str) else zigzag(kind.index("string"))
        paths = frame["file_path"].cast(pl.Binary).to_list()
        lengths = {length: branch + zigzag(length) for length in set(map(len, paths))}
        return [
            start + lengths[len(path)] + path for start, path in zip(before, paths, strict=True)
        ]

    def _joined(self, frame: pl.DataFrame, names: Sequence[str]) -> list[bytes]:
        """The encoded fields of each row; neighbours are alike, and each run is encoded once."""
        if not names:
            return [b""] * len(frame)
        found: list[bytes] = []
        runs = frame.select(pl.struct(names).rle().struct.unnest())
        for count, values in runs.iter_rows():
            encoded = b"".join(self.encode(name, values[name]) for name in names)
            found += [encoded] * count
        return found

    def _is_plain(self, name: str) -> bool:
        kind = self._types[name]
        branches = kind if isinstance(kind, list) else [kind]
        wanted = [each for each in branches if each != "null"]
        return len(wanted) == 1 and wanted[0] in ("int", "long", "string") and len(branches) <= 2


def _plain(value: Any) -> bytes:
    if isinstance(value, str):
        encoded = value.encode()
        return zigzag(len(encoded)) + encoded
    return zigzag(value)


@dataclass(frozen=True)
class EntryRecords:
    """The records of one manifest as bytes.

    Attributes:
        container: the manifest's, decompressed.
        layout: of its records.
        stated: what the records themselves say in the columns of the layout, nothing inherited.
        starts: where each record starts in `body`, and the end of the last.
    """

    container: AvroContainer
    layout: RecordLayout
    stated: pl.DataFrame
    starts: tuple[int, ...]

    @classmethod
    def of(cls, container: AvroContainer, flat: FlatSchema) -> EntryRecords | None:
        """The records, or None where they are not written as Frazil and most others write them."""
        layout = RecordLayout(flat)
        if not layout.is_known:
            return None
        data = as_container(flat.as_avro(), container.count, container.blocks)
        try:
            stated = pl.read_avro(BytesIO(data), columns=layout.columns)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
            return None
        if len(stated) != container.count or stated["file_path"].null_count():
            return None
        starts = _starts(b"".join(container.blocks), layout.leads(stated))
        return None if starts is None else cls(container, layout, stated, starts)

    @cached_property
    def body(self) -> memoryview:
        """All records, one after the other."""
        return memoryview(b"".join(self.container.blocks))

    @cached_property
    def heads(self) -> list[bytes]:
        """The head of each record as it is."""
        return self.layout.heads(self.stated)

    def between(self, first: int, end: int) -> memoryview:
        """Neighbouring records as they are, the last excluded."""
        return self.body[self.starts[first] : self.starts[end]]

    def under_heads(self, first: int, end: int, heads: Sequence[bytes]) -> list[bytes | memoryview]:
        """Neighbouring records under other heads, of a layout whose tail stays as it is."""
        body, starts, before = self.body, self.starts, self.heads
        parts: list[bytes | memoryview] = []
        for row in range(first, end):
            parts += (heads[row], body[starts[row] + len(before[row]) : starts[row + 1]])
        return parts

    def changed(self, row: int, head: bytes, first_row_id: int | None) -> tuple[memoryview, ...]:
        """A record under another head, with this first row id where the layout has one."""
        start = self.starts[row] + len(self.heads[row])
        rest = self.body[start : self.starts[row + 1]]
        if not self.layout.tail:
            return (memoryview(head), rest)
        values = self.stated.row(row, named=True)
        if values[FIRST_ROW_ID] == first_row_id:
            return (memoryview(head), rest)
        names = self.layout.tail
        before = b"".join(self.layout.encode(name, values[name]) for name in names)
        if rest[len(rest) - len(before) :] != before:
            raise ValueError(f"the last fields of record {row} are not where they were expected")
        after = b"".join(
            self.layout.encode(name, first_row_id if name == FIRST_ROW_ID else values[name])
            for name in names
        )
        return (memoryview(head), rest[: len(rest) - len(before)], memoryview(after))


def flat_schema_of(schema: Mapping[str, Any], *, file: str) -> FlatSchema:
    """The flat form of an Avro schema of manifests."""
    return flatten(json.dumps(schema, separators=(",", ":")).encode(), file=file)


def _starts(body: bytes, leads: Sequence[bytes]) -> tuple[int, ...] | None:
    """Where each record starts, and the end; None where the searches disagree."""
    starts: list[int] = []
    find, position = body.find, 0
    for lead in leads:
        start = find(lead, position)
        if start < 0:
            return None
        starts.append(start)
        position = start + len(lead)
    starts.append(len(body))
    if starts[0] != 0:
        return None
    for lead, (start, end) in zip(reversed(leads), reversed(list(pairwise(starts))), strict=True):
        if body.rfind(lead, start, end) != start:
            return None
    return tuple(starts)
