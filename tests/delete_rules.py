"""Which delete file applies to which data file: the reference rule (rules 176-182).

One pair at a time, as the specification states it, of entries with all that they inherit. Planning
does the same with columns, and is tested against this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from frazil.format.manifests import Content, ManifestEntry
from frazil.format.partitions.keys import partition_key
from frazil.format.partitions.partitioning import PartitionSpec


def applies(
    delete: ManifestEntry, data: ManifestEntry, *, specs: Mapping[int, PartitionSpec]
) -> bool:
    """Whether a delete file or deletion vector has to be applied to a data file.

    Rule 176 for vectors, 177 for position deletes, 178 for equality deletes. That a vector makes
    the position deletes of its file void needs all deletes of the file: see `deletes_for`.
    """
    assert delete.sequence_number is not None
    assert data.sequence_number is not None
    file = delete.data_file
    is_same = _same_partition(delete, data)
    if file.content is Content.EQUALITY_DELETES:
        is_newer = delete.sequence_number > data.sequence_number
        return is_newer and (is_same or specs[file.spec_id].is_unpartitioned)
    is_about = file.referenced_data_file in (None, data.data_file.file_path)
    return is_about and is_same and delete.sequence_number >= data.sequence_number


def deletes_for(
    data: ManifestEntry,
    deletes: Iterable[ManifestEntry],
    *,
    specs: Mapping[int, PartitionSpec],
) -> tuple[ManifestEntry, ...]:
    """The deletes of a data file; with a vector, no position deletes (rules 177, 222)."""
    found = [delete for delete in deletes if applies(delete, data, specs=specs)]
    if not any(delete.data_file.is_deletion_vector for delete in found):
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
