"""Each batch of a stream once: what the table remembers of the batches that it holds.

The number of a query's last batch is a table property, which is set in the commit of the batch
itself. Snapshots may expire and branches may be rolled back: the property stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame

from frazil.errors import ConflictError, InvalidMetadataError, ValidationError
from frazil.format.changes import SetProperties, Update
from frazil.format.metadata import TableMetadata
from frazil.spark.port import SparkPort
from frazil.spark.row_level.merging.evolution import add_columns_of
from frazil.spark.row_level.options import CommitOptions
from frazil.spark.row_level.start import Start, with_own_files
from frazil.spark.row_level.writes import Overwrite, Rows
from frazil.spark.write.rows import rows_of
from frazil.table.commit.operation import MetadataOperation
from frazil.table.commit.retries import run_with_retries
from frazil.table.file_changes import FileChanges

QUERY_ID: Final = "frazil.stream.query-id"
BATCH_ID: Final = "frazil.stream.batch-id"
"""In the summaries of a stream's snapshots."""

_PREFIX: Final = "frazil.stream.last-batch."


class BatchAppliedError(ConflictError):
    """The table has the batch already; whoever applies it is done."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What tells a batch of changes from all others.

    Attributes:
        query: the id of what the batches come from; it stays the same when that starts again.
        number: batches are applied in the order of their numbers.
        properties: what the table gets in the commit of the batch besides.
    """

    query: str
    number: int
    properties: Mapping[str, str] = field(default_factory=dict, compare=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.query, str) or not self.query.strip():
            raise ValidationError(f"a batch's query is the text of an id, not {self.query!r}")
        number = self.number
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise ValidationError(f"batches are numbered from 0 on, not {number!r}")

    @property
    def property_name(self) -> str:
        """The table property that holds the number of the query's last batch."""
        return f"{_PREFIX}{self.query}"

    @property
    def summary(self) -> dict[str, str]:
        """What the batch's snapshot says of it."""
        return {QUERY_ID: self.query, BATCH_ID: str(self.number)}

    def is_in(self, metadata: TableMetadata) -> bool:
        """Return whether the table has the batch, or a later one of its query.

        Raises:
            InvalidMetadataError: the table's property is no number.
        """
        last = metadata.properties.get(self.property_name)
        if last is None:
            return False
        try:
            return int(last) >= self.number
        except ValueError:
            raise InvalidMetadataError(
                f"the property {self.property_name} is {last!r}, no number of a batch; set it to "
                "that of the last batch which the table has"
            ) from None


def mark(batch: Batch) -> MetadataOperation:
    """Let the table remember that it has a batch.

    Raises:
        BatchAppliedError: when run, if it has it already.
    """

    def updates(base: TableMetadata) -> list[Update]:
        if batch.is_in(base):
            raise BatchAppliedError(
                f"the table has batch {batch.number} of the query {batch.query} already"
            )
        return [SetProperties({**batch.properties, batch.property_name: str(batch.number)})]

    return MetadataOperation(updates)


@contextmanager
def as_batch(port: SparkPort, batch: Batch | None) -> Iterator[SparkPort]:
    """Give what the operations of a batch are run on: one commit, which notes that it has it.

    Raises:
        BatchAppliedError: the table has the batch already.
    """
    with port.in_one_commit() as together:
        if batch is not None:
            # First of all: in a commit that is tried again it looks at what is there by then.
            together.run(mark(batch))
        yield together


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendBatch:
    """Add the rows of a batch in one commit, unless the table has the batch already.

    Attributes:
        rows: what is added.
        options: where the snapshot goes, and how files are written.
        merges_schema: whether the table gets the columns that it lacks, in the same commit.
    """

    rows: DataFrame
    batch: Batch
    options: CommitOptions
    merges_schema: bool = False

    def run(self, port: SparkPort) -> None:
        """Run it, again on the new snapshot after a conflict; see `Table.append_stream`."""
        options = self.options.with_summary(self.batch.summary)

        def run_once() -> None:
            with suppress(BatchAppliedError), as_batch(port, self.batch) as together:
                if self.merges_schema:
                    add_columns_of(self.rows, together)
                start = Start.of(together, options)
                files = start.write_files(self.rows)
                if files:
                    FileChanges(together).fast_append(
                        files, **with_own_files(start.settings, files)
                    )

        run_with_retries(run_once, lambda _: port.retries)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceRows:
    """Put the rows of a batch in place of all rows, in one commit.

    Attributes:
        rows: the new rows.
        options: how files are written.
        merges_schema: as of `AppendBatch`.
    """

    rows: Rows
    batch: Batch
    options: CommitOptions
    merges_schema: bool = False

    def run(self, port: SparkPort) -> None:
        """Run it.

        Raises:
            BatchAppliedError: the table has the batch already.
        """
        rows = rows_of(port.spark, self.rows)
        with as_batch(port, self.batch) as together:
            if self.merges_schema:
                add_columns_of(rows, together)
            Overwrite(rows=rows, options=self.options.with_summary(self.batch.summary)).run(
                together
            )
