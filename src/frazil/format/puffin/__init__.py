"""Puffin files: the footer, the blobs, and the deletion vectors in them (rules 237-250)."""

from __future__ import annotations

from frazil.format.puffin.files import (
    DELETION_VECTOR,
    PuffinBlob,
    PuffinBuilder,
    PuffinFooter,
    blob_bytes,
    deletion_vector_from_bytes,
    deletion_vector_to_bytes,
    parse_puffin_footer,
    puffin_footer_size,
    read_puffin_footer,
)

__all__ = [
    "DELETION_VECTOR",
    "PuffinBlob",
    "PuffinBuilder",
    "PuffinFooter",
    "blob_bytes",
    "deletion_vector_from_bytes",
    "deletion_vector_to_bytes",
    "parse_puffin_footer",
    "puffin_footer_size",
    "read_puffin_footer",
]
