"""Parquet files of one schema become one file of all their row groups; no page is decoded.

The bytes of each file but its footer follow those of the first one, so whatever points into them
moves by one distance. Offset indexes have such pointers inside and are written anew behind the
last row group.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO, Final

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from frazil.errors import InvalidDataFileError
from frazil.storage.parquet.footer import MAGIC, Value, read_footer, read_value, write_value

Struct = dict[int, Value]

# FileMetaData
_NUM_ROWS, _ROW_GROUPS = 3, 4
# RowGroup
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
# ColumnChunk
_FILE_PATH, _CHUNK_OFFSET, _META_DATA = 1, 2, 3
_OFFSET_INDEX_OFFSET, _OFFSET_INDEX_LENGTH, _COLUMN_INDEX_OFFSET = 4, 5, 6
_CRYPTO, _ENCRYPTED = 8, 9
# ColumnMetaData: data, index and dictionary pages, bloom filter
_PLACES: Final = (9, 10, 11, 14)
# OffsetIndex and PageLocation
_LOCATIONS, _PAGE_OFFSET = 1, 1

_COPIED: Final = 4 << 20
"""So many bytes are copied at a time."""


def join_files(paths: Sequence[str]) -> int:
    """Append the row groups of local Parquet files to the first one, in order; remove the others.

    Returns the length of the first file in bytes.
    """
    first, *others = paths
    with open(first, "r+b") as target:
        end, footer = read_footer(target, first)
        whole = _decode_footer(footer, first)
        schema = _without_rows(whole)
        groups: list[Struct] = list(whole[_ROW_GROUPS][1][1])
        rows = int(whole[_NUM_ROWS][1])
        moved: list[tuple[Struct, Struct]] = []
        for path in others:
            with open(path, "rb") as source:
                length, text = read_footer(source, path)
                part = _decode_footer(text, path)
                if _without_rows(part) != schema:
                    raise InvalidDataFileError(
                        f"the file does not hold the same columns as {first}", file=path
                    )
                indexes = _offset_indexes(source, part)
                distance = end - len(MAGIC)
                _copy(source, target, len(MAGIC), length - len(MAGIC), end)
            for group in part[_ROW_GROUPS][1][1]:
                _move_group(group, distance)
                groups.append(group)
            for _, index in indexes:
                for location in index[_LOCATIONS][1][1]:
                    _move(location, (_PAGE_OFFSET,), distance)
            moved += indexes
            rows += int(part[_NUM_ROWS][1])
            end += length - len(MAGIC)
        target.seek(end)
        for chunk, index in moved:
            text = _encode_footer(index)
            chunk[_OFFSET_INDEX_OFFSET] = (TType.I64, target.tell())
            chunk[_OFFSET_INDEX_LENGTH] = (TType.I32, len(text))
            target.write(text)
        for number, group in enumerate(groups):
            if _ORDINAL in group:
                group[_ORDINAL] = (TType.I16, number)
        whole[_NUM_ROWS] = (TType.I64, rows)
        whole[_ROW_GROUPS] = (TType.LIST, (TType.STRUCT, groups))
        text = _encode_footer(whole)
        target.write(text + struct.pack("<I", len(text)) + MAGIC)
        target.truncate()
        size = target.tell()
    for path in others:
        os.remove(path)
    return size


def _decode_footer(text: bytes, path: str) -> Struct:
    try:
        found: Struct = read_value(TCompactProtocol(TMemoryBuffer(text)), TType.STRUCT)
        chunks = [chunk for group in found[_ROW_GROUPS][1][1] for chunk in group[_COLUMNS][1][1]]
    except Exception as error:  # damaged bytes make Thrift fail in many ways
        raise InvalidDataFileError(
            f"the Parquet footer is damaged: {error!r}", file=path
        ) from error
    if any({_FILE_PATH, _CRYPTO, _ENCRYPTED} & chunk.keys() for chunk in chunks):
        raise InvalidDataFileError("the file is encrypted or in several parts", file=path)
    return found


def _encode_footer(value: Struct) -> bytes:
    buffer = TMemoryBuffer()
    write_value(TCompactProtocol(buffer), TType.STRUCT, value)
    return bytes(buffer.getvalue())


def _without_rows(footer: Struct) -> dict[int, Any]:
    return {key: value for key, value in footer.items() if key not in (_NUM_ROWS, _ROW_GROUPS)}


def _offset_indexes(source: BinaryIO, footer: Struct) -> list[tuple[Struct, Struct]]:
    """Each column chunk that has an offset index, and the index."""
    found = []
    for group in footer[_ROW_GROUPS][1][1]:
        for chunk in group[_COLUMNS][1][1]:
            if _OFFSET_INDEX_OFFSET in chunk:
                source.seek(chunk[_OFFSET_INDEX_OFFSET][1])
                text = source.read(chunk[_OFFSET_INDEX_LENGTH][1])
                index = read_value(TCompactProtocol(TMemoryBuffer(text)), TType.STRUCT)
                found.append((chunk, index))
    return found


def _move_group(group: Struct, distance: int) -> None:
    _move(group, (_GROUP_OFFSET,), distance)
    for chunk in group[_COLUMNS][1][1]:
        _move(chunk, (_CHUNK_OFFSET, _COLUMN_INDEX_OFFSET), distance)
        _move(chunk[_META_DATA][1], _PLACES, distance)


def _move(value: Struct, fields: Sequence[int], distance: int) -> None:
    for field in fields:
        # 0 stands for nothing: parquet-mr writes it where the chunk has no place of its own.
        if field in value and value[field][1]:
            value[field] = (value[field][0], value[field][1] + distance)


def _copy(source: BinaryIO, target: BinaryIO, start: int, count: int, to: int) -> None:
    source.seek(start)
    target.seek(to)
    while count:
        some = source.read(min(count, _COPIED))
        if not some:
            raise InvalidDataFileError(f"the file ends {count} bytes early", file=source.name)
        target.write(some)
        count -= len(some)
