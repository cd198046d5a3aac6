"""Definition: what files were written for, and whether they still fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from frazil.errors import ConflictError
from frazil.format.evolution.promotion import can_promote
from frazil.format.manifests import Content, DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.format.schema import Schema
from frazil.format.types import NestedField


@dataclass(frozen=True, slots=True)
class Definition:
    """What the writer of files knew of the table.

    Attributes:
        format_version: the version whose kinds of delete files they are.
        schema: the schema whose field ids and types the files have.
        specs: the partition specs that were there, by id.
        head: the snapshot that was current; None in an empty table.
    """

    format_version: int
    schema: Schema
    specs: Mapping[int, PartitionSpec]
    head: int | None = None

    @classmethod
    def of(cls, metadata: TableMetadata) -> Definition:
        """Return the definition that a table has now."""
        return cls(
            metadata.format_version,
            metadata.schema,
            metadata.specs_by_id,
            metadata.current_snapshot_id,
        )

    def check_fits(self, metadata: TableMetadata, files: Collection[DataFile]) -> None:
        """Check that files written for this definition can become part of the table.

        Columns may have been added, renamed, dropped and promoted since.
        Raises ConflictError: another commit upgraded the table to a version in which a position
        delete file may not be added, removed or changed one of the specs, gave a column a type that
        the files do not have, made a column required that they lack, or replaced the table by one
        without a column that they have.
        """
        self._check_version(metadata, files)
        for spec_id in {file.spec_id for file in files}:
            written, now = self.specs.get(spec_id), metadata.specs_by_id.get(spec_id)
            if written is not None and written != now:
                raise ConflictError(
                    f"the files were written for partition spec {spec_id}, {written}, which "
                    f"another commit {'removed' if now is None else 'changed'}; write them again"
                )
        if self.schema.is_same_as(metadata.schema):
            return
        problem = self._misfit(metadata)
        if problem is not None:
            raise ConflictError(
                f"the files were written for schema {self.schema.schema_id}, and another commit "
                f"made schema {metadata.current_schema_id} the current one: {problem}; "
                "write them again"
            )

    def _check_version(self, metadata: TableMetadata, files: Iterable[DataFile]) -> None:
        """A position delete file is of a version before 3, where deletion vectors begin."""
        if not self.format_version < 3 <= metadata.format_version:
            return
        for file in files:
            if file.content is Content.POSITION_DELETES and not file.is_deletion_vector:
                raise ConflictError(
                    f"{file.file_path} is a position delete file for format version "
                    f"{self.format_version}, and another commit upgraded the table to version "
                    f"{metadata.format_version}, where none may be added; write the deletes again"
                )

    def _misfit(self, metadata: TableMetadata) -> str | None:
        now = metadata.schema
        for name, field in _fields_by_path(self.schema).items():
            found = now.field_or_none(field.field_id)
            if found is not None:
                if not _can_be_read_as(field, found, metadata.format_version):
                    return f"column {name} was {field.field_type} and is {found.field_type}"
                if found.required and not field.required:
                    return f"column {name} was optional and is required"
                continue
            other = now.field_or_none(name)
            if other is not None:
                return f"column {name} is another column now, {other.field_type}"
            if self._was_replaced(metadata):
                return f"column {name} is not in the table that replaced the one they were for"
        for column in now.fields:
            is_new = self.schema.field_or_none(column.field_id) is None
            if is_new and column.required and column.initial_default is None:
                return f"column {column.name} is required, and the files do not have it"
        if self.schema.fields and not any(
            now.field_or_none(field.field_id) for field in self.schema.fields
        ):
            return "none of their columns is left"
        return None

    def _was_replaced(self, metadata: TableMetadata) -> bool:
        """Whether the table began anew: what was current is no ancestor of what is."""
        if self.head is None:
            return False
        now = metadata.current_snapshot_id
        chain = () if now is None else metadata.ancestors_of(now)
        return all(snapshot.snapshot_id != self.head for snapshot in chain)


def _fields_by_path(schema: Schema) -> Mapping[str, NestedField]:
    return {
        name: field
        for field_id, field in schema.fields_by_id.items()
        if (name := schema.find_column_name(field_id)) is not None
    }


def _can_be_read_as(field: NestedField, found: NestedField, format_version: int) -> bool:
    before, now = field.field_type, found.field_type
    if not before.is_primitive or not now.is_primitive:
        # What is inside of structs, lists and maps has field ids of its own.
        return type(before) is type(now)
    return before == now or can_promote(before, now, format_version)
