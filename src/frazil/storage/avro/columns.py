"""Manifests as columns: one row an entry, read without a loop over entries.

polars decodes the records, under a flat schema of our own (`manifest_layout`); where it cannot,
fastavro reads the same bytes under the same schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate
from typing import Any

import fastavro
import polars as pl

from frazil.errors import InvalidManifestError
from frazil.format.manifests import ManifestEntry, ManifestFile
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import IcebergType
from frazil.storage.avro.container import AvroContainer, read_container
from frazil.storage.avro.entry_values import (
    BOUNDS,
    COUNTS,
    ENTRY_DTYPES,
    FASTAVRO_FAILURES,
    LARGEST_COUNT,
    REQUIRED,
    checked_entries,
    entry_rows,
    map_column,
    map_dtype,
    partition_names,
    partition_struct,
    partition_types,
    partition_values,
    value_column,
    with_inherited,
)
from frazil.storage.avro.manifest_layout import (
    POLARS_FAILURES,
    STATISTICS,
    FixedMap,
    FlatSchema,
    fixed_maps,
    flatten,
    with_fixed_maps,
)
from frazil.storage.avro.records import Level, read_many_records
from frazil.storage.files import FileIO
from frazil.storage.forks import check_threads

__all__ = [
    "BOUNDS",
    "COUNTS",
    "ENTRY_DTYPES",
    "LARGEST_COUNT",
    "REQUIRED",
    "DecodedManifest",
    "decode_manifests",
    "map_dtype",
    "partition_struct",
    "read_file_paths",
    "read_manifest",
    "value_column",
    "with_values",
]
_FIXED_MAPS_FROM = 200
_PATHS = Level({2: "data_file"}, {"data_file": Level({100: "file_path"})})


def read_manifest(
    io: FileIO, manifest: ManifestFile, *, specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[ManifestEntry]:
    """A manifest's entries with everything that they inherit (rules 107-141)."""
    path = manifest.manifest_path
    container = read_container(io.read(path), file=path)
    [decoded] = decode_manifests([(manifest, container)], specs=specs, schema=schema)
    spec = specs[manifest.partition_spec_id]
    return entry_rows(decoded.entries, decoded.flat, spec, schema, file=path)


def read_file_paths(io: FileIO, manifest_path: str) -> tuple[str, ...]:
    """The paths of every file in a manifest, deleted ones too; nothing else is looked at."""
    [records] = read_many_records([(io.read(manifest_path), manifest_path)], _PATHS)
    paths = tuple((row.get("data_file") or {}).get("file_path") for row in records.rows)
    if not all(isinstance(path, str) for path in paths):
        raise InvalidManifestError("an entry has no file_path", file=manifest_path)
    return tuple(map(str, paths))


def decode_manifests(
    files: Sequence[tuple[ManifestFile, AvroContainer]],
    *,
    specs: Mapping[int, PartitionSpec],
    schema: Schema,
    statistics: Collection[str] = STATISTICS,
    values: Mapping[str, Collection[int]] | None = None,
) -> list[DecodedManifest]:
    """The entries of each manifest, with what they inherit (rules 111, 132-135, 138).

    Manifests of one Avro schema and partition spec are decoded as one, so that many small ones
    cost little more than a large one. Fields are matched by id; those that the writer left out are
    null; `file_format` is in lower case.
    `statistics` are the maps to decode whole, `values` the fields of each map whose values to
    decode.
    """
    check_threads()
    wanted = {name: frozenset(ids) for name, ids in (values or {}).items() if ids}
    groups: dict[tuple[bytes, int], list[int]] = {}
    for index, (manifest, container) in enumerate(files):
        key = (container.metadata["avro.schema"], manifest.partition_spec_id)
        groups.setdefault(key, []).append(index)
    found: dict[int, DecodedManifest] = {}
    for (schema_text, spec_id), indexes in groups.items():
        manifests = [files[i][0] for i in indexes]
        file = manifests[0].manifest_path
        kinds = partition_types(file, spec_id, specs, schema)
        flat = flatten(schema_text, file=file, partition_names=partition_names(specs[spec_id]))
        _check_partition(flat, specs[spec_id], file)
        decoder = _Decoder(flat, kinds, tuple(statistics), wanted)
        bodies = [files[i][1] for i in indexes]
        found.update(zip(indexes, decoder.decode(manifests, bodies), strict=True))
    return [found[index] for index in range(len(files))]


