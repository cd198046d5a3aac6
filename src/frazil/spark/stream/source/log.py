"""The durable log of a stream: which batches there are, and what each of them reads.

It lies in a folder of the query's checkpoint and has the shape of Spark's own file log, twice:

    <checkpoint>/frazil/stream.json                        whose log it is
    <checkpoint>/frazil/_spark_metadata/<N>.compact        the batches, one line each
    <checkpoint>/frazil/batches/<name>/_spark_metadata/0.compact    the files of one batch
    <checkpoint>/frazil/rows/                              files that were written for a batch
    <checkpoint>/frazil/finished.json                      how many batches are finished

Spark's streaming source follows the outer log and takes one line a micro-batch; a line names a
folder that has a log of its own, so Spark takes that batch's files as they are: it lists nothing,
and a file that is gone fails the query instead of being left out.

A batch that no query can go back to is finished: the next list leaves its line out, and its folder
is removed, so that a list stays short however long the stream runs.

Each outer file holds the whole list and takes its name by create-if-absent, so a batch is there
with its files or not at all, its number never means anything else, and of two processes that
follow one table for one checkpoint one fails. The list begins with a line for a folder, which
Spark passes over: how far the table has been followed. Spark reads the newest file alone, because
every number is a ``.compact`` file whatever the session's compaction interval is.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
from pyspark.sql import SparkSession

from frazil.errors import (
    AlreadyExistsError,
    ConfigurationError,
    InvalidFormatError,
    MissingFileError,
    StorageError,
    ValidationError,
)
from frazil.spark.files.parquet.file_log import encode_paths, log_lines
from frazil.spark.files.parquet.locations import spark_path, spark_paths
from frazil.spark.stream.source.query_checkpoint import QueryCheckpoint
from frazil.spark.stream.source.scratch_list import METADATA, ScratchList
from frazil.storage.files import FileIO
from frazil.storage.paths import join, normalize_location
from frazil.storage.side_by_side import in_threads

_LOG = logging.getLogger(__name__)

FOLDER: Final = "frazil"
_HEADER: Final = "stream.json"
_FINISHED: Final = "finished.json"
_REFUSED: Final = "refused-"
_KEPT_FILES: Final = 10
_VERSION: Final = 1
_WILDCARDS: Final = "*?[]{}\\"


def checkpoint_folder(text: str) -> str:
    """Return the folder of a checkpoint in Frazil's spelling.

    Raises:
        ConfigurationError: Spark cannot stream from a folder of this name.
    """
    folder = normalize_location(text)
    if any(character in _WILDCARDS for character in folder):
        raise ConfigurationError(
            f"the checkpoint is {folder!r}: Spark takes {' '.join(_WILDCARDS)} in the name of a "
            "folder to stream from as wildcards; choose another name"
        )
    return folder


@dataclass(frozen=True, slots=True)
class Position:
    """How far a table has been followed.

    Attributes:
        snapshot_id: every snapshot up to this one is in the log; None before the first.
        change_ordinal: what the next snapshot's ordinal among the changes is.
    """

    snapshot_id: int | None
    change_ordinal: int = 0


@dataclass(frozen=True, slots=True)
class LogState:
    """The newest state of a log.

    Attributes:
        number: of the newest outer file.
        position: how far the table has been followed.
        batches: a row a batch: ``path`` of its folder, ``size`` in bytes, ``ordinal``. Finished
            ones may be left out.
    """

    number: int
    position: Position
    batches: pl.DataFrame

    @property
    def batch_count(self) -> int:
        """How many batches there were in all."""
        return self.skip_count + len(self.batches)

    @property
    def skip_count(self) -> int:
        """How many batches are left out, all of them finished."""
        return int(self.batches["ordinal"][0]) if len(self.batches) else 0

    @property
    def names(self) -> dict[int, str]:
        """The names of the batches' folders by the batch's number."""
        names = self.batches["path"].str.split("/").list.last()
        return dict(zip(self.batches["ordinal"], names, strict=True))

    @property
    def refused_folder(self) -> str | None:
        """The folder of the last batch if it stands for an error, else None."""
        last = self.batches["path"][-1] if len(self.batches) else ""
        return last if last.rsplit("/", 1)[-1].startswith(_REFUSED) else None


class StreamLog:
    """The log of one checkpoint.

    Args:
        spark: the session whose paths the log holds.
        io: the store of the checkpoint.
        checkpoint: the folder of the query's checkpoint.
        shown: where Spark follows the log, if not in the checkpoint.
    """

    def __init__(
        self, spark: SparkSession, io: FileIO, checkpoint: str, *, shown: ScratchList | None = None
    ) -> None:
        self._spark = spark
        self._io = io
        self._shown = shown
        self.checkpoint = checkpoint
        self.folder = join(checkpoint, FOLDER)

    @property
    def spark_folder(self) -> str:
        """The folder as Spark opens it."""
        if self._shown is not None:
            return self._shown.spark_folder
        return spark_path(self.folder, self._spark, self._io)

    @property
    def rows_folder(self) -> str:
        """Where files that are written for the stream lie."""
        return join(self.folder, "rows")

    def header(self) -> dict[str, Any] | None:
        """Whose log it is; None where there is none."""
        try:
            found = json.loads(self._io.read(join(self.folder, _HEADER)))
        except MissingFileError:
            return None
        except ValueError as error:
            raise InvalidFormatError(
                f"a stream's header is damaged: {error}", file=join(self.folder, _HEADER)
            ) from None
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            raise InvalidFormatError(
                "a stream's header is of another version", file=join(self.folder, _HEADER)
            )
        return found

    def begin(self, header: dict[str, Any]) -> None:
        """Say whose log it will be; the first `publish` makes it one.

        Raises:
            ValidationError: the checkpoint has run batches of another log.
        """
        # Spark makes the folder before it tells of a query's start.
        if QueryCheckpoint(self._io, self.checkpoint).plans():
            raise self.is_gone()
        text = json.dumps({"version": _VERSION, **header})
        self._io.write(join(self.folder, _HEADER), text.encode(), overwrite=True)

    def is_gone(self) -> ValidationError:
        """The error for a checkpoint that goes on without its log."""
        return ValidationError(
            f"the checkpoint {self.checkpoint} has batches, but the log that they were read "
            f"from ({self.folder}) is gone: start over with another checkpoint"
        )

    def latest(self) -> LogState | None:
        """The newest state; None before the first `publish`."""
        try:
            names = self._io.list_folder(join(self.folder, METADATA))
        except MissingFileError:
            return None
        numbers = [
            int(name.removesuffix(".compact"))
            for name, is_folder in names
            if not is_folder and name.endswith(".compact")
        ]
        return self._read(max(numbers)) if numbers else None

    def show(self) -> None:
        """Let Spark follow the log where it is shown, from its newest state on."""
        if self._shown is None:
            return
        state = self.latest()
        self._shown.clear()
        if state is not None:
            self._shown.put(state.number, self._io.read(self._list(state.number)))

    def publish(
        self,
        before: LogState | None,
        batches: Sequence[pl.DataFrame],
        position: Position,
    ) -> LogState | None:
        """Add batches and move on, in one step; nothing is there before it and all after it.

        Args:
            before: the state that the batches were made from.
            batches: the files of each: ``path`` (as Spark shall open it), ``size``.

        Returns:
            the new state; None where another follower was first, and nothing was added.
        """
        folders = [f"{uuid.uuid4().hex}" for _ in batches]
        for name, files in zip(folders, batches, strict=True):
            self._write_log(name, log_lines(files.with_row_index("ordinal")))
        sizes = [int(files["size"].sum()) for files in batches]
        return self._append(before, folders, sizes, position)

    def refuse(self, before: LogState | None, reason: str) -> LogState | None:
        """Add a batch that fails the query that reads it, with this reason.

        Spark has no word for it but a file that is not there, whose name is the reason.

        Returns:
            as `publish`.
        """
        name = f"{_REFUSED}{uuid.uuid4().hex}"
        text = reason.replace("/", " ").replace("\n", " ")
        files = pl.DataFrame({"path": [f"file:///{text}"], "size": [4], "ordinal": [0]})
        self._write_log(name, log_lines(files))
        position = Position(None) if before is None else before.position
        return self._append(before, [name], [4], position)

    def clear_refused(self, state: LogState) -> None:
        """Let the last batch, if it stands for an error, be one without rows."""
        if state.refused_folder is not None:
            name = state.refused_folder.rsplit("/", 1)[-1]
            self._io.write(self._batch_log(name), b"v1", overwrite=True)

    def finish(self, state: LogState, *, batches: int) -> None:
        """Remove the files that were written for the first so many batches.

        A query that asks for one of them fails for want of its files. The next `publish` leaves
        them out. The table's own files are never touched.
        """
        done = self.finished_count()
        if batches <= done:
            return
        names = [name for number, name in state.names.items() if done <= number < batches]
        if next(iter(self._io.list(self.rows_folder)), None) is not None:
            for failure in self._remove_written(names).values():
                raise failure
        text = json.dumps({"version": _VERSION, "batches": batches})
        self._io.write(join(self.folder, _FINISHED), text.encode(), overwrite=True)

    def finished_count(self) -> int:
        """Return how many batches no query can go back to; their written rows are gone."""
        try:
            return int(json.loads(self._io.read(join(self.folder, _FINISHED)))["batches"])
        except MissingFileError:
            return 0
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidFormatError(
                f"a stream's note of finished batches is damaged: {error}",
                file=join(self.folder, _FINISHED),
            ) from None

    def _noted_as_finished(self) -> int:
        """How many batches are finished; a note that cannot be read stops no stream."""
        try:
            return self.finished_count()
        except (InvalidFormatError, StorageError) as error:
            _LOG.warning("the list of a stream's batches is not shortened: %s", error)
            return 0

    def _remove(self, batches: Sequence[str]) -> None:
        """Remove batches that did not come into the log, with what was written for them."""
        for path, failure in self._remove_written(batches).items():
            _LOG.warning("rows written in vain for a stream stay in %s: %s", path, failure)
        for name in batches:
            self._io.delete_folder(join(self.folder, "batches", name))

    def _remove_written(self, batches: Sequence[str]) -> dict[str, StorageError]:
        """Remove the files that were written for these batches; what could not be, by path."""
        folder = join(self.rows_folder, "data")
        shown = encode_paths(self._as_spark(pl.Series([folder]))).item()
        # The files' names are made here, and have nothing that would be spelled otherwise.
        return self._io.delete_many(
            join(folder, name) for batch in batches for name in self._files_below(shown, batch)
        )

    def _files_below(self, folder: str, batch: str) -> pl.Series:
        """The names of a batch's files that lie in a folder, spelled as in the log."""
        lines = self._io.read(self._batch_log(batch)).partition(b"\n")[2]
        if not lines:
            return pl.Series(dtype=pl.String)
        paths = pl.read_ndjson(lines, schema={"path": pl.String})["path"]
        return paths.filter(paths.str.starts_with(f"{folder}/")).str.split("/").list.last()

    def _append(
        self,
        before: LogState | None,
        names: Sequence[str],
        sizes: Sequence[int],
        position: Position,
    ) -> LogState | None:
        number = 0 if before is None else before.number + 1
        known = _NO_BATCHES if before is None else before.batches
        first = 0 if before is None else before.batch_count
        added = pl.DataFrame(
            {
                "path": [join(self.folder, "batches", name) for name in names],
                "size": list(sizes),
                "ordinal": list(range(first, first + len(names))),
            },
            schema=_NO_BATCHES.schema,
        )
        # The last finished one stays: the query's newest note may be of it.
        is_needed = pl.col("ordinal") >= min(self._noted_as_finished(), first + len(names)) - 1
        state = LogState(number, position, pl.concat([known, added]).filter(is_needed))
        lines = self._encode(state)
        try:
            self._io.create(self._list(number), lines)
        except AlreadyExistsError:
            # A store that is asked again, because its answer was lost, finds what it has taken.
            if not names or list(self._read(number).names.values())[-len(names) :] != list(names):
                self._remove(names)
                return None
        if self._shown is not None:
            self._shown.put(number, lines)
        if number >= _KEPT_FILES:
            # Spark finds the interval from two neighbours, so the newest ones stay.
            self._io.delete_many([self._list(number - _KEPT_FILES)])
            if self._shown is not None:
                self._shown.remove(number - _KEPT_FILES)
        if before is not None:
            self._remove_folders(
                before.batches.head(state.skip_count - before.skip_count)["path"].to_list()
            )
        return state

    def _remove_folders(self, folders: Sequence[str]) -> None:
        """Remove the folders of batches that no list names; one that stays harms nobody."""
        try:
            in_threads(self._io.delete_folder, folders, name="frazil-delete")
        except StorageError as error:
            _LOG.warning("the folder of a finished batch stays: %s", error)

    def _encode(self, state: LogState) -> bytes:
        snapshot = state.position.snapshot_id
        place = f"{'none' if snapshot is None else snapshot}-{state.position.change_ordinal}"
        folder = encode_paths(self._as_spark(pl.Series([join(self.folder, "position", place)])))
        line = {
            "path": folder.item(),
            "size": 0,
            "isDir": True,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
        batches = state.batches.with_columns(self._as_spark(state.batches["path"]))
        lines = log_lines(batches).decode().split("\n", 1)
        text = [lines[0], json.dumps(line, separators=(",", ":")), *lines[1:]]
        return "\n".join(text).encode()

    def _list(self, number: int) -> str:
        return join(self.folder, METADATA, f"{number}.compact")

    def _read(self, number: int) -> LogState:
        path = self._list(number)
        try:
            lines = self._io.read(path).decode().split("\n")
            first, rest = json.loads(lines[1]), "\n".join(lines[2:])
            snapshot, ordinal = first["path"].rsplit("/", 1)[-1].rsplit("-", 1)
            position = Position(None if snapshot == "none" else int(snapshot), int(ordinal))
            batches = _NO_BATCHES
            if rest:
                listed = pl.read_ndjson(
                    rest.encode(),
                    schema={"path": pl.String, "size": pl.Int64, "modificationTime": pl.Int64},
                )
                names = listed["path"].str.split("/").list.last()
                batches = listed.select(
                    (pl.lit(join(self.folder, "batches") + "/") + names).alias("path"),
                    "size",
                    pl.col("modificationTime").alias("ordinal"),
                )
        except (ValueError, KeyError, IndexError, pl.exceptions.PolarsError) as error:
            raise InvalidFormatError(f"a stream's log is damaged: {error}", file=path) from None
        return LogState(number, position, batches)

    def _write_log(self, name: str, lines: bytes) -> None:
        self._io.create(self._batch_log(name), lines)
        # Seen only by a Spark that takes several batches as one, which only once=True does: it
        # lists the folders, and fails here.
        guard = join(self.folder, "batches", name, "use trigger(availableNow=True).parquet")
        self._io.create(guard, b"not a data file")

    def _batch_log(self, name: str) -> str:
        return join(self.folder, "batches", name, METADATA, "0.compact")

    def _as_spark(self, paths: pl.Series) -> pl.Series:
        return spark_paths(paths, self._spark, self._io)


_NO_BATCHES: Final = pl.DataFrame(schema={"path": pl.String, "size": pl.Int64, "ordinal": pl.Int64})
