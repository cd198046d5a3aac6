"""What a DataFrame's plan tells of the table that it reads."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from frazil.format.metadata import TableMetadata
from frazil.spark.plans.machine import Machine
from frazil.spark.plans.table_marks import mark
from frazil.spark.scan import Scan


@dataclass(frozen=True, slots=True)
class TableMark:
    """Which rows a DataFrame has: of which table, snapshot and schema.

    Attributes:
        place: the table's name, the lake's before it; or its folder.
        table: what it is known by, whatever it is called.
        snapshot_id: None of a table without rows.
        schema_id: of the columns.
    """

    place: tuple[str, ...] | str
    table: str
    snapshot_id: int | None
    schema_id: int

    @classmethod
    def of(cls, place: tuple[str, ...] | str, metadata: TableMetadata, scan: Scan) -> TableMark:
        """Return the mark of the rows of a scan."""
        snapshot = None if scan.snapshot is None else scan.snapshot.snapshot_id
        return cls(place, str(metadata.table_uuid), snapshot, scan.schema.schema_id)

    @classmethod
    def read(cls, text: str) -> TableMark:
        """Return what a text says."""
        place, *said = json.loads(text)
        return cls(place if isinstance(place, str) else tuple(place), *said)

    @property
    def text(self) -> str:
        """The mark as text."""
        return json.dumps([self.place, self.table, self.snapshot_id, self.schema_id])

    def mark_rows(self, rows: DataFrame) -> DataFrame:
        """Return rows of a classic session, whose plan tells of it from now on."""
        frame: Any = rows
        machine = Machine(rows.sparkSession.sparkContext._gateway)
        mark(machine, frame._jdf.logicalPlan(), self.text)
        return rows

    def metadata_then(self, metadata: TableMetadata) -> TableMetadata | None:
        """Return a table as it was when the rows were read; None where it is another one.

        Raises:
            NoSuchSnapshotError: the snapshot is gone.
        """
        if str(metadata.table_uuid) != self.table or self.schema_id not in metadata.schemas_by_id:
            return None
        if self.snapshot_id is not None:
            metadata.snapshot_by_id(self.snapshot_id)
        return replace(
            metadata, current_snapshot_id=self.snapshot_id, current_schema_id=self.schema_id
        )
