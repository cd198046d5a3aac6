"""Where new delete files go, by the data files that they are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from frazil.format.metadata import TableMetadata
from frazil.format.metadata.partition_sources import schema_with_sources
from frazil.spark.delete_files.earlier import DeleteTargets
from frazil.spark.delete_files.encode import NewEntry
from frazil.storage.file_kinds import FileKind


@dataclass(frozen=True, slots=True)
class DeleteFilePlaces:
    """Where the files of a write go, and of what partition they are.

    Attributes:
        by_ordinal: the place of each data file among those of `targets`, by its ordinal.
    """

    metadata: TableMetadata
    kind: FileKind
    targets: DeleteTargets
    by_ordinal: Mapping[int, int]

    @classmethod
    def of(
        cls, metadata: TableMetadata, kind: FileKind, targets: DeleteTargets
    ) -> DeleteFilePlaces:
        """Return those of deletes of some data files."""
        by_ordinal = {o: at for at, o in enumerate(targets.files["ordinal"])}
        return cls(metadata, kind, targets, by_ordinal)

    def path(self, name: str, ordinal: int) -> str:
        """Return where the table's layout wants a file about this data file."""
        at = self.by_ordinal[ordinal]
        return self.kind.file_path(
            self.metadata,
            name,
            spec=self.metadata.spec_by_id(self.targets.files["spec_id"][at]),
            schema=schema_with_sources(self.metadata),
            partition=self.targets.partitions[at],
        )

    def completed(self, entries: Sequence[NewEntry]) -> tuple[NewEntry, ...]:
        """Return the entries with the spec and partition of their data files."""
        spec_ids = self.targets.files["spec_id"].to_list()
        found = []
        for each in entries:
            at = self.by_ordinal[each.ordinals[0]]
            partition = self.targets.partitions[at]
            entry = replace(each.entry, spec_id=spec_ids[at], partition=partition)
            found.append(replace(each, entry=entry))
        return tuple(found)
