"""UpdateSpec: how new data is partitioned; existing files keep their spec (rules 68-92)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from frazil.errors import ConflictError
from frazil.format.changes import LAST_ADDED, AddSpec, SetDefaultSpec, Update
from frazil.format.metadata import TableMetadata
from frazil.format.partitions.evolution import PartitionEvolution
from frazil.format.partitions.partitioning import PartitionSpec
from frazil.table.commit.block import CommittedAtEnd
from frazil.table.commit.operation import MetadataOperation, Operation


class UpdateSpec(PartitionEvolution, CommittedAtEnd):
    """Collects changes of the partition spec; leaving the `with` block commits them.

        with table.update_spec() as u:
            u.add_field("day(ts)")
            u.remove_field("ts_month")

    An exception inside of the block commits nothing.
    """

    def __init__(
        self,
        metadata: TableMetadata,
        run: Callable[[Operation], None],
        *,
        case_sensitive: bool = True,
    ) -> None:
        super().__init__(
            metadata.schema,
            metadata.partition_specs,
            default_spec_id=metadata.default_spec_id,
            last_partition_id=metadata.last_partition_id,
            format_version=metadata.format_version,
            case_sensitive=case_sensitive,
        )
        self._table = metadata
        self._run_operation = run

    def replace_field(self, name_or_expr: str, expr: str, *, name: str | None = None) -> Self:
        """Remove one field and add another, in one step."""
        return self.remove_field(name_or_expr).add_field(expr, name=name)

    def commit(self) -> None:
        """Commit the changes; leaving the `with` block does this."""
        self._run_operation(replace_spec(self._table, self.apply()))


def replace_spec(start: TableMetadata, spec: PartitionSpec) -> MetadataOperation:
    """Make a spec that was evolved from `start` the default.

    Raises ConflictError when run on metadata whose partitioning or schema another commit changed
    (rule 213).
    """

    def updates(base: TableMetadata) -> list[Update]:
        before = (start.default_spec_id, start.last_partition_id, start.current_schema_id)
        now = (base.default_spec_id, base.last_partition_id, base.current_schema_id)
        if before != now:
            raise ConflictError(
                "another commit changed the table's schema or partitioning: default spec, last "
                f"partition field id and schema were {before} and are {now}; make the change again"
            )
        if spec.spec_id == base.default_spec_id:
            return []
        if spec.spec_id in base.specs_by_id:
            return [SetDefaultSpec(spec.spec_id)]
        return [AddSpec(spec), SetDefaultSpec(LAST_ADDED)]

    return MetadataOperation(updates)