@dataclass(frozen=True, slots=True)
class DecodedManifest:
    """One manifest's entries, and what they were decoded from.

    Attributes:
        flat: how the records are laid out.
        stated: the columns as the records hold them: nothing inherited, nothing filled in.
        entries: the columns of `ENTRY_DTYPES` in that order, `spec_id`, a column `partition.<id>` a
            field of the partition spec with internal values (`partition_struct` packs them), a
            column a map that was to be decoded (lists of key and value), and a column
            `<map>.<field id>` for each value that was.
    """

    flat: FlatSchema
    stated: pl.DataFrame
    entries: pl.DataFrame


def with_values(entries: pl.DataFrame, values: Mapping[str, Collection[int]]) -> pl.DataFrame:
    """Entries that hold whole maps, with a column `<map>.<field id>` for each of `values`.

    Columns that are there already stay.
    """
    wanted = {
        name: frozenset(i for i in ids if value_column(name, i) not in entries.columns)
        for name, ids in values.items()
    }
    return _with_values(entries, wanted, {})


@dataclass(frozen=True, slots=True)
class _Decoder:
    """Decodes manifests of one Avro schema and one partition spec.

    Attributes:
        kinds: the types of the partition fields, where known.
        statistics: the maps to decode whole.
        wanted: the fields whose values to decode, of each map.
    """

    flat: FlatSchema
    kinds: Mapping[int, IcebergType]
    statistics: tuple[str, ...]
    wanted: Mapping[str, frozenset[int]]

    def decode(
        self, manifests: Sequence[ManifestFile], containers: Sequence[AvroContainer]
    ) -> list[DecodedManifest]:
        """Each manifest; an error names the file that it lies in."""
        try:
            return self._decode(manifests, containers)
        except InvalidManifestError:
            if len(manifests) == 1:
                raise
            pairs = zip(manifests, containers, strict=True)
            return [self._decode([one], [container])[0] for one, container in pairs]

    def _decode(
        self, manifests: Sequence[ManifestFile], containers: Sequence[AvroContainer]
    ) -> list[DecodedManifest]:
        file = manifests[0].manifest_path
        counts = [container.count for container in containers]
        body = _Body(sum(counts), [block for one in containers for block in one.blocks], file)
        frame = self._columns(body)
        _check_branches(frame, self.flat, file)
        entries = checked_entries(frame, self.flat.names, file)
        entries = with_inherited(entries, manifests, counts, file)
        partition = [
            partition_values(frame, column, self.kinds, file) for column in self.flat.partition
        ]
        maps = [map_column(frame, name, file) for name in self.statistics]
        found = [
            frame[value_column(name, field_id)]
            for name, ids in self.wanted.items()
            for field_id in sorted(ids)
        ]
        entries = entries.with_columns(*partition, *maps, *found)
        offsets = accumulate(counts, initial=0)
        return [
            DecodedManifest(self.flat, frame.slice(offset, count), entries.slice(offset, count))
            for count, offset in zip(counts, offsets, strict=False)
        ]

    def _columns(self, body: _Body) -> pl.DataFrame:
        """The base columns, the maps of `statistics`, and the values of `wanted`."""
        available = self.flat.names
        base = [
            *(name for name in ENTRY_DTYPES if name in available),
            *self.flat.branches,
            *(column.name for column in self.flat.partition),
            *(name for name in self.statistics if name in available),
        ]
        alone = {
            name: ids
            for name, ids in self.wanted.items()
            if name in available and name not in self.statistics
        }
        if alone and body.count >= _FIXED_MAPS_FROM:
            first = body.first_entry(self.flat)
            fixed = fixed_maps(self.flat, first, alone, body.blocks, body.count)
            lists = [name for name in alone if name not in fixed]
            columns = [c for name, layout in fixed.items() for c in layout.columns(alone[name])]
            schema = with_fixed_maps(self.flat, fixed)
            wide = [*base, *lists, *columns]
            frame = schema.read(body.count, body.blocks, wide) if fixed else None
            if frame is not None and all(fixed[n].holds(frame, alone[n]) for n in fixed):
                return _with_values(frame, self.wanted, fixed)
        return _with_values(body.columns(self.flat, [*base, *alone]), self.wanted, {})


