"""Which delete file applies to which data file: the reference rule (rules 176-182).

One pair at a time, as the specification states it. Planning does the same with columns, and is
tested against this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.errors import InvalidManifestError
from frazil.format.manifests import Content, ManifestEntry
from frazil.format.partitions.keys import partition_key
from frazil.format.partitions.partitioning import PartitionSpec


def applies(
    delete: ManifestEntry, data: ManifestEntry, *, specs: Mapping[int, PartitionSpec]
) -> bool:
    """Whether a delete file or deletion vector has to be applied to a data file.

    Rule 176 for vectors, 177 for position deletes, 178 for equality deletes. That a vector makes
    the position deletes of its file void needs all deletes of the file: see `deletes_for`.

    Args:
        delete: a live entry of a delete manifest, with its inherited numbers.
        data: a live entry of a data manifest, with its inherited numbers.
        specs: the table's partition specs by id.

    Raises:
        InvalidManifestError: an entry without a sequence number or of an unknown spec, or a vector
            that names no data file (rule 123).
    """
    file = delete.data_file
    delete_number, data_number = _number(delete), _number(data)
    if file.content is Content.EQUALITY_DELETES:
        if data_number >= delete_number:
            return False
        return _spec_of(delete, specs).is_unpartitioned or _same_partition(delete, data)
    if file.is_deletion_vector and file.referenced_data_file is None:
        raise InvalidManifestError(
            "a deletion vector does not name its data file",
            file=file.file_path,
            field="referenced_data_file",
        )
    if file.referenced_data_file not in (None, data.data_file.file_path):
        return False
    return data_number <= delete_number and _same_partition(delete, data)


def deletes_for(
    data: ManifestEntry,
    deletes: Iterable[ManifestEntry],
    *,
    specs: Mapping[int, PartitionSpec],
) -> tuple[ManifestEntry, ...]:
    """The deletes that apply to a data file; with a vector, no position deletes (rules 177, 222).

    Raises:
        InvalidManifestError: as `applies`, and for two vectors of one data file (rule 217).
    """
    found = [delete for delete in deletes if applies(delete, data, specs=specs)]
    vectors = [delete for delete in found if delete.data_file.is_deletion_vector]
    if len(vectors) > 1:
        raise InvalidManifestError(
            f"the data file has {len(vectors)} deletion vectors, at most 1 is allowed:"
            f" {[vector.data_file.file_path for vector in vectors]}",
            file=data.data_file.file_path,
        )
    if not vectors:
        return tuple(found)
    return tuple(
        delete
        for delete in found
        if delete.data_file.is_deletion_vector
        or delete.data_file.content is not Content.POSITION_DELETES
    )


def _same_partition(delete: ManifestEntry, data: ManifestEntry) -> bool:
    mine, theirs = delete.data_file, data.data_file
    return mine.spec_id == theirs.spec_id and partition_key(mine.partition) == partition_key(
        theirs.partition
    )


def _spec_of(entry: ManifestEntry, specs: Mapping[int, PartitionSpec]) -> PartitionSpec:
    spec = specs.get(entry.data_file.spec_id)
    if spec is None:
        raise InvalidManifestError(
            f"the partition spec {entry.data_file.spec_id} is not among the table's:"
            f" {sorted(specs)}",
            file=entry.data_file.file_path,
            field="spec_id",
        )
    return spec


def _number(entry: ManifestEntry) -> int:
    if entry.sequence_number is None:
        raise InvalidManifestError(
            "the file has no sequence number; was it read without inheritance?",
            file=entry.data_file.file_path,
            field="sequence_number",
        )
    return entry.sequence_number
