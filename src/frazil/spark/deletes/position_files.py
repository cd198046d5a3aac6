"""The rows of position delete files and deletion vectors; for executors too (rules 217-228)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from frazil.errors import InvalidDataFileError
from frazil.format.schema.name_mapping import mapping_for
from frazil.spark.deletes.bitmap import Longs
from frazil.spark.files.arrow.files import FilePart, TableColumns, read_batches
from frazil.storage.files import FileIO
from frazil.storage.moved import MovedFileIO
from frazil.storage.parquet.field_ids import stored_field_id
from frazil.storage.parquet.footer import read_metadata
from frazil.storage.parquet.position_deletes import POSITION_DELETE_SCHEMA
from frazil.storage.vectors import read_deletion_vector

_FIELDS: Final = POSITION_DELETE_SCHEMA.fields
_COLUMNS: Final = TableColumns(fields=_FIELDS, mapping=mapping_for(POSITION_DELETE_SCHEMA))
_PATH, _POS = (field.name for field in _FIELDS)
_READ_AS_DICTIONARY: Final = frozenset(
    {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
)
_ROWS_AT_ONCE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class DeletedRows:
    """Rows of a position delete file.

    Attributes:
        paths: the data files that they name.
        codes: the place in `paths` of each row's data file.
        positions: each row's position.
    """

    paths: pl.Series
    codes: Longs
    positions: Longs


def vector_positions(io: FileIO, task: Mapping[str, Any]) -> Longs:
    """The positions of a deletion vector: `path`, `content_offset`, `content_size` of its entry.

    Raises:
        MissingFileError: there is no such file.
        InvalidDataFileError: the vector is broken or has not `record_count` positions.
    """
    bitmap = read_deletion_vector(
        io,
        task["path"],
        offset=task["content_offset"],
        length=task["content_size"],
        cardinality=task["record_count"],
    )
    return np.asarray(bitmap.to_array(), dtype=np.int64)


def deleted_rows(io: FileIO, path: str, file_format: str) -> Iterator[DeletedRows]:
    """The rows of a position delete file, a million at a time; without those of NULL paths.

    Paths are as `comparable_paths` gives them.

    Raises:
        MissingFileError: there is no such file.
        InvalidDataFileError: the file is damaged, or has not the columns of rule 224.
    """
    if file_format == "parquet":
        with closing(io.open_input(path)) as stream:
            try:
                file = pq.ParquetFile(stream, metadata=read_metadata(stream))
                if _is_as_specified(file.schema_arrow):
                    if _holds_dictionaries(file.metadata):
                        file = pq.ParquetFile(
                            stream, metadata=file.metadata, read_dictionary=[_PATH]
                        )
                    for batch in file.iter_batches(
                        _ROWS_AT_ONCE, columns=[_PATH, _POS], use_threads=False
                    ):
                        yield _encode(_dictionary(batch.column(_PATH)), batch.column(_POS), io)
                    return
            except (pa.ArrowException, OSError, ValueError) as error:
                raise InvalidDataFileError(
                    f"the parquet file cannot be read: {error}", file=path
                ) from None
    waiting: list[pa.Table] = []
    rows = 0
    for _, length, columns in read_batches(
        io, FilePart(path=path, file_format=file_format), _FIELDS, _COLUMNS
    ):
        waiting.append(pa.table(columns, names=[_PATH, _POS]))
        rows += length
        if rows >= _ROWS_AT_ONCE:
            yield _join(waiting, io)
            waiting, rows = [], 0
    if waiting:
        yield _join(waiting, io)


def _is_as_specified(schema: pa.Schema) -> bool:
    """Whether the two columns have their specified names, ids and types (rule 224)."""
    for field, kind in zip(_FIELDS, (pa.string(), pa.int64()), strict=True):
        found = schema.get_all_field_indices(field.name)
        if len(found) != 1:
            return False
        stored = schema.field(found[0])
        if stored.type != kind or stored_field_id(stored) != field.field_id:
            return False
    return True


def _holds_dictionaries(footer: pq.FileMetaData) -> bool:
    """Whether Arrow reads the paths as dictionaries: it does from no other encodings."""
    leaves = (footer.schema.column(place).path for place in range(footer.num_columns))
    place = next(place for place, path in enumerate(leaves) if path == _PATH)
    return all(
        _READ_AS_DICTIONARY.issuperset(footer.row_group(group).column(place).encodings)
        for group in range(footer.num_row_groups)
    )


def _dictionary(paths: pa.Array) -> pa.DictionaryArray:
    return paths if isinstance(paths, pa.DictionaryArray) else paths.dictionary_encode()


def _join(batches: list[pa.Table], io: FileIO) -> DeletedRows:
    rows = pa.concat_tables(batches).combine_chunks()
    paths, positions = (rows.column(name).combine_chunks() for name in (_PATH, _POS))
    return _encode(_dictionary(paths.cast(pa.string())), positions, io)


def _encode(paths: pa.DictionaryArray, positions: pa.Array, io: FileIO) -> DeletedRows:
    if paths.null_count or positions.null_count:
        known = pc.and_(paths.is_valid(), positions.is_valid())
        paths, positions = paths.filter(known), positions.filter(known)
    names = pl.Series(_PATH, pl.from_arrow(paths.dictionary), dtype=pl.String)
    return DeletedRows(
        comparable_paths(names, io),
        paths.indices.to_numpy().astype(np.int64),
        positions.to_numpy(),
    )


def comparable_paths(paths: pl.Series, io: FileIO) -> pl.Series:
    """Paths of data files such that equal files have equal paths.

    They are equal as text (rule 226), but in a moved table one file may have two old names.
    """
    if not isinstance(io, MovedFileIO):
        return paths
    names = paths.unique()
    places = pl.Series([io.physical(name) for name in names], dtype=pl.String)
    return paths.replace_strict(names, places)
