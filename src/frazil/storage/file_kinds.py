"""What the files of a table hold, and what follows: their names, places, metrics and entries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from frazil.format.manifests import Content
from frazil.format.manifests.model import FileFormat
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.properties.column_metrics import metrics_modes
from frazil.format.properties.kinds import Property
from frazil.format.properties.metrics_mode import COUNTS, FULL, MetricsMode
from frazil.format.properties.table import DELETE_TARGET_FILE_SIZE, TARGET_FILE_SIZE
from frazil.format.schema import Schema
from frazil.format.types import UUIDType
from frazil.storage.locations import data_file_path, partition_folders


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """One kind of file.

    Attributes:
        content: what its entry says of it.
        file_format: what it is written in.
        in_partition_folder: whether one file is of one partition, and lies in its folder.
        has_full_bounds: whether bounds are never cut, whatever the table says of its columns.
        equality_ids: of equality deletes, the fields that are compared; else None.
    """

    content: Content
    file_format: FileFormat
    in_partition_folder: bool = True
    has_full_bounds: bool = False
    equality_ids: tuple[int, ...] | None = None

    @property
    def target_size(self) -> Property[int]:
        """The property that says near which size files are closed."""
        return TARGET_FILE_SIZE if self.content is Content.DATA else DELETE_TARGET_FILE_SIZE

    def file_name(self, *, partition_id: int, task_id: int, operation_id: str, count: int) -> str:
        """Return a file's name, ``00003-7-<operation>-00001.parquet``; deletes are told by it."""
        mark = "" if self.content is Content.DATA else "-deletes"
        return f"{partition_id:05d}-{task_id}-{operation_id}-{count:05d}{mark}.{self.file_format}"

    def file_path(
        self,
        metadata: TableMetadata,
        name: str,
        *,
        spec: PartitionSpec,
        schema: Schema,
        partition: tuple[Any, ...],
    ) -> str:
        """Return where the table's layout wants a file of this name."""
        folders = ""
        if self.in_partition_folder and not spec.is_unpartitioned:
            folders = partition_folders(spec.partition_path(schema, partition))
        return data_file_path(metadata, name, partition_path=folders)

    def metrics_modes(
        self, schema: Schema, properties: Mapping[str, str], *, sorted_ids: Collection[int] = ()
    ) -> dict[int, MetricsMode]:
        """Return which statistics of each field its entries keep."""
        if self.has_full_bounds:
            return dict.fromkeys(schema.fields_by_id, FULL)
        # Bounds of what is compared tell readers which data files the deletes can be about.
        bounded = (*sorted_ids, *(self.equality_ids or ()))
        modes = metrics_modes(schema, properties, sorted_ids=bounded)
        if self.equality_ids is None:
            return modes
        # Java 1.12 and Trino compare bounds of uuids as signed numbers: deletes would stay out.
        for field_id, mode in modes.items():
            if mode.has_bounds and isinstance(schema.fields_by_id[field_id].field_type, UUIDType):
                modes[field_id] = COUNTS
        return modes


DATA_FILES: Final = FileKind(content=Content.DATA, file_format="parquet")
"""Rows of the table."""

POSITION_DELETE_FILES: Final = FileKind(
    content=Content.POSITION_DELETES,
    file_format="parquet",
    has_full_bounds=True,
)
"""Deleted rows by data file and position, of version 2."""

VECTOR_FILES: Final = FileKind(
    content=Content.POSITION_DELETES,
    file_format="puffin",
    in_partition_folder=False,
)
"""Deletion vectors, of version 3; those of one file may be of several partitions."""


def equality_delete_files(equality_ids: Collection[int]) -> FileKind:
    """Return the kind of files whose rows name deleted rows by these fields."""
    return FileKind(
        content=Content.EQUALITY_DELETES,
        file_format="parquet",
        equality_ids=tuple(equality_ids),
    )
