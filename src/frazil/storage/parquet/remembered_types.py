"""Arrow's own types of columns, which writers keep in a Parquet footer beside Parquet's.

delta-rs, Polars, DataFusion and others keep the Arrow schema that they wrote, so that Arrow gives
the same types back: views in place of strings, lists of one length, durations. The columns
themselves are plain, and a table's types are those of Parquet.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_KEY: Final = b"ARROW:schema"
# A key of the key-value metadata in Thrift: field 1, 12 bytes, and the value's field behind it.
_BEFORE: Final = b"\x18\x0c"
_WRITTEN_KEY: Final = _BEFORE + _KEY + b"\x18"
_OTHER_KEY: Final = b"arrow;schema"

_MAGIC: Final = b"PAR1"
_AS_STORED: Final = ("arrow.uuid", "arrow.parquet.variant", "geoarrow.")
"""Extensions that say what Parquet's own types say."""


def needs_parquet_types(footer: pq.FileMetaData) -> bool:
    """Whether Arrow would give a column back in a type that stands for none of a table's."""
    if _KEY not in (footer.metadata or {}):
        return False
    return any(_is_of_arrow_alone(field.type) for field in footer.schema.to_arrow_schema())


def with_parquet_types(footer: bytes) -> pq.FileMetaData | None:
    """Return what a footer says in Parquet's types alone; None where that cannot be told.

    The Arrow schema in it gets another name, of the same length.
    """
    # Statistics stand before the key-value metadata: the last place is that of the key.
    place = footer.rfind(_WRITTEN_KEY) + len(_BEFORE)
    if place < len(_BEFORE):
        return None
    other = footer[:place] + _OTHER_KEY + footer[place + len(_KEY) :]
    whole = _MAGIC + other + struct.pack("<I", len(other)) + _MAGIC
    found = pq.read_metadata(pa.BufferReader(whole))
    return found if _KEY not in (found.metadata or {}) else None


def _is_of_arrow_alone(kind: Any) -> bool:
    t = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return not kind.extension_name.startswith(_AS_STORED)
    if t.is_dictionary(kind):
        return _is_of_arrow_alone(kind.value_type)
    if t.is_map(kind):
        return _is_of_arrow_alone(kind.key_type) or _is_of_arrow_alone(kind.item_type)
    if t.is_struct(kind) or t.is_list(kind) or t.is_large_list(kind):
        return any(_is_of_arrow_alone(kind.field(i).type) for i in range(kind.num_fields))
    return bool(
        t.is_string_view(kind)
        or t.is_binary_view(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
        or t.is_fixed_size_list(kind)
        or t.is_duration(kind)
        or t.is_run_end_encoded(kind)
    )
