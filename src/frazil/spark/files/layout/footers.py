"""What a Parquet file's own footer says: its size, its columns, their ids and types.

A manifest does not tell whether a data file has field ids (a migrated file has none), under which
names its columns are stored, or whether it holds a column at all. Facts of a file never change, so
they are kept with the files, bounded in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import pyarrow as pa

from frazil.errors import FrazilError, InvalidDataFileError, MissingFileError
from frazil.storage.caches import BoundedCache, Sized
from frazil.storage.files import FileIO, local_path
from frazil.storage.parquet.field_ids import PARQUET_FIELD_ID, stored_field_id
from frazil.storage.parquet.footer import read_description
from frazil.storage.side_by_side import WAITING_THREADS, in_threads

INT96: Final = "INT96"
"""The kind of a timestamp in Parquet's deprecated 96-bit form (SPEC rule 260)."""

OF_UNSIGNED_LONGS: Final = (20, 0)
"""Precision and scale of the decimals as which Spark reads unsigned longs."""

NO_SIZES: Final[Mapping[str, int]] = {}
"""Of files whose entries nobody has looked at."""

_BYTES_PER_FILE: Final = 512
_BYTES_PER_COLUMN: Final = 256


@dataclass(frozen=True, slots=True)
class FooterColumn:
    """One column of a data file, or one nested below another.

    Attributes:
        kind: ``struct``, ``list``, ``map``, or the name of an Arrow type for one value.
        children: a struct's fields; a list's element; a map's key and value.
    """

    name: str
    field_id: int | None
    kind: str
    children: tuple[FooterColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What the footer of a Parquet file says."""

    size: int
    record_count: int
    columns: tuple[FooterColumn, ...]

    @property
    def has_field_ids(self) -> bool:
        """Whether any column, at any depth, has a field id (SPEC rule 63)."""
        return has_ids(self.columns)


def _shared_facts(
    kept: BoundedCache[FileFacts], facts: FileFacts, _: FileFacts | None
) -> Sized[FileFacts]:
    """Facts as they are kept: files of one layout share its columns."""
    columns = kept.shared_part(facts.columns)
    size = _BYTES_PER_COLUMN * _column_count(columns)
    return Sized(replace(facts, columns=columns), _BYTES_PER_FILE, ((columns, size),))


def _column_count(columns: Sequence[FooterColumn]) -> int:
    return sum(1 + _column_count(column.children) for column in columns)


def file_facts(
    io: FileIO, paths: Sequence[str], sizes: Mapping[str, int] = NO_SIZES
) -> dict[str, FileFacts]:
    """The facts of these Parquet files by path, read in parallel where they are not known.

    Args:
        sizes: as entries state them, of files of stores: right ones save requests.

    Raises:
        MissingFileError: a file is not there.
        InvalidDataFileError: a file is not Parquet, or its footer is damaged.
    """
    return _facts(io, paths, lambda path: read_facts(io, path, sizes.get(path)))


def sampled_facts(
    io: FileIO, paths: Sequence[str], sizes: Mapping[str, int] = NO_SIZES
) -> dict[str, FileFacts]:
    """`file_facts` of the files that are there: a sample finds out about files, it proves none."""

    def read(path: str) -> FileFacts | None:
        with suppress(MissingFileError):
            return read_facts(io, path, sizes.get(path))
        return None

    return _facts(io, paths, read)


def _facts(
    io: FileIO, paths: Sequence[str], read: Callable[[str], FileFacts | None]
) -> dict[str, FileFacts]:
    kept: BoundedCache[FileFacts] = io.caches["footers"]
    facts = {path: known for path in paths if (known := kept.get(path)) is not None}
    unknown = [path for path in dict.fromkeys(paths) if path not in facts]
    if not unknown:
        return facts
    results = in_threads(read, unknown, threads=WAITING_THREADS, name="frazil-footers")
    found = {path: known for path, known in zip(unknown, results, strict=True) if known is not None}
    for path, known in found.items():
        kept.change(path, partial(_shared_facts, kept, known))
    return {**facts, **found}


def read_facts(io: FileIO, path: str, size: int | None = None) -> FileFacts:
    """The facts of one file, from its footer.

    Args:
        size: as an entry states it; the store is asked where it is not that.
    """
    if size is not None and local_path(path) is None:
        failures = (FrazilError, pa.ArrowException, OSError, ValueError)
        with suppress(*failures), io.open_footer(path, size) as stream:
            metadata = read_description(stream)
            return FileFacts(size, metadata.num_rows, columns_of_parquet(metadata.schema))
    try:
        with io.open_input(path) as stream:
            metadata = read_description(stream)
            size = stream.seek(0, 2)
            columns = columns_of_parquet(metadata.schema)
    except FrazilError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidDataFileError(
            f"the Parquet footer cannot be read: {error}", file=path
        ) from None
    return FileFacts(size=size, record_count=metadata.num_rows, columns=columns)


def columns_of_parquet(schema: Any) -> tuple[FooterColumn, ...]:
    """The columns of a Parquet file's schema, with the ids that the file gives them."""
    columns = columns_of_arrow(schema.to_arrow_schema(), PARQUET_FIELD_ID)
    stored = [schema.column(index).physical_type for index in range(len(schema))]
    if INT96 not in stored or len(stored) != sum(_leaf_count(column) for column in columns):
        return columns
    kinds = iter(stored)
    return tuple(_with_int96(column, kinds) for column in columns)


def _leaf_count(column: FooterColumn) -> int:
    return sum(_leaf_count(child) for child in column.children) if column.children else 1


def _with_int96(column: FooterColumn, kinds: Iterator[str]) -> FooterColumn:
    # Arrow shows INT96 as nanoseconds; Spark reads INT96 but no other nanoseconds as timestamps.
    if column.children:
        children = tuple(_with_int96(child, kinds) for child in column.children)
        return replace(column, children=children)
    return replace(column, kind=INT96) if next(kinds) == INT96 else column


def columns_of_arrow(schema: pa.Schema, id_key: bytes) -> tuple[FooterColumn, ...]:
    """The columns of an Arrow schema that a file gave, with ids from the fields' metadata."""
    return tuple(_file_column(field, id_key) for field in schema)


def has_ids(columns: Sequence[FooterColumn]) -> bool:
    """Whether any column, at any depth, has a field id (SPEC rule 63)."""
    return any(column.field_id is not None or has_ids(column.children) for column in columns)


def _file_column(field: pa.Field, id_key: bytes) -> FooterColumn:
    stored = stored_field_id(field, id_key)
    field_id = None if stored is None or stored < 0 else stored
    data_type: Any = field.type
    children: tuple[FooterColumn, ...] = ()
    if pa.types.is_struct(data_type):
        kind = "struct"
        parts = [data_type.field(index) for index in range(data_type.num_fields)]
        children = tuple(_file_column(part, id_key) for part in parts)
    elif pa.types.is_list(data_type) or pa.types.is_large_list(data_type):
        kind = "list"
        children = (_file_column(data_type.value_field, id_key),)
    elif pa.types.is_map(data_type):
        kind = "map"
        children = tuple(
            _file_column(part, id_key) for part in (data_type.key_field, data_type.item_field)
        )
    else:
        kind = str(data_type)
    return FooterColumn(field.name, field_id, kind, children)
