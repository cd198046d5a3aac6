"""The encoded records of a manifest, each found among the bytes, to be copied as they are.

What changes when an entry moves to another manifest stands at a record's head (its status, snapshot
id and sequence numbers) and in its first row id. All else is copied, so the statistics of a file
are neither decoded nor encoded.

A record begins with its head, and its path follows within a few bytes. The bytes of both are known
from the decoded columns, so they tell where a record starts. What all paths begin with stands in
each record: where it occurs as often as there are records, each occurrence is a path. Where it
occurs more often, the first bytes of each record are searched for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from frazil.storage.avro.container import AvroContainer, zigzag
from frazil.storage.avro.manifest_layout import ENTRY_FIELDS, FlatSchema, flatten

HEAD: Final = tuple(ENTRY_FIELDS.values())
FIRST_ROW_ID: Final = "first_row_id"
_LEAD: Final = (*HEAD, "content", "file_path")
_MARK: Final = 8
"""How many of the bytes that all paths begin with are looked for."""


@dataclass(frozen=True)
class EncodedRows:
    """A few texts of bytes, and which of them each row has.

    Attributes:
        texts: each once.
        numbers: of each row, an index into `texts`.
    """

    texts: tuple[bytes, ...]
    numbers: npt.NDArray[np.int64]

    @cached_property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many bytes each row has."""
        return np.array([len(text) for text in self.texts], dtype=np.int64)[self.numbers]

    def row_bytes(self, row: int) -> bytes:
        """The bytes of one row."""
        return self.texts[int(self.numbers[row])]


class RecordLayout:
    """Where the fields that change stand in a record, and how they are encoded."""

    def __init__(self, flat: FlatSchema) -> None:
        self.flat = flat
        self._types: Mapping[str, Any] = {f["name"]: f["type"] for f in flat.fields}
        names = [field["name"] for field in flat.fields]
        self.head = tuple(name for name in names if name in HEAD)
        self._to_path = tuple(names[: names.index("file_path") + 1])
        self.tail = tuple(names[names.index(FIRST_ROW_ID) :]) if FIRST_ROW_ID in names else ()

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
            return zigzag(kind.index(branch)) + _encoded_value(value)
        return _encoded_value(value)

    def heads(self, frame: pl.DataFrame) -> EncodedRows:
        """The head of each row."""
        return self._encode_rows(frame, self.head)

    def before_path(self, frame: pl.DataFrame) -> EncodedRows:
        """The bytes of each row that stand before its path and the path's length."""
        return self._encode_rows(frame, self._to_path[:-1])

    @property
    def path_branch(self) -> bytes:
        """What says that a path follows, where the schema lets it be null."""
        kind = self._types["file_path"]
        return b"" if isinstance(kind, str) else zigzag(kind.index("string"))

    def _encode_rows(self, frame: pl.DataFrame, names: Sequence[str]) -> EncodedRows:
        """The encoded fields of each row; neighbours are alike, and each run is encoded once."""
        if not names:
            return EncodedRows((b"",), np.zeros(len(frame), dtype=np.int64))
        runs = frame.select(pl.struct(names).rle().struct.unnest())
        texts: dict[bytes, int] = {}
        numbers = [
            texts.setdefault(b"".join(self.encode(n, values[n]) for n in names), len(texts))
            for values in runs["value"]
        ]
        return EncodedRows(tuple(texts), np.repeat(np.array(numbers, dtype=np.int64), runs["len"]))

    def _is_plain(self, name: str) -> bool:
        kind = self._types[name]
        branches = kind if isinstance(kind, list) else [kind]
        wanted = [each for each in branches if each != "null"]
        return len(wanted) == 1 and wanted[0] in ("int", "long", "string") and len(branches) <= 2


