"""Short-lived folders that the Spark driver can see."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from frazil.errors import FrazilError, StorageError
from frazil.spark.session.facts import is_connect
from frazil.storage.files import FileIO
from frazil.storage.paths import is_local, join, local_path

SCRATCH_SETTING = "frazil.scratch"
"""Session setting: the folder for scratch files, on storage that the driver sees."""

_at_exit_lock = threading.Lock()
_at_exit: list[ScratchFolder] = []


@dataclass(frozen=True)
class ScratchFolder:
    """One folder for the file log of one scan."""

    location: str
    io: FileIO
    kept: bool

    def write(self, name: str, pieces: Iterable[bytes]) -> None:
        """Write one file below the folder, on a local disk piece by piece."""
        path = join(self.location, name)
        local = local_path(path)
        if local is None:
            self.io.create(path, b"".join(pieces))
            return
        # Nothing here outlives the process, so nothing waits for the disk.
        try:
            os.makedirs(os.path.dirname(local), exist_ok=True)
            with open(local, "xb") as stream:
                stream.writelines(pieces)
        except OSError as error:
            raise StorageError(f"cannot write the scratch file {path}: {error.strerror}") from error

    def release(self) -> None:
        """Remove the folder now, or when the process ends if the session reads it again.

        A classic session reads the folder while the DataFrame is made and never again; a Connect
        server reads it for every action.
        """
        if self.kept:
            self.remove_at_exit()
        else:
            self.remove()

    def remove_at_exit(self) -> None:
        """Remove the folder when the process ends."""
        with _at_exit_lock:
            if not _at_exit:
                atexit.register(_remove_at_exit)
            _at_exit.append(self)

    def remove(self) -> None:
        """Remove the folder; a failure leaves a few kilobytes behind and is not an error."""
        local = local_path(self.location)
        if local is not None:
            shutil.rmtree(local, ignore_errors=True)
            return
        try:
            self.io.delete_folder(self.location)
        except FrazilError:
            return


def scratch_folder(spark: SparkSession, io: FileIO, table_location: str) -> ScratchFolder:
    """A fresh folder for one scan.

    The setting ``frazil.scratch`` names its parent. Without it: the local temporary folder where
    the driver runs beside this process or the table itself is local, else a folder below the
    table's ``metadata``.
    """
    connect = is_connect(spark)
    parent = spark.conf.get(SCRATCH_SETTING, None)
    name = f"frazil-{uuid.uuid4().hex}"
    if not parent and connect and not is_local(table_location):
        parent = join(table_location, "metadata", "scratch")
    if not parent:
        path = tempfile.mkdtemp(prefix="frazil-")
        return ScratchFolder("file://" + os.path.abspath(path), FileIO(), kept=connect)
    return ScratchFolder(join(parent, name), io, kept=connect)


def is_scratch_local(spark: SparkSession, table_location: str) -> bool:
    """Whether the scratch folders of a table's scans are on a local disk."""
    parent = spark.conf.get(SCRATCH_SETTING, None)
    if parent:
        return is_local(parent)
    return not is_connect(spark) or is_local(table_location)


def _remove_at_exit() -> None:
    with _at_exit_lock:
        folders = list(_at_exit)
        _at_exit.clear()
    for folder in folders:
        folder.remove()
