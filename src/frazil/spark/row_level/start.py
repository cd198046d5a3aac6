"""What a command that writes starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame, SparkSession

from frazil.format.manifests import DataFile
from frazil.format.metadata import TableMetadata
from frazil.format.predicates.expressions import Expression
from frazil.format.schema import Schema
from frazil.format.snapshots import Snapshot
from frazil.spark.conditions import Condition, condition_of
from frazil.spark.port import SparkPort
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.target import Target
from frazil.spark.write.distribute import Placement
from frazil.spark.write.files import write_data_files
from frazil.spark.write.row_count import ExpectedRows
from frazil.spark.write.write_audit_publish import Destination, destination
from frazil.table.snapshots.producer import SnapshotSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a command starts from, checked before anything is written.

    Attributes:
        base: the newest metadata.
        destination: where the snapshot goes.
        head: the snapshot that it builds on; None where the branch is empty.
        settings: of the commit.
    """

    port: SparkPort
    options: CommitOptions
    base: TableMetadata
    destination: Destination
    head: Snapshot | None
    settings: SnapshotSettings

    @classmethod
    def of(
        cls, port: SparkPort, options: CommitOptions, given_destination: Destination | None = None
    ) -> Self:
        """Look at the table as it is now.

        Args:
            given_destination: where the snapshot goes, in place of what options and session say.

        Raises:
            NoSuchRefError: there is no such branch.
        """
        base = port.newest()
        target = (
            destination(port.spark, base, options.branch)
            if given_destination is None
            else given_destination
        )
        return cls(
            port=port,
            options=options,
            base=base,
            destination=target,
            head=port.head(target, base),
            settings=port.settings(base, target, options.snapshot_properties),
        )

    @property
    def snapshot_id(self) -> int | None:
        """The snapshot that the command builds on."""
        return None if self.head is None else self.head.snapshot_id

    @property
    def spark(self) -> SparkSession:
        """The table's session."""
        return self.port.spark

    @property
    def case_sensitive(self) -> bool:
        """How names are matched."""
        return self.port.case_sensitive

    def condition(
        self, where: str | Column | Expression | None, *, alias: str | None = None
    ) -> Condition:
        """Return a condition on the table's rows.

        Raises:
            PredicateError: it does not fit the schema, or is refused by Spark.
        """
        return condition_of(
            where,
            self.base.schema,
            spark=self.spark,
            case_sensitive=self.case_sensitive,
            time_zone=self.port.text_zone,
            alias=alias,
        )

    def target(self, spark: SparkSession, where: Expression, beside: Sequence[str] = ()) -> Target:
        """Plan the files that may hold rows of a predicate."""
        return Target.of(spark, self.base, self.port.io, self.head, where=where, beside=beside)

    def write_files(
        self,
        rows: DataFrame,
        *,
        schema: Schema | None = None,
        placement: Placement | None = None,
        expected: ExpectedRows | None = None,
    ) -> list[DataFile]:
        """Write rows as data files of the table, which nothing refers to yet."""
        return write_data_files(
            self.port.spark,
            rows,
            metadata=self.base,
            io=self.port.io,
            name=self.port.name,
            options=self.options.options,
            schema=schema,
            placement=placement,
            expected=expected,
            on_progress=self.options.on_progress,
        )


def with_own_files(settings: SnapshotSettings, files: Sequence[DataFile]) -> SnapshotSettings:
    """Return settings of a commit with which the files go if it does not take place."""
    return {**settings, "own_files": tuple(file.file_path for file in files)}
