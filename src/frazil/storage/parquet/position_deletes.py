"""Position delete files: rows of a data file's path and a position, as Parquet."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from frazil.format import types as I
from frazil.format.manifests import DataFile
from frazil.format.properties.table import (
    DELETE_DICTIONARY_SIZE,
    DELETE_PAGE_SIZE,
    DELETE_ROW_GROUP_SIZE,
    DICTIONARY_SIZE,
    PAGE_SIZE,
    ROW_GROUP_SIZE,
    delete_codec,
)
from frazil.format.schema import Schema
from frazil.storage.file_kinds import POSITION_DELETE_FILES
from frazil.storage.parquet.field_ids import field_id_metadata
from frazil.storage.parquet.metrics import MetricsReader

POSITION_DELETE_SCHEMA: Final = Schema(
    (
        I.NestedField(2147483546, "file_path", I.StringType(), required=True),
        I.NestedField(2147483545, "pos", I.LongType(), required=True),
    )
)
"""The columns of a position delete file (rule 224)."""

_ARROW: Final = pa.schema(
    [
        pa.field(field.name, kind, nullable=False, metadata=field_id_metadata(field.field_id))
        for field, kind in zip(
            POSITION_DELETE_SCHEMA.fields,
            (pa.dictionary(pa.int32(), pa.string()), pa.int64()),
            strict=True,
        )
    ]
)
_METRICS: Final = MetricsReader(
    POSITION_DELETE_SCHEMA, POSITION_DELETE_FILES.metrics_modes(POSITION_DELETE_SCHEMA, {})
)
_ROW_BYTES: Final = 8
_MOST_ROWS: Final = 1 << 20
"""The most rows of a row group: what waits in memory, and how closely a file is sized."""

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionDeleteOptions:
    """How position delete files are encoded; sizes are in bytes."""

    codec: str
    codec_level: int | None
    row_group_size: int
    page_size: int
    dictionary_size: int

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Self:
        """Return what properties say of deletes, or else of data files."""
        codec, level = delete_codec(properties)
        return cls(
            codec=codec,
            codec_level=level,
            row_group_size=DELETE_ROW_GROUP_SIZE.of(properties) or ROW_GROUP_SIZE.of(properties),
            page_size=DELETE_PAGE_SIZE.of(properties) or PAGE_SIZE.of(properties),
            dictionary_size=DELETE_DICTIONARY_SIZE.of(properties) or DICTIONARY_SIZE.of(properties),
        )


class PositionDeleteFile:
    """A position delete file in the making, in memory.

    Positions are added data file by data file in the order of paths, each file's in ascending
    order (rule 225).
    """

    def __init__(self, options: PositionDeleteOptions) -> None:
        self._sink = io.BytesIO()
        self._rows_at_once = max(1, min(_MOST_ROWS, options.row_group_size // _ROW_BYTES))
        self._writer = pq.ParquetWriter(
            self._sink,
            _ARROW,
            compression="none" if options.codec == "uncompressed" else options.codec,
            compression_level=options.codec_level,
            # Every reader knows plain integers; compressed they are small too.
            use_dictionary=["file_path"],
            store_schema=False,
            data_page_size=options.page_size,
            dictionary_pagesize_limit=options.dictionary_size,
        )
        self._paths: list[str] = []
        self._pending: list[tuple[int, Longs]] = []
        self._pending_rows = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The data files that it is about, each once."""
        return tuple(dict.fromkeys(self._paths))

    @property
    def size_in_bytes(self) -> int:
        """What it takes already, with the positions that wait to be encoded as they are."""
        return self._sink.tell() + self._pending_rows * _ROW_BYTES

    def add(self, path: str, positions: Longs) -> None:
        """Add deleted positions of a data file: not before those that were added last."""
        while len(positions):
            room = self._rows_at_once - self._pending_rows
            if not self._pending or self._paths[-1] != path:
                self._paths.append(path)
            self._pending.append((len(self._paths) - 1, positions[:room]))
            self._pending_rows += min(room, len(positions))
            positions = positions[room:]
            if self._pending_rows == self._rows_at_once:
                self._flush()

    def close(self, path: str) -> tuple[bytes, DataFile]:
        """Return the file's bytes, and its entry without a partition."""
        self._flush()
        self._writer.close()
        data = self._sink.getvalue()
        found = _METRICS.metrics(pq.read_metadata(pa.BufferReader(data)))
        about = self.paths
        entry = DataFile(
            content=POSITION_DELETE_FILES.content,
            file_path=path,
            file_format=POSITION_DELETE_FILES.file_format,
            record_count=found.record_count,
            file_size_in_bytes=len(data),
            column_sizes=found.column_sizes,
            value_counts=found.value_counts,
            null_value_counts=found.null_value_counts,
            lower_bounds=found.lower_bounds,
            upper_bounds=found.upper_bounds,
            split_offsets=found.split_offsets,
            referenced_data_file=about[0] if len(about) == 1 else None,
        )
        return data, entry

    def _flush(self) -> None:
        if not self._pending:
            return
        first = self._pending[0][0]
        codes = np.concatenate(
            [np.full(len(each), code - first, dtype=np.int32) for code, each in self._pending]
        )
        paths = pa.DictionaryArray.from_arrays(
            pa.array(codes), pa.array(self._paths[first:], pa.string())
        )
        positions = pa.array(np.concatenate([each for _, each in self._pending]))
        columns: list[Any] = [paths, positions]
        table = pa.Table.from_arrays(columns, schema=_ARROW)
        self._writer.write_table(table, row_group_size=self._rows_at_once)
        self._pending, self._pending_rows = [], 0
