"""Files that manifests name beside what lies in the store, as columns."""

from __future__ import annotations

from typing import Final

import polars as pl

from frazil.errors import InvalidDataFileError, MissingFileError
from frazil.format.manifests import Content, EntryStatus
from frazil.storage.files import FileIO
from frazil.storage.stored_files import stored_files
from frazil.storage.vectors import read_deletion_vector

STATED: Final = {
    "content": pl.Int32(),
    "file_path": pl.String(),
    "file_format": pl.String(),
    "record_count": pl.Int64(),
    "file_size_in_bytes": pl.Int64(),
    "content_offset": pl.Int64(),
    "content_size_in_bytes": pl.Int64(),
}
"""The columns of entries that can be checked."""

PROBLEMS: Final = {
    "file_path": pl.String(),
    "kind": pl.String(),
    "problem": pl.String(),
    "stated": pl.Int64(),
    "found": pl.Int64(),
    "content_offset": pl.Int64(),
    "reason": pl.String(),
}
"""What is wrong with a file: `missing`, `unreadable`, `size` or `record count`; what metadata says
and what was found."""

KINDS: Final = {
    int(Content.DATA): "data",
    int(Content.POSITION_DELETES): "position deletes",
    int(Content.EQUALITY_DELETES): "equality deletes",
}
"""What errors and checks call a file, by its content."""
VECTOR: Final = "deletion vector"
_KIND: Final = (
    pl.when(pl.col("file_format").str.to_lowercase() == "puffin")
    .then(pl.lit(VECTOR))
    .otherwise(pl.col("content").replace_strict(KINDS, default="file", return_dtype=pl.String))
)


def stated_entries(entries: pl.DataFrame) -> pl.DataFrame:
    """Return the live entries of a manifest with the columns of `STATED`."""
    live = entries.filter(pl.col("status") != int(EntryStatus.DELETED))
    return live.select(
        pl.col(name).cast(dtype) if name in live.columns else pl.lit(None, dtype=dtype).alias(name)
        for name, dtype in STATED.items()
    )


def check_entries(io: FileIO, stated: pl.DataFrame) -> pl.DataFrame:
    """Return what is wrong with the files of entries, in the columns of `PROBLEMS`.

    Each file is looked at once, whatever number of entries names it.

    Raises:
        StorageError: the store does not answer.
    """
    entries = stated.unique(maintain_order=True).with_columns(_KIND.alias("kind"))
    files = entries.select("file_path", "file_format").unique("file_path", maintain_order=True)
    found = stored_files(io, files.rows())
    seen = files.select("file_path").with_columns(
        pl.Series("size", [each.size for each in found], pl.Int64),
        pl.Series("rows", [each.record_count for each in found], pl.Int64),
        pl.Series("reason", [each.reason for each in found], pl.String),
    )
    beside = entries.join(seen, on="file_path", how="left", maintain_order="left")
    problems = [
        _problems(beside, pl.col("size").is_null(), "missing"),
        _problems(beside, pl.col("reason").is_not_null(), "unreadable"),
        _problems(
            beside, pl.col("size") != pl.col("file_size_in_bytes"), "size", "file_size_in_bytes"
        ),
        _problems(beside, pl.col("rows") != pl.col("record_count"), "record count", "record_count"),
        _vectors(io, beside.filter(pl.col("kind") == VECTOR, pl.col("size").is_not_null())),
    ]
    return pl.concat(problems)


def problem(
    path: str,
    kind: str,
    what: str,
    *,
    stated: int | None = None,
    found: int | None = None,
    reason: str | None = None,
) -> pl.DataFrame:
    """Return one row of `PROBLEMS`."""
    row = (path, kind, what, stated, found, None, reason)
    return pl.DataFrame([row], schema=PROBLEMS, orient="row")


_FOUND: Final = {"file_size_in_bytes": "size", "record_count": "rows"}


def _problems(
    beside: pl.DataFrame, is_wrong: pl.Expr, name: str, column: str | None = None
) -> pl.DataFrame:
    none = pl.lit(None, pl.Int64)
    return beside.filter(is_wrong).select(
        "file_path",
        "kind",
        pl.lit(name).alias("problem"),
        (none if column is None else pl.col(column)).alias("stated"),
        (none if column is None else pl.col(_FOUND[column])).alias("found"),
        "content_offset",
        pl.col("reason") if name == "unreadable" else pl.lit(None, pl.String).alias("reason"),
    )


def _vectors(io: FileIO, vectors: pl.DataFrame) -> pl.DataFrame:
    """What is wrong with vectors whose files are there."""
    broken: list[str | None] = []
    for row in vectors.iter_rows(named=True):
        try:
            read_deletion_vector(
                io,
                row["file_path"],
                offset=row["content_offset"],
                length=row["content_size_in_bytes"],
                cardinality=row["record_count"],
            )
            broken.append(None)
        except (InvalidDataFileError, MissingFileError) as error:
            broken.append(str(error))
    judged = vectors.with_columns(pl.Series("reason", broken, pl.String))
    return _problems(judged, pl.col("reason").is_not_null(), "unreadable")
