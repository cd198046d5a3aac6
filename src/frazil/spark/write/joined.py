"""Files whose row groups several tasks wrote become one file each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from math import ceil
from typing import Final

from frazil.format.metadata import TableMetadata
from frazil.format.properties.table import ROW_GROUP_SIZE
from frazil.spark.session import costs
from frazil.storage.files import FileInfo, local_path
from frazil.storage.locations import new_data_folder
from frazil.storage.parquet.joining import join_files
from frazil.storage.side_by_side import in_threads

_TASK: Final = re.compile(r"^part-(\d+)-")


def pieces_of(metadata: TableMetadata, size: int) -> int:
    """Return how many tasks may write a file of so many bytes together.

    One for each row group that the file would have anyway, and no more: smaller row groups would
    cost every read. Joining is a copy, so it is left to local disks.
    """
    if local_path(new_data_folder(metadata, "-")) is None:
        return 1
    return min(max(1, ceil(size / ROW_GROUP_SIZE.of(metadata.properties))), costs.JOINED_PIECES)


def joined_pieces(files: Sequence[FileInfo], *, pieces: int, most: int) -> list[FileInfo]:
    """Join the files of neighbouring tasks, and return what is there then.

    Args:
        files: of one write, in the order of their paths.
        pieces: so many tasks wrote a file together.
        most: a file that would have more bytes is not made.

    Raises:
        InvalidDataFileError: Spark wrote what is no Parquet file.
    """
    runs: list[list[FileInfo]] = []
    for _, some in groupby(files, lambda file: _file_of(file.path, pieces)):
        run: list[FileInfo] = []
        for file in some:
            if run and sum(each.size for each in run) + file.size > most:
                runs.append(run)
                run = []
            run.append(file)
        runs.append(run)
    return in_threads(_join, runs, name="frazil-joining")


def _file_of(path: str, pieces: int) -> tuple[str, int]:
    folder, _, name = path.rpartition("/")
    task = _TASK.match(name)
    return folder, int(task.group(1)) // pieces if task else -1


def _join(run: Sequence[FileInfo]) -> FileInfo:
    if len(run) == 1:
        return run[0]
    paths = [local_path(file.path) for file in run]
    size = join_files([path for path in paths if path is not None])
    return FileInfo(run[0].path, size, run[0].modified_ms)
