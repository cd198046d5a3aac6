"""Field ids as Arrow hands them to Parquet and back: in a field's metadata."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

PARQUET_FIELD_ID: Final = b"PARQUET:field_id"


def field_id_metadata(field_id: int) -> dict[bytes, bytes]:
    """Return the metadata of an Arrow field that Parquet files keep the id of."""
    return {PARQUET_FIELD_ID: b"%d" % field_id}


def stored_field_id(field: pa.Field, key: bytes = PARQUET_FIELD_ID) -> int | None:
    """Return the id that a file gave a field; None where it gave none."""
    text = (field.metadata or {}).get(key)
    return None if text is None else int(text)
