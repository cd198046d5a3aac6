"""What tells files and partitions apart."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from frazil.format.manifests import DataFile, FieldSummary, ManifestFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitions import keys
from frazil.format.values import from_bytes
from frazil.planning.deletes.own_files import FILE_PATH_ID

FileKey = tuple[str, int | None]
PartitionKey = tuple[int, tuple[Any, ...]]

_ORDERED = (bool, int, str, bytes, Decimal)


def file_key(file: DataFile) -> FileKey:
    """A file's identity: deletion vectors share a Puffin file and differ by offset (rule 123)."""
    return (file.file_path, file.content_offset)


def partition_key(spec_id: int, partition: tuple[Any, ...]) -> PartitionKey:
    """A partition's identity: floats by their bits, with one NaN (rule 180)."""
    return (spec_id, keys.partition_key(partition))


def referenced_data_file(delete: DataFile) -> str | None:
    """The one data file that a position delete file or vector is about, if it is one (rule 308)."""
    if delete.referenced_data_file is not None:
        return delete.referenced_data_file
    lower = (delete.lower_bounds or {}).get(FILE_PATH_ID)
    upper = (delete.upper_bounds or {}).get(FILE_PATH_ID)
    if lower is None or lower != upper:
        return None
    return lower.decode("utf-8", errors="replace")


class PartitionSet:
    """Partitions of several specs, to ask which manifests can hold files of them (rule 171)."""

    def __init__(self, partitions: Iterable[tuple[int, tuple[Any, ...]]] = ()) -> None:
        self._tuples: dict[int, dict[tuple[Any, ...], tuple[Any, ...]]] = {}
        for spec_id, partition in partitions:
            self.add(spec_id, partition)

    def __bool__(self) -> bool:
        return bool(self._tuples)

    def __len__(self) -> int:
        return sum(len(tuples) for tuples in self._tuples.values())

    def __contains__(self, partition: tuple[int, tuple[Any, ...]]) -> bool:
        spec_id, values = partition
        return partition_key(spec_id, values)[1] in self._tuples.get(spec_id, {})

    @property
    def spec_ids(self) -> frozenset[int]:
        """The specs that the partitions are of."""
        return frozenset(self._tuples)

    def add(self, spec_id: int, partition: tuple[Any, ...]) -> None:
        """Add a partition."""
        self._tuples.setdefault(spec_id, {})[partition_key(spec_id, partition)[1]] = partition

    def may_be_in(self, metadata: TableMetadata, manifest: ManifestFile) -> bool:
        """Whether the manifest's summaries allow a file of one of the partitions."""
        tuples = self._tuples.get(manifest.partition_spec_id)
        if tuples is None:
            return False
        if manifest.partitions is None:
            return True
        spec = metadata.spec_by_id(manifest.partition_spec_id)
        fields = spec.partition_type(metadata.schema).fields
        if len(fields) != len(manifest.partitions):
            return True
        ranges = [
            _Range(summary, field.field_type)
            for summary, field in zip(manifest.partitions, fields, strict=True)
        ]
        return any(
            all(bounds.may_hold(value) for bounds, value in zip(ranges, values, strict=False))
            for values in tuples.values()
        )


class _Range:
    """The values that a field summary allows (rule 163)."""

    def __init__(self, summary: FieldSummary, value_type: Any) -> None:
        self._contains_null = summary.contains_null
        self._lower = _decode(value_type, summary.lower_bound)
        self._upper = _decode(value_type, summary.upper_bound)

    def may_hold(self, value: Any) -> bool:
        if value is None:
            return self._contains_null
        # Floats and UUIDs have orders of their own: no pruning by them.
        if not isinstance(value, _ORDERED) or self._lower is None or self._upper is None:
            return True
        return bool(self._lower <= value <= self._upper)


def _decode(value_type: Any, bound: bytes | None) -> Any:
    return None if bound is None else from_bytes(value_type, bound)
