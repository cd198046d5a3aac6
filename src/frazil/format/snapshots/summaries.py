"""Snapshot summaries: what a commit added and removed, and what the table holds (rule 303)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frazil.errors import ValidationError
from frazil.format.manifests import Content, DataFile
from frazil.format.partitions.keys import partition_key
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.properties.table import SUMMARY_PARTITION_LIMIT
from frazil.format.schema import Schema
from frazil.format.snapshots.model import OPERATIONS, Snapshot

ADDED_RECORDS = "added-records"
CHANGED_PARTITION_COUNT = "changed-partition-count"
REPLACE_PARTITIONS = "replace-partitions"
PARTITION_SUMMARIES_INCLUDED = "partition-summaries-included"
PARTITION_PREFIX = "partitions."

# Of commits beside which others changed the same data files.
RIVAL_SNAPSHOTS = "frazil.row-level-conflicts.snapshots"
SHARED_FILES = "frazil.row-level-conflicts.shared-files"
TESTED_FILES = "frazil.row-level-conflicts.tested-files"
MOVED_ROWS = "frazil.row-level-conflicts.moved-rows"

_MOST_DIGITS = 19

_TOTALS = (
    ("total-records", ADDED_RECORDS, "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)
# Keys of one file, by what it is: how many files, of which kind, and what its rows count as.
_DATA_KEYS = (("data-files",), "records")
_VECTOR_KEYS = (("delete-files", "dvs"), "position-deletes")
_POSITION_KEYS = (("delete-files", "position-delete-files"), "position-deletes")
_EQUALITY_KEYS = (("delete-files", "equality-delete-files"), "equality-deletes")
# Removed data files and their rows are "deleted", everything else is "removed".
_DELETED = frozenset({"data-files", "records"})


def count_in(summary: Mapping[str, str] | None, key: str) -> int | None:
    """Return a count of a summary; None where it has none, or what is there is none.

    A summary's values are any text: of other writers, and of users. A count fits into 64 bits.
    """
    text = str((summary or {}).get(key, ""))
    is_count = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_count else None


class SummaryBuilder:
    """Counts files into the summary of a snapshot, with the keys and rules of Java.

    Args:
        specs: the table's partition specs by id.
        schema: the table's schema, for the text of partition values.
        partition_limit: `write.summary.partition-limit`: summaries per partition are included up to
            that many changed partitions.
    """

    def __init__(
        self,
        *,
        specs: Mapping[int, PartitionSpec],
        schema: Schema,
        partition_limit: int = SUMMARY_PARTITION_LIMIT.default,
    ) -> None:
        self._specs = specs
        self._schema = schema
        self._partition_limit = partition_limit
        self._properties: dict[str, str] = {}
        self._counts = Counter[str]()
        self._partitions: dict[tuple[Any, ...], _Partition] = {}

    def add_file(self, file: DataFile) -> None:
        """Count a file that the snapshot adds."""
        self._count(file, "added")

    def remove_file(self, file: DataFile) -> None:
        """Count a file that the snapshot removes."""
        self._count(file, "removed")

    def set(self, key: str, value: str | int) -> None:
        """Set a property of the summary, such as `engine-name` or `manifests-created`."""
        self._properties[key] = str(value)

    def build(self, operation: str, *, previous: Snapshot | None) -> dict[str, str]:
        """The summary, with its operation and totals.

        Totals go on from the previous snapshot of the branch and from 0 where there is none; a
        total that the previous summary lacks is left out.
        """
        if operation not in OPERATIONS:
            raise ValidationError(
                f"unknown operation {operation!r}; expected one of {sorted(OPERATIONS)}"
            )
        summary = {
            "operation": operation,
            **self._properties,
            **_as_texts(self._counts),
            CHANGED_PARTITION_COUNT: str(len(self._partitions)),
        }
        if 0 < len(self._partitions) <= self._partition_limit:
            summary[PARTITION_SUMMARIES_INCLUDED] = "true"
            summary.update(self._partition_summaries())
        return {**summary, **_totals(summary, previous)}

    def _count(self, file: DataFile, direction: str) -> None:
        key = (file.spec_id, *partition_key(file.partition))
        if key not in self._partitions:
            self._partitions[key] = _Partition(file.spec_id, file.partition, Counter())
        kinds, rows = _keys_of(file)
        numbers = {**dict.fromkeys(kinds, 1), rows: file.record_count}
        for what, number in {**numbers, "files-size": file.size_in_bytes}.items():
            way = "deleted" if direction == "removed" and what in _DELETED else direction
            for counts in (self._counts, self._partitions[key].counts):
                counts[f"{way}-{what}"] += number

    def _partition_summaries(self) -> dict[str, str]:
        merged: dict[str, str] = {}
        for partition in self._partitions.values():
            spec = self._specs[partition.spec_id]
            path = spec.partition_path(self._schema, partition.values)
            counts = _as_texts(partition.counts)
            merged[f"{PARTITION_PREFIX}{path}"] = ",".join(f"{k}={v}" for k, v in counts.items())
        return merged


@dataclass(slots=True)
class _Partition:
    spec_id: int
    values: tuple[Any, ...]
    counts: Counter[str]


def _as_texts(counts: Counter[str]) -> dict[str, str]:
    return {key: str(number) for key, number in counts.items() if number > 0}


def _keys_of(file: DataFile) -> tuple[tuple[str, ...], str]:
    if file.content is Content.DATA:
        return _DATA_KEYS
    if file.content is Content.EQUALITY_DELETES:
        return _EQUALITY_KEYS
    return _VECTOR_KEYS if file.is_deletion_vector else _POSITION_KEYS


def _totals(summary: Mapping[str, str], previous: Snapshot | None) -> dict[str, str]:
    totals: dict[str, str] = {}
    for total, added, removed in _TOTALS:
        start = 0 if previous is None else count_in(previous.summary, total)
        if start is None:
            continue
        now = start + (count_in(summary, added) or 0) - (count_in(summary, removed) or 0)
        # A total that goes below zero was wrong before; an unknown one is better.
        if now >= 0:
            totals[total] = str(now)
    return totals
