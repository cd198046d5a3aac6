"""Many containers read at once: each says what it says when it is read alone."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidManifestError
from frazil.storage.avro.container import as_container_of_blocks
from frazil.storage.avro.records import Level, read_many_records

_SCHEMA = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "path", "type": "string", "field-id": 1},
        {"name": "length", "type": ["null", "long"], "field-id": 2},
    ],
}
_LEVEL = Level(names={1: "path", 2: "length"})
_NUMBERS = {"type": "record", "name": "n", "fields": [{"name": "n", "type": "long", "field-id": 1}]}
_ROWS = st.tuples(st.sampled_from(["", "a", "ab", "b"]), st.sampled_from([None, 0, 1, 128, 300]))


def container(rows: list[tuple[str, int | None]], codec: str) -> bytes:
    stream = BytesIO()
    dicts: list[dict[str, Any]] = [{"path": path, "length": length} for path, length in rows]
    fastavro.writer(stream, _SCHEMA, dicts, codec=codec, sync_marker=b"0123456789abcdef")
    return stream.getvalue()


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(_ROWS, max_size=3)), max_size=8))
def test_lists_that_end_as_those_before(steps: list[tuple[int, list[Any]]]) -> None:
    lists: list[list[Any]] = []
    for kind, new in steps:
        before = lists[-1] if lists else []
        # As an append, as an append that merged, as a list of another table.
        lists.append([new + before, new + before[1:], new][kind])
    files = [(container(rows, "deflate"), f"{n}.avro") for n, rows in enumerate(lists)]
    read = read_many_records(files, _LEVEL)
    assert [[(row["path"], row["length"]) for row in one.rows] for one in read] == lists


def numbers(count: int, body: bytes) -> bytes:
    return as_container_of_blocks(_NUMBERS, [(count, body)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # 129 is 0x82 0x02, and 1 is 0x02: the bytes end alike, the rows do not.
        ((1, b"\x02"), (1, b"\x82\x02")),
        ((1, b"\x02"), (2, b"\x04\x82\x02")),
        ((2, b"\x02\x02"), (2, b"\x82\x02\x02")),
        ((1, b"\x02"), (3, b"\x04\x06\x02")),
        ((1, b"\x02"), (1, b"\x02")),
    ],
)
def test_bytes_that_end_alike_need_not_be_rows_that_do(
    before: tuple[int, bytes], after: tuple[int, bytes]
) -> None:
    files = [(numbers(*before), "before.avro"), (numbers(*after), "after.avro")]
    level = Level(names={1: "n"})
    together = [one.rows for one in read_many_records(files, level)]
    assert together == [read_many_records([file], level)[0].rows for file in files]


def test_damage_before_what_is_known_is_told_by_its_file() -> None:
    files = [(numbers(1, b"\x02"), "before.avro"), (numbers(2, b"\x80\x80\x02"), "after.avro")]
    cut = [(numbers(1, b"\x02"), "before.avro"), (numbers(3, b"\x04\x02"), "after.avro")]
    level = Level(names={1: "n"})
    for some in (files, cut):
        with pytest.raises(InvalidManifestError, match=r"after\.avro"):
            read_many_records(some, level)
