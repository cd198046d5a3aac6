"""Manifests and manifest lists as files (SPEC rules 101-170)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NotRequired, TypedDict, Unpack

import polars as pl

from frazil.errors import InvalidManifestError, ValidationError
from frazil.format.manifests import (
    UNASSIGNED_SEQUENCE_NUMBER,
    Content,
    EntryStatus,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    assign_sequence_numbers,
)
from frazil.format.manifests.schemas import entry_schema, manifest_list_schema
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.format.types import StructType
from frazil.storage.avro.columns import decode_manifests
from frazil.storage.avro.container import read_container
from frazil.storage.avro.manifest_records import (
    LIST_LEVEL,
    entry_record,
    manifest_of,
    manifest_record,
)
from frazil.storage.avro.partition_summaries import FieldSummaryBuilder, written_partition_type
from frazil.storage.avro.records import read_many_records
from frazil.storage.avro.write import ContainerWriter, container_bytes, record_encoder
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import NewFiles

DEFAULT_CODEC = "gzip"


class ManifestDefinition(TypedDict):
    """What a new manifest is.

    Attributes:
        spec: of every entry's partition.
        schema: the table's current one.
        format_version: 1 to 3.
        content: data or deletes.
        snapshot_id: of the snapshot that adds the manifest.
        codec: gzip, deflate, snappy, zstd or none (rule 105); gzip unless given.
    """

    spec: PartitionSpec
    schema: Schema
    format_version: int
    content: ManifestContent
    snapshot_id: int
    codec: NotRequired[str]


def write_manifest(
    files: NewFiles,
    path: str,
    entries: Sequence[ManifestEntry],
    **definition: Unpack[ManifestDefinition],
) -> ManifestFile:
    """Write a new manifest of entries of one spec and one kind of content.

    Added files are written without their commit's sequence number, which they inherit (rule 132);
    existing and deleted ones with the numbers they have (rule 134).
    Returns the manifest's row for a manifest list. Its sequence numbers are
    UNASSIGNED_SEQUENCE_NUMBER until write_manifest_list gives them.
    Raises AlreadyExistsError: there is another file of that name.
    """
    manifest, data = manifest_bytes(path, entries, **definition)
    files.create_unique(path, data)
    return manifest


def manifest_bytes(
    path: str, entries: Sequence[ManifestEntry], **definition: Unpack[ManifestDefinition]
) -> tuple[ManifestFile, bytes]:
    """Return a new manifest's row for a manifest list, and the file's bytes.

    Arguments and errors are those of `write_manifest`; nothing is written.
    """
    spec, schema = definition["spec"], definition["schema"]
    format_version, content = definition["format_version"], definition["content"]
    snapshot_id = definition["snapshot_id"]
    for entry in entries:
        _check_entry(entry, spec, content, format_version)
    entries = [
        replace(entry, snapshot_id=snapshot_id) if entry.snapshot_id is None else entry
        for entry in entries
    ]
    partitions = [entry.data_file.partition for entry in entries]
    partition_type = written_partition_type(spec, schema, partitions)
    avro_schema = entry_schema(format_version, partition_type)
    data = container_bytes(
        avro_schema,
        (entry_record(entry, _partition_columns(avro_schema)) for entry in entries),
        metadata=manifest_header(spec, schema, format_version, content),
        codec=definition.get("codec", DEFAULT_CODEC),
    )
    described = pl.DataFrame(
        [(e.status, e.sequence_number, e.data_file.record_count) for e in entries],
        schema={"status": pl.Int32, "sequence_number": pl.Int64, "record_count": pl.Int64},
        orient="row",
    )
    return manifest_of_entries(path, data, described, partition_type, partitions, definition), data


def manifest_of_entries(
    path: str,
    data: bytes,
    entries: pl.DataFrame,
    partition_type: StructType,
    partitions: Iterable[Sequence[Any]],
    definition: ManifestDefinition,
) -> ManifestFile:
    """A new manifest as a list is to state it (rules 163-166).

    `partitions`: of the entries, each at least once.
    """
    summaries = [FieldSummaryBuilder(field.field_type) for field in partition_type.fields]
    for values in partitions:
        for builder, value in zip(summaries, values, strict=True):
            builder.add(value)
    live = entries["status"] != int(EntryStatus.DELETED)
    smallest = entries["sequence_number"].filter(live).min()
    has_numbers = definition["format_version"] > 1
    if smallest is None:
        smallest = UNASSIGNED_SEQUENCE_NUMBER
    return ManifestFile(
        manifest_path=path,
        manifest_length=len(data),
        partition_spec_id=definition["spec"].spec_id,
        content=definition["content"],
        sequence_number=UNASSIGNED_SEQUENCE_NUMBER if has_numbers else 0,
        min_sequence_number=int(smallest) if has_numbers else 0,  # type: ignore[arg-type]
        added_snapshot_id=definition["snapshot_id"],
        partitions=tuple(builder.summary() for builder in summaries),
        **_counts_by_status(entries),
    )


def write_manifest_list(
    io: FileIO,
    path: str,
    manifests: Sequence[ManifestFile],
    *,
    format_version: int,
    snapshot_id: int,
    parent_snapshot_id: int | None,
    sequence_number: int,
    first_row_id: int | None = None,
    codec: str = DEFAULT_CODEC,
) -> tuple[ManifestFile, ...]:
    """Write a snapshot's manifest list (rules 161-169); return the manifests as it has them.

    Manifests without a sequence number get the snapshot's (rules 132, 166). First row ids must
    have been assigned (``assign_first_row_ids``).
    Raises AlreadyExistsError: there is another file of that name.
    """
    metadata = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
    }
    if format_version > 1:
        metadata["sequence-number"] = str(sequence_number)
        manifests = assign_sequence_numbers(
            (_with_counts(io, manifest) for manifest in manifests), sequence_number=sequence_number
        )
    if format_version > 2:
        metadata["first-row-id"] = "null" if first_row_id is None else str(first_row_id)
    metadata["format-version"] = str(format_version)
    manifests = tuple(manifests)
    for manifest in manifests:
        _check_manifest(manifest, format_version)
    schema = manifest_list_schema(format_version)
    encode = record_encoder(schema)
    writer = ContainerWriter(schema, metadata=metadata, codec=codec)
    for manifest in manifests:
        records = manifest.list_records
        if format_version not in records:
            records[format_version] = encode(manifest_record(manifest))
        writer.add(1, records[format_version])
    io.create_unique(path, writer.finish())
    return manifests


def read_manifest_list(io: FileIO, path: str) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot, in the list's order.

    Lists of v1 read as sequence number 0 and data content (rule 167).
    """
    [found] = decode_manifest_lists([(path, io.read(path))])
    return found


