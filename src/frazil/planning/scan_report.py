"""What a scan was and cost, for those who watch a table: the protocol's scan report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from frazil.format.metadata import TableMetadata
from frazil.format.predicates.without_values import without_values
from frazil.planning.deletes.index import EQUALITY_DELETES, POSITION_DELETES
from frazil.planning.scan_plan import ScanPlan, SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanReport:
    """What a scan was and cost.

    Attributes:
        table_name: the catalog's name and the table's.
        snapshot_id: of what was read.
        schema_id: by which it was read.
        field_ids: the columns that were asked for.
        field_names: their names.
        filter: the predicate in the protocol's JSON; True takes all rows.
        counts: by the protocol's names, as ``result-data-files``.
        nanoseconds: that planning took.
    """

    kind: ClassVar[str] = "scan-report"

    table_name: str
    snapshot_id: int
    schema_id: int
    field_ids: Sequence[int] = ()
    field_names: Sequence[str] = ()
    filter: Any = True
    counts: Mapping[str, int] = field(default_factory=dict)
    nanoseconds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the protocol's object."""
        planning = {"count": 1, "time-unit": "nanoseconds", "total-duration": self.nanoseconds}
        return {
            "report-type": self.kind,
            "table-name": self.table_name,
            "snapshot-id": self.snapshot_id,
            "filter": self.filter,
            "schema-id": self.schema_id,
            "projected-field-ids": list(self.field_ids),
            "projected-field-names": list(self.field_names),
            "metrics": {"total-planning-duration": planning, **counters(self.counts)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedScan:
    """A scan that was planned; a report is made of it later, beside the work.

    Attributes:
        metadata: the table as it was.
        plan: what is read.
        columns: ids and names of the columns that were asked for.
        nanoseconds: that planning took.
    """

    metadata: TableMetadata
    plan: ScanPlan
    columns: Mapping[int, str]
    nanoseconds: int

    def report(self, table_name: str) -> ScanReport | None:
        """Return the report; None of a table without a snapshot, of which there is none.

        Values of the filter are left out: they may be anybody's data.
        """
        plan = self.plan
        if plan.snapshot_id is None:
            return None
        schema_id = plan.schema.schema_id
        return ScanReport(
            table_name=table_name,
            snapshot_id=plan.snapshot_id,
            schema_id=self.metadata.current_schema_id if schema_id is None else schema_id,
            field_ids=tuple(self.columns),
            field_names=tuple(self.columns.values()),
            filter=without_values(plan.where),
            counts=_counts(plan),
            nanoseconds=self.nanoseconds,
        )


def counters(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return counts as the protocol writes them."""
    return {
        name: {"unit": "bytes" if "size" in name else "count", "value": value}
        for name, value in counts.items()
    }


def _counts(plan: ScanPlan) -> dict[str, int]:
    """Java's names of what planning found."""
    deletes = plan.deletes
    whole = [each for each in plan.skipped if each.reason is SkipReason.MANIFEST_SUMMARY]
    single = [each for each in plan.skipped if each.reason is not SkipReason.MANIFEST_SUMMARY]
    is_position = deletes["content"] == POSITION_DELETES
    is_vector = is_position & (deletes["file_format"] == "puffin")
    return {
        "result-data-files": plan.file_count,
        "result-delete-files": plan.delete_count,
        "scanned-data-manifests": len(plan.manifests),
        "scanned-delete-manifests": max(0, plan.manifests_read - len(plan.manifests)),
        "skipped-data-manifests": sum(each.manifests for each in whole),
        "skipped-data-files": sum(each.files or 0 for each in single),
        "total-file-size-in-bytes": plan.size_in_bytes,
        "total-delete-file-size-in-bytes": int(deletes["file_size_in_bytes"].sum()),
        "indexed-delete-files": plan.delete_count,
        "equality-delete-files": int((deletes["content"] == EQUALITY_DELETES).sum()),
        "positional-delete-files": int((is_position & ~is_vector).sum()),
        "dvs": int(is_vector.sum()),
    }
