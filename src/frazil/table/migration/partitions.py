"""The partitions of files that are brought in, as their folders and a table's partition spec say.

Folders are as Hive and Spark lay them out, ``city=Oslo/day=2024-01-31/a.parquet``: the values of
such columns stand in the folders' names alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final

import polars as pl

from frazil.errors import UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.format.types import BinaryType, FixedType, IcebergType
from frazil.format.values import to_bytes
from frazil.format.values.coercion import coerce


def value_column(number: int) -> str:
    """Return the name of the column with a field's values, as hex of their bytes."""
    return f"value_{number}"


def compatible_spec(metadata: TableMetadata, names: Sequence[str], source: str) -> PartitionSpec:
    """Return the table's spec of just these columns in this order, unchanged.

    The current spec comes first, then the others.
    """
    wanted = [name.lower() for name in names]
    tops = {each.field_id for each in metadata.schema.fields}
    specs = sorted(metadata.partition_specs, key=lambda s: s.spec_id != metadata.default_spec_id)
    for spec in specs:
        fields = [each for each in spec.fields if not each.is_void]
        if len(fields) == len(wanted) and all(
            isinstance(each.transform, IdentityTransform)
            and each.source_id in tops
            and name in _names(each, metadata.schema)
            for each, name in zip(fields, wanted, strict=True)
        ):
            return spec
    shown = "; ".join(f"[{', '.join(map(str, each.fields))}]" for each in specs)
    raise ValidationError(
        f"no partition spec of the table matches the partition columns {list(names)} of {source}: "
        f"its specs are {shown}. A spec of just these columns, unchanged and in this order, can be "
        "added with update_spec()"
    )


def _names(field: PartitionField, schema: Schema) -> set[str]:
    source = schema.field_or_none(field.source_id)
    return {field.name.lower(), *(() if source is None else (source.name.lower(),))}


@dataclass(frozen=True, slots=True)
class PartitionTexts:
    """How texts become values of a spec's fields.

    Attributes:
        spec: the spec.
        schema: of the table.
        zone: of timestamps that are text.
    """

    spec: PartitionSpec
    schema: Schema
    zone: str | tzinfo

    def with_values(self, files: SourceFiles, source: str) -> pl.DataFrame:
        """Return the column ``path``, and by `value_column` the values of each field."""
        frame = files.frame
        columns = [pl.col("path")]
        fields = [each for each in self.spec.fields if not each.is_void]
        for number, each in enumerate(fields):
            texts = frame[text_column(number)].drop_nulls().unique().to_list()
            values = {text: self._bytes(each, text, source).hex() for text in texts}
            column = pl.col(text_column(number)).replace_strict(values, return_dtype=pl.String())
            columns.append(column.alias(value_column(self.spec.fields.index(each))))
        columns += [
            pl.lit(None, pl.String()).alias(value_column(number))
            for number, each in enumerate(self.spec.fields)
            if each.is_void
        ]
        return frame.select(columns)

    def with_partition_values(
        self, frame: pl.DataFrame, wanted: Mapping[str, Any], table: str
    ) -> pl.DataFrame:
        """Return the files of the partitions that have these values.

        `wanted`: by the name of a partition column, its value; NULL is None.
        """
        fields = {
            name: (number, each)
            for number, each in enumerate(self.spec.fields)
            if not each.is_void
            for name in _names(each, self.schema)
        }
        if wanted and not fields:
            raise ValidationError(
                f"partition_filter is {dict(wanted)!r}, and the files are for an unpartitioned "
                f"spec of {table}: leave the filter out"
            )
        for name, value in wanted.items():
            if name.lower() not in fields:
                known = [each.name for each in self.spec.fields if not each.is_void]
                raise ValidationError(
                    f"partition_filter names {name!r}, which is no partition column of {table}: "
                    f"they are {known}"
                )
            number, each = fields[name.lower()]
            column = pl.col(value_column(number))
            if value is None or value == NULL_FOLDER:
                frame = frame.filter(column.is_null())
            else:
                frame = frame.filter(column == self._bytes(each, value, "partition_filter").hex())
        return frame

    def _bytes(self, field: PartitionField, value: Any, source: str) -> bytes:
        kind = self.schema.find_type(field.source_id)
        try:
            return to_bytes(kind, partition_value(kind, value, zone=self.zone))
        except (ValidationError, UnsupportedError) as error:
            raise ValidationError(
                f"{field.name}={value} of {source} is no value of the column, which is {kind}: "
                f"{error}"
            ) from error


def partition_value(kind: IcebergType, value: Any, *, zone: str | tzinfo) -> Any:
    """Return the internal value of a partition's text."""
    if isinstance(kind, BinaryType | FixedType) and isinstance(value, str):
        value = value.encode()
    return coerce(kind, value, zone=zone)


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
