"""A follower brings a stream's log up to the table, when it is called and while queries run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from frazil.catalog.protocol import Catalog
from frazil.errors import FrazilError, StorageError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.schema import Schema
from frazil.format.types import PrimitiveType
from frazil.spark.session.facts import is_connect, is_stopped
from frazil.spark.stream.source.batch_files import Units
from frazil.spark.stream.source.batches import cut_batches
from frazil.spark.stream.source.log import LogState, StreamLog
from frazil.spark.stream.source.options import StreamOptions
from frazil.spark.stream.source.pending import first_pending, pending_since
from frazil.spark.stream.source.query_checkpoint import (
    QueryCheckpoint,
    checkpoints_around,
    is_compacted,
)
from frazil.storage.files import FileIO
from frazil.storage.paths import join
from frazil.table.snapshots.producer import branch_head

_LOG = logging.getLogger(__name__)
_TRIES = 10
_BATCHES_BETWEEN_LOOKS = 50


class Follower:
    """Turns what is new in a table into batches of a log.

    Args:
        spark: the session that reads the table where a file has to be written anew.
        catalog: where the table is.
        identifier: its name.
        metadata: the table as it is when the stream is made.
        log: the log to fill.
        log_io: the store of the log.
        options: what the stream reads.
    """

    def __init__(
        self,
        spark: SparkSession,
        catalog: Catalog,
        identifier: Sequence[str],
        metadata: TableMetadata,
        *,
        log: StreamLog,
        log_io: FileIO,
        options: StreamOptions,
    ) -> None:
        self.schema: Schema = metadata.schema
        self.log = log
        self._spark = spark
        self._catalog = catalog
        self._identifier = tuple(identifier)
        self._name = ".".join(identifier)
        self._uuid = metadata.table_uuid
        self._log_io = log_io
        self._options = options
        self._lock = threading.RLock()
        self._state: LogState | None = None
        self._taken: dict[str, int | None] = {}
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None
        self._tries = 0
        self._looked_at = 0
        self._successor: Follower | None = None

    # -- the log ---------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the log to the table's current snapshot.

        What comes before a snapshot that cannot be read is in the log when this raises. Where
        another follower of the log was first, this one goes on from there.

        Raises:
            ValidationError: a snapshot that the options do not allow; a table that was rolled
                back, replaced or changed a column's type; a log of another stream; others kept
                being first.
            NoSuchSnapshotError: a snapshot that was not read yet has expired.
        """
        with self._lock:
            for _ in range(_TRIES):
                if self._try_to_catch_up():
                    return
            raise ValidationError(
                f"another stream moved the checkpoint {self.log.checkpoint} on {_TRIES} times "
                f"while this one looked at {self._name}: a checkpoint serves one stream at a time"
            )

    def _try_to_catch_up(self) -> bool:
        """Catch up once; False where the table is to be looked at again."""
        loaded = self._catalog.load_table(self._identifier)
        metadata = loaded.metadata
        self._check_table(metadata)
        metadata = self._on_branch(metadata)
        state = self._state or self._open(metadata)
        known = (
            first_pending(metadata, self._options, now_ms=int(time.time() * 1000))
            if state is None
            else pending_since(metadata, state.position, self._options, name=self._name)
        )
        moved = state is None or known.position != state.position
        if state is not None and state.refused_folder is not None and known.refusal is None:
            check_goes_on(self._log_io, self.log.checkpoint, state)
            self.log.clear_refused(state)
        if moved:
            units = Units(
                spark=self._spark,
                metadata=metadata,
                io=loaded.io,
                schema=self.schema,
                options=self._options,
                rows_folder=self.log.rows_folder,
                rows_io=self._log_io,
            ).units_of(known)
            self._state = self.log.publish(state, cut_batches(units, self._options), known.position)
            if self._state is None:
                return False
        else:
            self._state = state
        if known.refusal is not None:
            raise known.refusal
        # A stream that starts at an earlier snapshot has its place now, but no rows yet.
        return not moved or bool(known.parts) or known.initial is not None

    def forget_unplanned(self) -> None:
        """Undo what a query that died left half done, unless one may be running."""
        self._leave_ended()
        with self._lock, self._wake:
            if self._state is not None and not self._taken:
                forget_unplanned(self._log_io, self.log.checkpoint, self._state)

    def forget_finished(self) -> None:
        """Remove what was written for batches which no query can go back to."""
        state = self._state
        if state is None:
            return
        self._looked_at = state.batch_count
        try:
            forget_finished(self._log_io, self.log, state)
        except Exception as error:
            # What is only in the way stops no stream.
            _LOG.warning("old rows of the stream of %s could not be removed: %s", self._name, error)

    def _open(self, metadata: TableMetadata) -> LogState | None:
        """The log's state; None for a log that is still to be made."""
        header = {
            "table": self._name,
            "table-uuid": metadata.table_uuid,
            "changes": self._options.reads_changes,
            "branch": self._options.branch,
            "where": self._options.where,
        }
        state = self.log.latest()
        if state is None:
            self.log.begin(header)
            return None
        found = self.log.header()
        if found is None:
            raise self.log.is_gone()
        if found.get("table-uuid") != metadata.table_uuid:
            raise ValidationError(
                f"the checkpoint {self.log.checkpoint} is of a stream of {found.get('table')} "
                f"({found.get('table-uuid')}), not of {self._name} ({metadata.table_uuid}): give "
                "another checkpoint"
            )
        if found.get("changes") != self._options.reads_changes:
            was, is_now = ("changes", "rows") if found.get("changes") else ("rows", "changes")
            raise ValidationError(
                f"the checkpoint {self.log.checkpoint} is of a stream of {was}, and {is_now} are "
                "asked for: give another checkpoint"
            )
        for what, asked in (("branch", self._options.branch), ("where", self._options.where)):
            if found.get(what) != asked:
                raise ValidationError(
                    f"the checkpoint {self.log.checkpoint} is of a stream with {what} "
                    f"{found.get(what)!r}, not {asked!r}: give another checkpoint"
                )
        check_goes_on(self._log_io, self.log.checkpoint, state)
        return state

    def _on_branch(self, metadata: TableMetadata) -> TableMetadata:
        """The table as it is for who reads the stream's branch."""
        branch = self._options.branch
        if branch is None:
            return metadata
        head = branch_head(metadata, branch)
        return replace(metadata, current_snapshot_id=None if head is None else head.snapshot_id)

    def _check_table(self, metadata: TableMetadata) -> None:
        if metadata.table_uuid != self._uuid:
            raise ValidationError(
                f"{self._name} is another table since the stream began: its uuid is "
                f"{metadata.table_uuid}, and was {self._uuid}"
            )
        now = metadata.schema.fields_by_id
        for field_id, field in self.schema.fields_by_id.items():
            changed = now.get(field_id)
            if (
                changed is not None
                and isinstance(field.field_type, PrimitiveType)
                and changed.field_type != field.field_type
            ):
                raise ValidationError(
                    f"the column {self.schema.find_column_name(field_id)!r} of {self._name} is a "
                    f"{changed.field_type} since the stream began, which reads it as "
                    f"{field.field_type}: restart the stream"
                )

    # -- queries ---------------------------------------------------------------------------------

    def has_checkpoint_of(self, query_id: str) -> bool:
        """Whether the log lies in this query's checkpoint, so that the query reads it."""
        around = checkpoints_around(self._log_io, self.log.checkpoint)
        return any(checkpoint.query_id() == query_id for checkpoint in around)

    def query_started(self, run_id: str) -> None:
        """A query began over this log: it shall find what the table has now."""
        self._or_refuse(self._look_again)
        if not is_connect(self._spark):
            # Over Spark Connect the query is already at its work when the client hears of it.
            self._or_refuse(self.forget_unplanned)
        self._follow_for([run_id])

    def is_followed_for_others(self, run_id: str) -> bool:
        """Whether another query than this one runs over this log."""
        self._leave_ended()
        return bool(self._taken.keys() - {run_id})

    def take_over(self, other: Follower) -> None:
        """Follow for the queries that another follower of the same log follows for."""
        with other._lock, other._wake:
            running = list(other._taken)
            other._taken.clear()
            other._successor = self
            other._wake.notify_all()
        with self._lock:
            # The other may have moved the log on since.
            self._state = self.log.latest()
        if running:
            self._follow_for(running)

    def query_took(self, run_id: str, batches: int) -> None:
        """A query has taken so many batches of the log in all."""
        with self._wake:
            if run_id in self._taken:
                self._taken[run_id] = batches
                return
        if run_id in (self._running_ids() or ()):
            # Its start did not tell that it reads this log.
            self._follow_for([run_id])

    def query_is_idle(self, run_id: str) -> None:
        """A query found nothing to take."""
        with self._wake:
            if run_id in self._taken:
                self._taken[run_id] = None

    def query_ended(self, run_id: str) -> None:
        """A query ended, or turned out to read something else."""
        with self._wake:
            self._taken.pop(run_id, None)
            self._wake.notify_all()

    def _follow_for(self, run_ids: Sequence[str]) -> None:
        with self._wake:
            successor = self._successor
            if successor is None:
                self._taken |= dict.fromkeys(run_ids)
        if successor is not None:
            successor._follow_for(run_ids)
            return
        self._or_refuse(self._go_on)
        with self._wake:
            if self._taken and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(
                    target=self._run, name=f"frazil-stream {self._name}", daemon=True
                )
                self._thread.start()

    def _look_again(self) -> None:
        """Take the log as it lies there, unless a query holds it: it may have been deleted."""
        self._leave_ended()
        if not self._taken:
            self._state = self.log.latest()

    def _leave_ended(self) -> None:
        """Follow no more for queries that have ended: Spark tells of that some time after it."""
        known = list(self._taken)
        running = self._running_ids() if known else None
        if running is None:
            return
        with self._wake:
            for run_id in known:
                if run_id not in running:
                    self._taken.pop(run_id, None)

    def _running_ids(self) -> set[str] | None:
        """The runs of the session's queries; None where Spark does not answer."""
        if is_stopped(self._spark):
            return set()
        try:
            return {str(query.runId) for query in self._spark.streams.active}
        except Exception as error:
            _LOG.debug("which queries run was not told: %s", error)
            return set() if is_stopped(self._spark) else None

    def _go_on(self) -> None:
        if self._state is not None:
            check_goes_on(self._log_io, self.log.checkpoint, self._state)
        self.catch_up()

    def _run(self) -> None:
        while True:
            with self._wake:
                if self._taken:
                    self._wake.wait(self._options.poll_interval)
            self._leave_ended()
            with self._wake:
                if not self._taken:
                    self._thread = None
                    return
                # While a query has batches before it, what is not cut yet can go into one batch.
                count = self._batch_count
                wanted = all(taken is None or taken >= count for taken in self._taken.values())
            if wanted:
                self._or_refuse(self.catch_up)
                if self._batch_count >= self._looked_at + _BATCHES_BETWEEN_LOOKS:
                    self.forget_finished()

    @property
    def _batch_count(self) -> int:
        return 0 if self._state is None else self._state.batch_count

    def _or_refuse(self, step: Callable[[], None]) -> None:
        """Do it; what stands in the way fails the queries."""
        with self._lock:
            if self._successor is not None:
                # It may be allowed what this one is not.
                return
            try:
                step()
                self._tries = 0
            except StorageError as error:
                self._tries += 1
                _LOG.warning("the stream of %s could not look at the table: %s", self._name, error)
                if self._tries >= _TRIES:
                    self._refuse(error)
            except Exception as error:
                self._refuse(error)

    def _refuse(self, error: Exception) -> None:
        _LOG.error("the stream of %s stops: %s", self._name, error)
        shown = type(error)
        text = f"{shown.__module__}.{shown.__qualname__}: {error}"
        try:
            for _ in range(_TRIES):
                state = self._state or self.log.latest()
                if state is not None and state.refused_folder is not None:
                    return
                refused = self.log.refuse(state, text)
                if self._state is not None:
                    # Without one the log is none that could be gone on with.
                    self._state = refused
                if refused is not None:
                    return
        except FrazilError as failure:
            _LOG.error("the stream of %s cannot be told: %s", self._name, failure)


