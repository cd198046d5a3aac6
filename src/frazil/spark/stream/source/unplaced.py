"""Streams whose checkpoint is known once a query starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import SparkSession

from frazil.spark.session.scratch import ScratchFolder
from frazil.spark.stream.source.follower import Follower
from frazil.spark.stream.source.log import FOLDER, StreamLog, checkpoint_folder
from frazil.spark.stream.source.scratch_list import ScratchList
from frazil.storage.files import FileIO

_NOT_PLACED: Final = (
    "frazil.errors.ConfigurationError: Spark did not tell the checkpoint of this query, in which "
    "the stream keeps what its batches hold: give the reader the folder too that the writer gets"
)


@dataclass(frozen=True)
class UnplacedStream:
    """A stream that a frame reads from a scratch folder.

    Attributes:
        spark: the session.
        scratch: the folder.
        checkpoint_io: the store of checkpoints.
        follows: makes the follower that fills a log.
    """

    spark: SparkSession
    scratch: ScratchFolder
    checkpoint_io: FileIO
    follows: Callable[[StreamLog], Follower]
    shown: ScratchList = field(init=False)

    def __post_init__(self) -> None:
        shown = ScratchList(self.spark, self.scratch, name=FOLDER)
        object.__setattr__(self, "shown", shown)
        shown.refuse(_NOT_PLACED)

    def follower_in(self, checkpoint: str) -> Follower:
        """Return the follower that keeps its log in this checkpoint, which Spark follows now.

        Raises:
            ConfigurationError: no stream can be kept in a folder of this name; and the errors of
                `Follower.catch_up`.
        """
        folder = checkpoint_folder(checkpoint)
        log = StreamLog(self.spark, self.checkpoint_io, folder, shown=self.shown)
        follower = self.follows(log)
        log.show()
        follower.catch_up()
        return follower