def decode_manifest_lists(
    files: Sequence[tuple[str, bytes]],
) -> list[tuple[ManifestFile, ...]]:
    """The manifests of several lists, given their paths and bytes; see `read_manifest_list`.

    A manifest that several lists hold alike is one value.
    """
    known: dict[str, tuple[Mapping[str, Any], ManifestFile]] = {}
    found: list[tuple[ManifestFile, ...]] = []
    decoded = read_many_records([(data, path) for path, data in files], LIST_LEVEL)
    for (path, _), records in zip(files, decoded, strict=True):
        if missing := {"manifest_path", "manifest_length"} - records.names:
            raise InvalidManifestError(
                f"not a manifest list: its schema has no {', '.join(sorted(missing))}", file=path
            )
        manifests: list[ManifestFile] = []
        for row in records.rows:
            manifest_path = row["manifest_path"]
            before = known.get(manifest_path) if isinstance(manifest_path, str) else None
            if before is None or (before[0] is not row and before[0] != row):
                before = (row, manifest_of(row, file=path))
                known[manifest_path] = before
            manifests.append(before[1])
        found.append(tuple(manifests))
    return found


def manifests_of(io: FileIO, snapshot: Snapshot) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot: from its list, or those that v1 names inline (rule 154).

    Raises MissingFileError: a file is not there.
    """
    if snapshot.manifest_list is not None:
        return read_manifest_list(io, snapshot.manifest_list)
    if snapshot.manifests is None:
        raise InvalidManifestError(
            f"the snapshot {snapshot.snapshot_id} names neither a manifest list nor manifests"
        )
    return tuple(
        ManifestFile(
            manifest_path=path,
            manifest_length=io.size(path),
            partition_spec_id=_spec_id_in(io, path),
            added_snapshot_id=snapshot.snapshot_id,
        )
        for path in snapshot.manifests
    )


def _spec_id_in(io: FileIO, path: str) -> int:
    text = read_container(io.read(path), file=path).metadata.get("partition-spec-id")
    if text is None:
        return 0
    if not text.isdigit():
        raise InvalidManifestError(
            f"the partition-spec-id {text[:40]!r} is not a number", file=path
        )
    return int(text)


def manifest_header(
    spec: PartitionSpec, schema: Schema, format_version: int, content: ManifestContent
) -> dict[str, str]:
    """The header's pairs of a new manifest beside those of Avro (rule 104)."""
    metadata = {
        "schema": json.dumps(schema.to_json(), separators=(",", ":")),
        "schema-id": str(schema.schema_id),
        "partition-spec": json.dumps(spec.fields_to_json(), separators=(",", ":")),
        "partition-spec-id": str(spec.spec_id),
        "format-version": str(format_version),
    }
    if format_version > 1:
        metadata["content"] = content.name.lower()
    return metadata


