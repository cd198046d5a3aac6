"""A new manifest from the entries of others, whose records are copied as bytes.

Only what an entry's place says changes: its status, snapshot id, sequence numbers and first row id
(SPEC rules 109, 111, 134, 138). Blocks in which nothing changes are taken over compressed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Final, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from frazil.format.manifests import (
    Content,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
)
from frazil.format.manifests.schemas import entry_schema
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.storage.avro.columns import decode_manifests
from frazil.storage.avro.container import (
    AvroContainer,
    as_container,
    joined_container,
    read_container,
)
from frazil.storage.avro.entry_records import FIRST_ROW_ID, HEAD, EntryRecords, flat_schema_of
from frazil.storage.avro.entry_values import entry_rows
from frazil.storage.avro.manifest_layout import STATISTICS, FlatSchema, flatten
from frazil.storage.avro.manifests import (
    DEFAULT_CODEC,
    ManifestDefinition,
    manifest_header,
    manifest_of_entries,
)
from frazil.storage.avro.partition_summaries import (
    distinct_partitions,
    written_partition_type,
)
from frazil.storage.avro.write import ContainerWriter, sync_of
from frazil.storage.side_by_side import NewFiles

_SMALLEST_BLOCK_BYTES: Final = 64 * 1024


class Carry(IntEnum):
    """What becomes of an entry in the new manifest."""

    DROPPED = 0
    AS_IT_IS = 1
    EXISTING = 2
    DELETED = 3


@dataclass(frozen=True)
class CarriedEntries:
    """A manifest whose entries go into a new one.

    Attributes:
        manifest: as its list states it.
        container: the file, decompressed.
        entries: its rows in the form of `frazil.storage.avro.columns`, with what they inherit.
        carry: what becomes of each row, as numbers of `Carry`.
        stated: the columns as the records hold them, where they were kept.
    """

    manifest: ManifestFile
    container: AvroContainer
    entries: pl.DataFrame
    carry: pl.Series
    stated: pl.DataFrame | None = None

    @cached_property
    def flat_schema(self) -> FlatSchema:
        """How the records are laid out."""
        path = self.manifest.manifest_path
        return flatten(self.container.metadata["avro.schema"], file=path)

    @cached_property
    def records(self) -> EntryRecords | None:
        """The records as bytes, or None where they cannot be told apart."""
        return EntryRecords.of(self.container, self.flat_schema, self.stated)


def copy_manifest(
    files: NewFiles,
    path: str,
    sources: Sequence[CarriedEntries],
    **definition: Unpack[ManifestDefinition],
) -> ManifestFile | None:
    """Write a new manifest of the carried entries; None where their records cannot be copied.

    That is so where a manifest is of another layout than this table's new ones (of another format
    version, or of a writer that leaves fields out), and where an entry may not be written at all.
    Nothing is written then. Arguments and result are those of `write_manifest`.
    Raises AlreadyExistsError: there is another file of that name.
    """
    copied = copied_bytes(path, sources, **definition)
    if copied is None:
        return None
    manifest, data = copied
    files.create_unique(path, data)
    return manifest


def copied_bytes(
    path: str, sources: Sequence[CarriedEntries], **definition: Unpack[ManifestDefinition]
) -> tuple[ManifestFile, bytes] | None:
    """Return what `copy_manifest` would write, as `manifest_bytes` does; nothing is written."""
    spec, schema = definition["spec"], definition["schema"]
    format_version, content = definition["format_version"], definition["content"]
    snapshot_id = definition["snapshot_id"]
    joined = _join_sources(sources)
    if joined is None:
        return None
    kept = joined.entries.filter(joined.carry != int(Carry.DROPPED))
    if not _may_be_written(kept, content, format_version):
        return None
    partitions = distinct_partitions(spec, schema, kept)
    partition_type = written_partition_type(spec, schema, partitions)
    avro_schema = entry_schema(format_version, partition_type)
    flat = flat_schema_of(avro_schema, file=path)
    records = joined.records if joined.flat_schema == flat else None
    after = None if records is None else _heads_after(records, joined, snapshot_id)
    if records is None or after is None:
        return None
    writer = ContainerWriter(
        avro_schema,
        metadata=manifest_header(spec, schema, format_version, content),
        codec=definition.get("codec", DEFAULT_CODEC),
        sync=sync_of(path),
    )
    try:
        _copy(records, after, writer)
    except ValueError:
        return None
    data = writer.finish()
    after = after.filter("kept")
    if not _reads_as(data, flat, after):
        return None
    return manifest_of_entries(path, data, after, partition_type, partitions, definition), data


def only_rows(source: CarriedEntries, rows: pl.Series) -> CarriedEntries | None:
    """Only these entries of a manifest, all EXISTING; None where its records cannot be told apart.

    What it costs grows with these entries, not with the manifest.
    """
    records = source.records
    if records is None:
        return None
    file = source.manifest.manifest_path
    written = json.loads(source.container.metadata["avro.schema"])
    body = records.bytes_of_rows(rows.cast(pl.Int64).to_numpy())
    some = as_container(written, len(rows), [body])
    return CarriedEntries(
        source.manifest,
        read_container(some, file=file),
        source.entries[rows],
        pl.repeat(int(Carry.EXISTING), len(rows), dtype=pl.Int8, eager=True),
        stated=None if source.stated is None else source.stated[rows],
    )


def rows_of(
    source: CarriedEntries, *, specs: Mapping[int, PartitionSpec], schema: Schema
) -> list[ManifestEntry]:
    """The entries of a manifest one by one, with all that they hold."""
    [decoded] = decode_manifests([(source.manifest, source.container)], specs=specs, schema=schema)
    entries = source.entries.with_columns(decoded.entries.select(STATISTICS))
    spec, file = specs[source.manifest.partition_spec_id], source.manifest.manifest_path
    return entry_rows(entries, decoded.flat, spec, schema, file=file)


def _join_sources(sources: Sequence[CarriedEntries]) -> CarriedEntries | None:
    """The entries of several manifests as one; None where their layouts differ."""
    if len(sources) == 1:
        return sources[0]
    schemas = {source.container.metadata["avro.schema"]: source for source in sources}
    first, *others = schemas.values()
    columns = sources[0].entries.columns
    alike = all(other.flat_schema == first.flat_schema for other in others)
    if not alike or any(source.entries.columns != columns for source in sources):
        return None
    stated = [source.stated for source in sources if source.stated is not None]
    return CarriedEntries(
        sources[0].manifest,
        joined_container([source.container for source in sources]),
        pl.concat([source.entries for source in sources]),
        pl.concat([source.carry for source in sources]),
        stated=pl.concat(each.select(stated[0].columns) for each in stated)
        if len(stated) == len(sources)
        else None,
    )


def _heads_after(
    records: EntryRecords, source: CarriedEntries, snapshot_id: int
) -> pl.DataFrame | None:
    """The head, first row id and row count of each record as the new manifest has them.

    None where a head that changes would lack a value.
    """
    stated, entries = records.stated, source.entries
    frame = pl.DataFrame(
        {
            "carry": source.carry,
            "file_path": entries["file_path"],
            "record_count": entries["record_count"],
            **{name: entries[name] for name in (*HEAD, FIRST_ROW_ID)},
            **{
                f"stated.{name}": stated[name] if name in stated.columns else entries[name]
                for name in (*HEAD, FIRST_ROW_ID)
            },
        }
    )
    as_it_is = pl.col("carry") == int(Carry.AS_IT_IS)
    deleted = pl.col("carry") == int(Carry.DELETED)
    gone, there = int(EntryStatus.DELETED), int(EntryStatus.EXISTING)
    wanted = {
        "status": pl.when(deleted).then(gone).otherwise(there),
        "snapshot_id": pl.when(deleted).then(snapshot_id).otherwise(pl.col("snapshot_id")),
    }
    heads = frame.with_columns(
        pl.when(as_it_is)
        .then(pl.col(f"stated.{name}"))
        .otherwise(wanted.get(name, pl.col(name)))
        .cast(entries.schema[name])
        .alias(name)
        for name in (*HEAD, FIRST_ROW_ID)
    )
    compared = [*records.layout.head, *([FIRST_ROW_ID] if records.layout.tail else [])]
    changes = pl.any_horizontal(pl.col(n).ne_missing(pl.col(f"stated.{n}")) for n in compared)
    kept = pl.col("carry") != int(Carry.DROPPED)
    after = heads.select(
        *HEAD,
        FIRST_ROW_ID,
        "file_path",
        "record_count",
        changes.alias("changes"),
        kept.alias("kept"),
    )
    changed = after.filter(pl.col("kept") & pl.col("changes"))
    return None if any(changed[name].null_count() for name in records.layout.head) else after


def _copy(records: EntryRecords, after: pl.DataFrame, writer: ContainerWriter) -> None:
    """Copy the records that are kept, block by block.

    `after`: a row each record, with its new head, its first row id and whether it changes.
    """
    container = records.container
    heads = records.layout.heads(after)
    row_ids = after[FIRST_ROW_ID].to_list() if records.layout.tail else []
    changed, starts = (memoryview(b""), records.starts)
    if not records.layout.tail and after["changes"].any():
        changed, starts = records.under_heads(heads)
    of_block = np.repeat(np.arange(len(container.counts), dtype=np.uint32), container.counts)
    for block, start, end, changes in _runs(after, of_block):
        size = len(container.blocks[block])
        if changes and not records.layout.tail:
            writer.add(end - start, changed[starts[start] : starts[end]])
        elif changes:
            for row in range(start, end):
                writer.add(1, *records.with_head(row, heads.row_bytes(row), row_ids[row]))
        elif (
            end - start == container.counts[block]
            and container.packed
            and container.codec == writer.avro_codec
            and size >= _SMALLEST_BLOCK_BYTES
        ):
            writer.add_block(end - start, container.packed[block])
        else:
            writer.add(end - start, records.record_bytes(start, end))


def _runs(
    after: pl.DataFrame, of_block: npt.NDArray[np.uint32]
) -> Iterator[tuple[int, int, int, bool]]:
    """Neighbours of one block that are kept and all change or all stay as they are.

    Yields their block, the first of them, the first after them, and whether they change.
    """
    rows = after.select("kept", "changes", pl.lit(pl.Series("block", of_block)), pl.row_index())
    same = [pl.col(name).ne_missing(pl.col(name).shift()) for name in ("kept", "changes", "block")]
    firsts = rows.filter(pl.any_horizontal(same))
    ends = [*firsts["index"][1:], *([len(after)] if len(after) else [])]
    for (kept, changes, block, start), end in zip(firsts.iter_rows(), ends, strict=True):
        if kept:
            yield block, start, end, changes


def _may_be_written(frame: pl.DataFrame, content: ManifestContent, format_version: int) -> bool:
    """Whether every entry fits a manifest of this content and version."""
    if content is ManifestContent.DATA:
        return bool((frame["content"] == int(Content.DATA)).all()) and not bool(
            frame["equality_ids"].is_not_null().any()
        )
    vector = (frame["file_format"] == "puffin") & (
        frame["content"] == int(Content.POSITION_DELETES)
    )
    complete = pl.Series(
        frame.select(
            pl.all_horizontal(
                pl.col(
                    "referenced_data_file", "content_offset", "content_size_in_bytes"
                ).is_not_null()
            )
        ).to_series()
    )
    by_equality = frame["content"] == int(Content.EQUALITY_DELETES)
    return (
        format_version > 1
        and bool((frame["content"] != int(Content.DATA)).all())
        and bool((by_equality == frame["equality_ids"].is_not_null()).all())
        and not bool((vector & ~complete).any())
        and (format_version > 2 or not vector.any())
        and frame[FIRST_ROW_ID].null_count() == len(frame)
    )


def _reads_as(data: bytes, flat: FlatSchema, after: pl.DataFrame) -> bool:
    """Whether the written bytes decode to the paths and heads that they were meant to hold."""
    container = read_container(data, file="a new manifest")
    names = [
        name for name in (*HEAD, "file_path", FIRST_ROW_ID, "record_count") if name in flat.names
    ]
    found = flat.read(container.count, container.blocks, names)
    return (
        found is not None
        and len(found) == len(after)
        and found.select(pl.col(name).cast(after.schema[name]) for name in names).equals(
            after.select(names)
        )
    )