@dataclass(frozen=True, slots=True)
class _Body:
    """Records in Avro's binary encoding, block by block; `file` names them in errors."""

    count: int
    blocks: Sequence[bytes]
    file: str

    def columns(self, flat: FlatSchema, columns: Collection[str]) -> pl.DataFrame:
        """Some columns of the records."""
        frame = flat.read(self.count, self.blocks, columns)
        return self._by_fastavro(flat, columns) if frame is None else frame

    def _by_fastavro(self, flat: FlatSchema, columns: Collection[str]) -> pl.DataFrame:
        """The columns row by row: the slow way, for bytes that polars cannot read."""
        wide = {**ENTRY_DTYPES, **{name: map_dtype(name) for name in STATISTICS}}
        stream = BytesIO(b"".join(self.blocks))
        try:
            schema: Any = fastavro.parse_schema(flat.as_avro())
            rows: list[Any] = [
                fastavro.schemaless_reader(stream, schema, None) for _ in range(self.count)
            ]
            data = [
                pl.Series(name, [row[name] for row in rows], dtype=wide.get(name), strict=False)
                for name in columns
            ]
        except (*FASTAVRO_FAILURES, *POLARS_FAILURES) as error:
            reason = str(error) or type(error).__name__
            raise InvalidManifestError(
                f"damaged manifest entries: {reason}", file=self.file
            ) from error
        return pl.DataFrame(data)

    def first_entry(self, flat: FlatSchema) -> Mapping[str, Any]:
        """The first record."""
        first = next(block for block in self.blocks if block)
        try:
            schema: Any = fastavro.parse_schema(flat.as_avro())
            entry: Any = fastavro.schemaless_reader(BytesIO(first), schema, None)
        except FASTAVRO_FAILURES as error:
            raise InvalidManifestError(
                f"damaged manifest entries: {error}", file=self.file
            ) from error
        return dict(entry)


def _check_partition(flat: FlatSchema, spec: PartitionSpec, file: str) -> None:
    unknown = [column.avro_name for column in flat.partition if column.field_id is None]
    if unknown:
        known = ", ".join(field.name for field in spec.fields) or "none"
        raise InvalidManifestError(
            f"the partition fields {', '.join(unknown)} have no field ids, and partition spec "
            f"{spec.spec_id} has no fields of these names but {known}",
            file=file,
        )


def _check_branches(frame: pl.DataFrame, flat: FlatSchema, file: str) -> None:
    for column, branch in flat.branches.items():
        if not (frame[column] == branch).all():
            raise InvalidManifestError("an entry has no data_file or no partition", file=file)


def _with_values(
    frame: pl.DataFrame, wanted: Mapping[str, frozenset[int]], fixed: Mapping[str, FixedMap]
) -> pl.DataFrame:
    columns: list[pl.Series] = []
    for name, ids in wanted.items():
        dtype: pl.DataType = pl.Binary() if name in BOUNDS else pl.Int64()
        listed = (
            _values_in_lists(frame[name], ids)
            if name in frame.columns and name not in fixed
            else {}
        )
        for field_id in sorted(ids):
            found = (
                fixed[name].value(frame, field_id) if name in fixed else listed.get(str(field_id))
            )
            if found is None:
                found = pl.Series([None] * len(frame), dtype=dtype)
            columns.append(found.cast(dtype).alias(value_column(name, field_id)))
    return frame.with_columns(columns)


def _values_in_lists(lists: pl.Series, field_ids: Collection[int]) -> Mapping[str, pl.Series]:
    """By key, the values in a column of maps, null where a map does not hold it; the last counts.

    A key that no map holds is not there.
    """
    rows = pl.DataFrame({"row": pl.arange(len(lists), eager=True, dtype=pl.UInt32), "map": lists})
    pairs = rows.filter(pl.col("map").list.len() > 0).explode("map").unnest("map")
    wanted = pairs.filter(pl.col("key").is_in(list(field_ids)))
    found = wanted.pivot("key", index="row", values="value", aggregate_function="last")
    joined = rows.select("row").join(found, on="row", how="left", maintain_order="left")
    return {name: joined[name] for name in found.columns[1:]}