def forget_finished(io: FileIO, log: StreamLog, state: LogState) -> None:
    """Remove what was written for batches that lie before every plan which Spark keeps.

    Args:
        io: the store of the checkpoint.
        log: of the stream.
        state: its newest state, or one before it.
    """
    readers = _readers(io, log.checkpoint, state.names)
    # So many of the first batches no query can go back to.
    ends = (_behind_the_oldest_plan(query, source) for query, source in readers)
    log.finish(state, batches=min(ends, default=0))


def check_goes_on(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Check that a query which begins with this log does not miss batches that are left out.

    Raises:
        ValidationError: batches are left out, and the query that took them is not found.
    """
    if state.skip_count and not _readers(io, checkpoint, state.names):
        raise ValidationError(
            f"the checkpoint {checkpoint} has no notes of the query that took its first "
            f"{state.skip_count} batches, and these are removed: start over with another checkpoint"
        )


def _readers(
    io: FileIO, checkpoint: str, names: Mapping[int, str]
) -> list[tuple[QueryCheckpoint, int]]:
    """The queries, each with the number of its source, that read the log with these batches."""
    return [
        (query, source)
        for query in checkpoints_around(io, checkpoint)
        for source in query.sources()
        if _reads(query, source, names)
    ]


def _reads(query: QueryCheckpoint, source: int, names: Mapping[int, str]) -> bool:
    """Whether the source's newest note is of the log with these batches."""
    notes = query.notes(source)
    number = max(notes, default=-1)
    if number not in names:
        return False
    return query.noted_folders(source, number, notes[number]) == {names[number]}


def _behind_the_oldest_plan(query: QueryCheckpoint, source: int) -> int:
    plans = query.plans()
    if not plans or plans[0] == 0:
        # Spark has removed no plan yet: it can begin again.
        return 0
    line = query.last_line(plans[0], source)
    return 0 if line is None else line + 1


def forget_unplanned(io: FileIO, checkpoint: str, state: LogState) -> None:
    """Remove the notes of a log's lines that no batch of the query was planned with.

    Spark's file source notes the line of the log that it took before the query plans a batch of it.
    After a death between the two Spark would take one more line and plan both as one batch, and
    several lines are no batch that it can read. A note without a plan means nothing yet: without
    it, Spark takes the same line again, by itself.

    No query may be running. What is not of Spark's form is left alone.
    """
    for query in checkpoints_around(io, checkpoint):
        plans = query.plans()
        for source in query.sources():
            planned = query.last_line(plans[-1], source) if plans else -1
            if planned is not None:
                _forget(query, source, planned, set(state.names.values()))


def _forget(query: QueryCheckpoint, source: int, planned: int, ours: set[str]) -> None:
    notes = query.notes(source)
    for number in sorted(notes, reverse=True):
        if number <= planned:
            return
        name = notes[number]
        # A compacted note stands for the ones before it, once Spark has cleared those away.
        needed = is_compacted(name) and number > 0 and number - 1 not in notes
        if needed or not query.noted_folders(source, number, name) <= ours:
            return
        path = join(query.folder_of(source), name)
        _LOG.info("a query died before it planned a batch of %s: Spark takes it again", path)
        query.io.delete(path)
