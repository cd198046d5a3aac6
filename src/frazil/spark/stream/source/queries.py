"""Which queries run over which logs: Spark tells, followers are told."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    JStreamingQueryListener,
    QueryStartedEvent,
    StreamingQueryListener,
)

from frazil.errors import ValidationError
from frazil.spark.abilities import HAS_JOB_TAGS
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import checkpoint_of_query, sources_of_query
from frazil.spark.stream.source.follower import Follower
from frazil.spark.stream.source.log import FOLDER
from frazil.spark.stream.source.unplaced import UnplacedStream
from frazil.storage.paths import join

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryTerminatedEvent,
    )
    from pyspark.sql.streaming.query import StreamingQuery

_LOG = logging.getLogger(__name__)
_KEPT_FAILURES = 100
_LONGEST_START = 60.0
_LOOK_EVERY = 0.01
"""Seconds."""
_WATCHES: Final = BySession["Watch"]()


class Watch(StreamingQueryListener):
    """Tells the followers of a session's streams what its queries do.

    Spark calls `onQueryStarted` before a query looks at its sources, and waits for it, so every
    query, also one with ``availableNow``, begins with what the table has then. A follower hears of
    the queries that read its log alone: of others it would look at its table, and write to its
    checkpoint, for nobody. Over Spark Connect a query's sources are known from its first progress
    on; until then it may be any that was not read yet.

    Args:
        spark: the session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self._followers: dict[str, Follower] = {}
        self._unplaced: dict[str, UnplacedStream] = {}
        self._failures: dict[str, Exception] = {}
        self._readers: dict[str, set[str]] = {}

    @cached_property
    def _jlistener(self) -> Any:
        """What the virtual machine tells, in a classic session."""
        session: Any = self._spark
        streaming = session._jvm.org.apache.spark.sql.streaming
        return streaming.PythonStreamingQueryListenerWrapper(_Listener(self))

    def add(self, follower: Follower) -> None:
        """Tell this follower; it takes the place of another one of the same log.

        Where no query runs, what the last one left half done is undone. What was written for
        batches long past is removed.
        """
        with self._lock:
            before = self._followers.get(follower.log.spark_folder)
            self._followers[follower.log.spark_folder] = follower
            self._readers.pop(follower.log.spark_folder, None)
        if before is not None:
            follower.take_over(before)
        follower.forget_unplanned()
        follower.forget_finished()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """The followers of the logs that the query reads look at their tables."""
        query_id, run_id = str(event.id), str(event.runId)
        sources = sources_of_query(self._spark, query_id)
        folders = None if sources is None else [_folder(source) for source in sources]
        if not self._place(query_id, run_id, folders or []):
            return

        def tell(folder: str, follower: Follower) -> None:
            is_read = (
                self._may_read(query_id, folder, follower)
                if folders is None
                else any(_is_same_folder(read, folder) for read in folders)
            )
            if is_read:
                follower.query_started(run_id)

        self._tell(tell)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """The query's sources name their folders and how far they have been read."""
        query_id, run_id = str(event.progress.id), str(event.progress.runId)
        sources = [(_folder(each.description), each.endOffset) for each in event.progress.sources]

        def tell(folder: str, follower: Follower) -> None:
            for read, offset in sources:
                if _is_same_folder(read, folder):
                    self._note_reader(query_id, folder)
                    follower.query_took(run_id, _batches(offset))
                    return
            follower.query_ended(run_id)

        self._tell(tell)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """The query found nothing new."""
        self._tell(lambda _, follower: follower.query_is_idle(str(event.runId)))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """The query ended."""
        self._tell(lambda _, follower: follower.query_ended(str(event.runId)))

    def add_unplaced(self, stream: UnplacedStream) -> None:
        """Place this stream in the checkpoint of the query that reads it."""
        with self._lock:
            self._unplaced[stream.shown.spark_folder] = stream

    def failure(self, run_id: str) -> Exception | None:
        """Return why a query that has just been started cannot read its streams, once."""
        with self._lock:
            return self._failures.pop(run_id, None)

    def _note_failure(self, run_id: str, error: Exception) -> None:
        # Who started the query may look after it has ended, or never.
        with self._lock:
            self._failures[run_id] = error
            while len(self._failures) > _KEPT_FAILURES:
                del self._failures[next(iter(self._failures))]

    def _place(self, query_id: str, run_id: str, folders: Sequence[str]) -> bool:
        """Place the query's streams in its checkpoint; False where the query is to be stopped."""
        with self._lock:
            known = list(self._unplaced.items())
        read = [
            (place, stream)
            for place, folder in enumerate(folders)
            for shown, stream in known
            if _is_same_folder(folder, shown)
        ]
        checkpoint = checkpoint_of_query(self._spark, query_id) if read else None
        if checkpoint is None:
            return True
        several = len({stream.shown.spark_folder for _, stream in read}) > 1
        for place, stream in read:
            # A log for each stream: the place among the query's sources never changes.
            folder = join(checkpoint, f"{FOLDER}-source-{place}") if several else checkpoint
            if not self._place_one(stream, folder, query_id, run_id):
                return False
        return True

    def _place_one(
        self, stream: UnplacedStream, checkpoint: str, query_id: str, run_id: str
    ) -> bool:
        shown = stream.shown.spark_folder
        with self._lock:
            before = self._followers.get(shown)
        if before is not None and before.is_followed_for_others(run_id):
            refusal = ValidationError(
                "a query runs over this stream already, with the checkpoint "
                f"{before.log.checkpoint}: read the table again for another query"
            )
            self._note_failure(run_id, refusal)
            _LOG.error("a streaming query is stopped: %s", refusal)
            query = self._spark.streams.get(query_id)
            if query is not None:
                threading.Thread(
                    target=_stop_once_started, args=(query,), name="frazil-stop", daemon=True
                ).start()
            return False
        try:
            follower = stream.follower_in(checkpoint)
        except Exception as error:
            self._note_failure(run_id, error)
            with self._lock:
                self._followers.pop(shown, None)
            shape = type(error)
            stream.shown.refuse(f"{shape.__module__}.{shape.__qualname__}: {error}")
            return True
        self.add(follower)
        return True

    def _may_read(self, query_id: str, folder: str, follower: Follower) -> bool:
        """Whether a query whose sources are not known may read this log."""
        with self._lock:
            readers = self._readers.get(folder)
        if readers is not None:
            return query_id in readers
        if follower.has_checkpoint_of(query_id):
            self._note_reader(query_id, folder)
            return True
        return follower.log.header() is not None

    def _note_reader(self, query_id: str, folder: str) -> None:
        with self._lock:
            self._readers.setdefault(folder, set()).add(query_id)

    def _tell(self, what: Callable[[str, Follower], None]) -> None:
        with self._lock:
            followers = list(self._followers.items())
        for folder, follower in followers:
            what(folder, follower)


