"""Data files in folders as Hive and Spark lay them out: ``city=Oslo/day=2024-01-31/a.parquet``.

The values of such columns stand in the folders' names alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from frazil.errors import ValidationError

NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a folder's name for NULL."""

_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_FOLDER: Final = "folder"


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """Data files, and what the names of their folders say.

    Attributes:
        names: of the partition columns, from the top folder down, as they are written there.
        frame: the column ``path``, and a text column for each of the names by `text_column`, NULL
            where the value is.
    """

    names: tuple[str, ...]
    frame: pl.DataFrame

    def __len__(self) -> int:
        return len(self.frame)


def text_column(number: int) -> str:
    """Return the name of the column with the texts of a partition column."""
    return f"text_{number}"


def no_files(names: Sequence[str]) -> SourceFiles:
    """Nothing, in partitions of these columns."""
    columns = ("path", *(text_column(number) for number in range(len(names))))
    return SourceFiles(tuple(names), pl.DataFrame(schema=dict.fromkeys(columns, pl.String())))


def data_files(listing: pl.DataFrame, root: str) -> pl.DataFrame:
    """Return the files of a listing that Spark reads as data: not empty, and not hidden.

    Hidden is what has a part of its path that begins with a dot, or with an underscore unless it
    names a partition.
    """
    parts = pl.col("path").str.slice(len(root.rstrip("/")) + 1).str.split("/")
    is_hidden = pl.element().str.starts_with(".") | (
        pl.element().str.starts_with("_") & ~pl.element().str.contains("=", literal=True)
    )
    hidden = parts.list.eval(is_hidden).list.any() | pl.col("path").str.ends_with("._COPYING_")
    return listing.filter((pl.col("size") > 0) & ~hidden)


def files_in_folders(paths: pl.Series, root: str) -> SourceFiles:
    """Return the files below a folder with the partitions that their folders name."""
    frame = pl.DataFrame({"path": paths}, schema={"path": pl.String()})
    below = pl.col("path").str.slice(len(root.rstrip("/")) + 1)
    frame = frame.with_columns(
        pl.when(below.str.contains("/", literal=True))
        .then(below.str.extract(r"(?s)^(.*)/[^/]*$", 1))
        .otherwise(pl.lit(""))
        .alias(_FOLDER)
    )
    folders = frame[_FOLDER].unique(maintain_order=True).to_list()
    return files_of_folders(frame, {folder: folder for folder in folders}, root)


def files_of_folders(frame: pl.DataFrame, partitions: dict[str, str], root: str) -> SourceFiles:
    """Return files with the partition of the folder that each lies in.

    `frame` has columns ``path`` and ``folder``; `partitions` say by folder
    ``city=Oslo/day=2024-01-31``.
    """
    values = {folder: _parse_folder(text, root) for folder, text in partitions.items()}
    names = _names_of(values.values(), root)
    texts = pl.DataFrame(
        {
            _FOLDER: list(values),
            **{
                text_column(number): [pairs[number][1] for pairs in values.values()]
                for number in range(len(names))
            },
        },
        schema={
            _FOLDER: pl.String(),
            **{text_column(number): pl.String() for number in range(len(names))},
        },
    )
    joined = frame.join(texts, on=_FOLDER, how="left", maintain_order="left")
    return SourceFiles(names, joined.drop(_FOLDER))


def _names_of(folders: Iterable[Sequence[tuple[str, str | None]]], root: str) -> tuple[str, ...]:
    found = list(dict.fromkeys(tuple(name for name, _ in pairs) for pairs in folders))
    if len({tuple(name.lower() for name in names) for names in found}) > 1:
        shown = " and ".join("/".join(f"{n}=…" for n in names) or "none" for names in found[:2])
        raise ValidationError(
            f"the folders below {root} name different partition columns, {shown}: bring them in "
            "one by one"
        )
    return found[0] if found else ()


def _parse_folder(folder: str, root: str) -> tuple[tuple[str, str | None], ...]:
    """The names and texts of a folder below the root."""
    if not folder:
        return ()
    pairs = []
    for part in folder.split("/"):
        name, equals, text = part.partition("=")
        if not (name and equals and text):
            raise ValidationError(
                f"the folder {root.rstrip('/')}/{folder} holds data files, and {part!r} names no "
                "partition as column=value: bring that folder in on its own"
            )
        pairs.append(
            (unescape_folder(name), None if text == NULL_FOLDER else unescape_folder(text))
        )
    return tuple(pairs)


def unescape_folder(text: str) -> str:
    """Return the text as Hive and Spark read it: each %XX is one character."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