def _encoded_value(value: Any) -> bytes:
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
        body: all records, one after the other.
    """

    container: AvroContainer
    layout: RecordLayout
    stated: pl.DataFrame
    starts: npt.NDArray[np.int64]
    body: bytes

    @classmethod
    def of(
        cls, container: AvroContainer, flat: FlatSchema, stated: pl.DataFrame | None = None
    ) -> EntryRecords | None:
        """The records, or None where they are not written as Frazil and most others write them."""
        layout = RecordLayout(flat)
        if not layout.is_known:
            return None
        if stated is None or not set(layout.columns) <= set(stated.columns):
            stated = flat.read(container.count, container.blocks, layout.columns)
            if stated is None:
                return None
        stated = stated.select(layout.columns)
        if len(stated) != container.count or stated["file_path"].null_count():
            return None
        body = b"".join(container.blocks)
        starts = record_starts(body, layout, stated)
        return None if starts is None else cls(container, layout, stated, starts, body)

    @cached_property
    def heads(self) -> EncodedRows:
        """The head of each record as it is."""
        return self.layout.heads(self.stated)

    def record_bytes(self, first: int, end: int) -> memoryview:
        """Neighbouring records as they are, the last excluded."""
        return memoryview(self.body)[self.starts[first] : self.starts[end]]

    def bytes_of_rows(self, rows: npt.NDArray[np.int64]) -> bytes:
        """Some records as they are, one after the other."""
        _, offsets, data = _slices(self.body, self.starts).take(_numbers(rows)).buffers()
        ends = np.frombuffer(offsets, dtype=np.int64, count=len(rows) + 1)
        return bytes(memoryview(data)[: int(ends[-1])]) if data is not None else b""

    def under_heads(self, heads: EncodedRows) -> tuple[memoryview, npt.NDArray[np.int64]]:
        """All records under other heads, of a layout whose tail stays as it is.

        Returns the records one after the other, and where each starts, with the end of the last.
        """
        old = self.starts[:-1] + self.heads.lengths
        # Old head, rest, old head, rest…: every second value is what stays.
        ends = np.empty(2 * len(old) + 1, dtype=np.int64)
        ends[0::2], ends[1::2] = self.starts, old
        rests = _slices(self.body, ends).take(_numbers(np.arange(1, 2 * len(old), 2)))
        lengths = np.array([0, *map(len, heads.texts)], dtype=np.int64)
        every = _slices(b"".join(heads.texts), np.cumsum(lengths))
        texts = every.take(_numbers(heads.numbers))
        nothing = _slices(b"", np.zeros(2, dtype=np.int64))[0]
        joined = pc.binary_join_element_wise(texts, rests, nothing)
        _, offsets, data = joined.buffers()
        starts = np.frombuffer(offsets, dtype=np.int64, count=len(joined) + 1)
        return memoryview(data) if data is not None else memoryview(b""), starts

    def with_head(self, row: int, head: bytes, first_row_id: int | None) -> tuple[memoryview, ...]:
        """A record under another head, with this first row id where the layout has one."""
        start = self.starts[row] + self.heads.lengths[row]
        rest = memoryview(self.body)[start : self.starts[row + 1]]
        values = self.stated.row(row, named=True)
        if not self.layout.tail or values[FIRST_ROW_ID] == first_row_id:
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


# Arrow arrays from buffers: `pa.array` would import pandas, half a second in a fresh process.
def _slices(body: bytes, ends: npt.NDArray[np.int64]) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(body)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends) - 1, buffers)


def _numbers(numbers: npt.NDArray[np.int64]) -> pa.Int64Array:
    return pa.Int64Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def record_starts(
    body: bytes, layout: RecordLayout, stated: pl.DataFrame
) -> npt.NDArray[np.int64] | None:
    """Where each record starts, and the end of the last; None where that cannot be told."""
    before = layout.before_path(stated)
    starts = _starts_by_prefix(body, layout, stated, before)
    if starts is None:
        starts = _starts_by_search(body, layout, stated, before)
    if starts is None or not _stand_at(body, starts[:-1], layout.heads(stated)):
        return None
    return starts


def _starts_by_prefix(
    body: bytes, layout: RecordLayout, stated: pl.DataFrame, before: EncodedRows
) -> npt.NDArray[np.int64] | None:
    """Find what all paths begin with; None where it occurs elsewhere too, or is short."""
    paths = stated["file_path"]
    if paths.is_empty():
        return None
    prefix = _common_start(str(paths.min()).encode(), str(paths.max()).encode())
    marked = len(prefix) - _MARK
    if marked < 0:
        return None
    found = _occurrences(body, prefix[marked:])
    if len(found) != len(paths):
        return None
    lengths = paths.str.len_bytes().to_numpy().astype(np.int64)
    sizes = {length: len(zigzag(length)) for length in np.unique(lengths).tolist()}
    size = np.vectorize(sizes.__getitem__, otypes=[np.int64])(lengths)
    starts = found - marked - size - len(layout.path_branch) - before.lengths
    if starts[0] != 0 or not (np.diff(starts) > 0).all():
        return None
    return np.append(starts, len(body))


def _common_start(one: bytes, other: bytes) -> bytes:
    """The bytes that both begin with, and so all that lie between them in order."""
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return one[:number]
    return min(one, other, key=len)


def _occurrences(body: bytes, mark: bytes) -> npt.NDArray[np.int64]:
    """Where eight bytes occur."""
    [wanted] = np.frombuffer(mark, dtype=np.uint64)
    found: list[npt.NDArray[np.int64]] = []
    for shift in range(min(_MARK, max(0, len(body) - _MARK + 1))):
        words = np.frombuffer(body, np.uint64, (len(body) - shift) // _MARK, shift)
        found.append(np.flatnonzero(words == wanted) * _MARK + shift)
    return np.sort(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def _starts_by_search(
    body: bytes, layout: RecordLayout, stated: pl.DataFrame, before: EncodedRows
) -> npt.NDArray[np.int64] | None:
    """Search for the bytes up to each path's end forwards and backwards; None where both differ.

    The first occurrences can only be too early, the last ones only too late.
    """
    branch = layout.path_branch
    leads = [
        before.texts[number] + branch + zigzag(len(path)) + path
        for number, path in zip(
            before.numbers.tolist(), stated["file_path"].cast(pl.Binary).to_list(), strict=True
        )
    ]
    starts: list[int] = []
    position = 0
    for lead in leads:
        start = body.find(lead, position)
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
    return np.array(starts, dtype=np.int64)


def _stand_at(body: bytes, starts: npt.NDArray[np.int64], heads: EncodedRows) -> bool:
    """Whether each head stands where its record starts."""
    every = np.frombuffer(body, np.uint8)
    for number, text in enumerate(heads.texts):
        at = starts[heads.numbers == number]
        if not len(text) or not len(at):
            continue
        if at[-1] + len(text) > len(body):
            return False
        wanted = np.frombuffer(text, np.uint8)
        if not (every[at[:, None] + np.arange(len(text))] == wanted).all():
            return False
    return True