class _Listener(JStreamingQueryListener):
    """Watches for the virtual machine: PySpark's own fails where the query's thread has tags."""

    def onQueryStarted(self, event: Any) -> None:
        """Tell of a query's start."""
        started = QueryStartedEvent(
            id=UUID(str(event.id().toString())),
            runId=UUID(str(event.runId().toString())),
            name=event.name(),
            timestamp=event.timestamp(),
            **({"jobTags": set()} if HAS_JOB_TAGS else {}),
        )
        self.pylistener.onQueryStarted(started)


def check_started(spark: SparkSession, query: StreamingQuery) -> StreamingQuery:
    """Return a query that has just been started, whose streams could be placed.

    Raises:
        ValidationError, NoSuchSnapshotError, …: they could not; the query is stopped.
    """
    known = _WATCHES.get(spark)
    failure = None if known is None else known.failure(str(query.runId))
    if failure is None:
        return query
    query.stop()
    raise failure


def watch_of(spark: SparkSession) -> Watch:
    """Return what tells streams of a session's queries, from now on."""

    def start_watch(spark: SparkSession) -> Watch:
        watch = Watch(spark)
        spark.streams.addListener(watch)
        return watch

    return _WATCHES.get_or_make(spark, start_watch)


def _stop_once_started(query: StreamingQuery) -> None:
    """Stop a query, not before Spark has told of its start.

    A stop interrupts what the query does: while it tells, Spark would take the listener for broken
    and remove it.
    """
    told, deadline = str(query.status["message"]), time.monotonic() + _LONGEST_START
    while str(query.status["message"]) == told and time.monotonic() < deadline and query.isActive:
        time.sleep(_LOOK_EVERY)
    query.stop()


def _folder(description: str) -> str:
    """The folder that a file source follows, by Spark's description of it before or at work."""
    return (
        description.removeprefix("FileStreamSource[").removeprefix("FileSource[").removesuffix("]")
    )


def _is_same_folder(folder: str, other: str) -> bool:
    """Whether two spellings are one folder: Spark adds a file system's default authority."""
    (authority, path), (other_authority, other_path) = (
        _authority_and_path(folder),
        _authority_and_path(other),
    )
    same_store = authority == other_authority or not (authority and other_authority)
    return same_store and path == other_path


def _authority_and_path(folder: str) -> tuple[str, str]:
    """Authority and path."""
    rest = folder.partition(":")[2]
    if not rest.startswith("//"):
        return "", rest.strip("/")
    authority, _, path = rest[2:].partition("/")
    return authority, path.strip("/")


def _batches(offset: str | None) -> int:
    """How many batches lie before an offset: each takes one line of the log."""
    try:
        return int(json.loads(offset or "{}").get("logOffset", -1)) + 1
    except (ValueError, AttributeError):
        return 0