def _partition_columns(avro_schema: Mapping[str, object]) -> tuple[str, ...]:
    """The names that the partition's fields got in the Avro schema."""
    kind: Any = avro_schema
    for name in ("data_file", "partition"):
        kind = next(field["type"] for field in kind["fields"] if field["name"] == name)
    return tuple(field["name"] for field in kind["fields"])


def _check_entry(
    entry: ManifestEntry, spec: PartitionSpec, content: ManifestContent, format_version: int
) -> None:
    file = entry.data_file
    problem = None
    if file.spec_id != spec.spec_id:
        problem = f"is of the spec {file.spec_id}, and its manifest of {spec.spec_id}"
    elif file.is_data != (content is ManifestContent.DATA):
        problem = f"holds {file.content.name}, and its manifest {content.name}"
    elif format_version == 1 and not file.is_data:
        problem = "is a delete file, which format version 1 does not have"
    elif (file.equality_ids is None) == (file.content is Content.EQUALITY_DELETES):
        problem = f"has the equality ids {file.equality_ids} and holds {file.content.name}"
    elif file.is_deletion_vector and (
        file.referenced_data_file is None
        or file.content_offset is None
        or file.content_size_in_bytes is None
    ):
        problem = "is a deletion vector without its data file, offset or size"
    elif file.is_deletion_vector and format_version < 3:
        problem = f"is a deletion vector, which format version {format_version} does not have"
    elif file.first_row_id is not None and not file.is_data:
        problem = "is a delete file with a first row id"
    elif (
        format_version > 1
        and entry.status is not EntryStatus.ADDED
        and (entry.sequence_number is None or entry.file_sequence_number is None)
    ):
        problem = f"is {entry.status.name} without its sequence numbers"
    if problem is not None:
        raise ValidationError(f"{file.file_path} {problem}")


def _check_manifest(manifest: ManifestFile, format_version: int) -> None:
    if manifest.added_snapshot_id is None:
        raise ValidationError(f"{manifest.manifest_path} has no added_snapshot_id")
    if format_version == 1 and manifest.content is not ManifestContent.DATA:
        raise ValidationError(
            f"{manifest.manifest_path} holds deletes, which format version 1 does not have"
        )
    if format_version > 1 and manifest.min_sequence_number < 0:
        raise ValidationError(f"{manifest.manifest_path} has no sequence numbers")


def _with_counts(io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """The manifest with the counts that v1's lists may leave out and later ones need (rule 162)."""
    if None not in (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
        manifest.added_rows_count,
        manifest.existing_rows_count,
        manifest.deleted_rows_count,
    ):
        return manifest
    path, spec_id = manifest.manifest_path, manifest.partition_spec_id
    [decoded] = decode_manifests(
        [(manifest, read_container(io.read(path), file=path))],
        specs={spec_id: PartitionSpec(spec_id)},
        schema=Schema(()),
        statistics=(),
    )
    return replace(manifest, **_counts_by_status(decoded.entries))


def _counts_by_status(entries: pl.DataFrame) -> dict[str, Any]:
    """Files and rows by status, by the names of a manifest list (rule 165)."""
    counts: dict[str, Any] = {}
    for status in EntryStatus:
        rows = entries["record_count"].filter(entries["status"] == int(status))
        counts[f"{status.name.lower()}_files_count"] = len(rows)
        counts[f"{status.name.lower()}_rows_count"] = int(rows.sum())
    return counts
