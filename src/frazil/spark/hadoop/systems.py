"""Hadoop's file systems in the virtual machine, and what of Java goes with them."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import SparkSession

from frazil.spark.abilities import has_class
from frazil.storage.paths import scheme_of
from frazil.storage.stores.open import authority_of

_WRAPPED: Final = "org.apache.hadoop.io.wrappedio.WrappedIO"


@dataclass(eq=False)
class HadoopFileSystems:
    """The file systems of one lake, in the virtual machine beside this process.

    They are its own: Hadoop keeps others by scheme and host alone, whatever their settings are.

    Attributes:
        spark: the session whose configuration says how stores are reached.
        deletes_many: whether this Hadoop can be asked to remove many files at once.
    """

    spark: SparkSession
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _opened: dict[tuple[str, str, str], Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        session: Any = self.spark
        self._settings = session._jsparkSession.sessionState().newHadoopConf()
        self._gateway = session.sparkContext._gateway
        java: Any = session._jvm
        self.hadoop = java.org.apache.hadoop.fs
        self._path = self.hadoop.Path
        # A method of a class is looked up once: to ask for it is a call of its own.
        self.copy = java.org.apache.commons.io.IOUtils.copyLarge
        self.copy_and_close = java.org.apache.hadoop.io.IOUtils.copyBytes
        self.write_lines = java.org.apache.commons.io.IOUtils.writeLines
        self.text_of = java.org.apache.commons.lang3.ArrayUtils.toString
        self.to_list = java.org.apache.hadoop.util.functional.RemoteIterators.toList
        self.to_file = java.java.io.FileOutputStream
        self.of_file = java.java.io.FileInputStream
        self._array_list = java.java.util.ArrayList
        self._wrapped = java.org.apache.hadoop.io.wrappedio.WrappedIO
        self.deletes_many = has_class(java, _WRAPPED)
        self._folder = tempfile.TemporaryDirectory(prefix="frazil-hadoop-")
        kinds = getattr(self.hadoop, "Options$Rename")
        self._rename_options = {
            name: self._array_of_one(kinds, getattr(kinds, name)) for name in ("NONE", "OVERWRITE")
        }

    def scheme(self, scheme: str) -> str:
        """Return the scheme that Hadoop's connector has: ``s3a`` for ``s3`` unless it is set."""
        if scheme == "s3" and not self._settings.get("fs.s3.impl"):
            return "s3a"
        return {"gcs": "gs"}.get(scheme, scheme)

    def path(self, path: str) -> Any:
        """Return a path, taken literally."""
        return self._path(path)

    def system_of(self, path: str) -> Any:
        """Return the ``FileSystem`` that reaches a path."""
        return self._keep("system", path, self.hadoop.FileSystem.newInstance)

    def deleted_at_once(self, path: str) -> int:
        """Return how many files a store removes by one request."""
        return int(self._wrapped.bulkDelete_pageSize(self.system_of(path), self._root(path)))

    def delete_together(self, paths: Sequence[str]) -> dict[int, str]:
        """Remove files of one bucket by one request; return why some of them, by number, stay.

        Raises:
            OSError: the store names a file that it was not asked to remove.
        """
        places = self._array_list()
        for path in paths:
            places.add(self._path(path))
        system, root = self.system_of(paths[0]), self._root(paths[0])
        failed = self._wrapped.bulkDelete_delete(system, root, places)
        # Paths are compared by Java, which has a spelling of its own.
        found = {int(places.indexOf(each.getKey())): str(each.getValue()) for each in failed}
        if -1 in found:
            raise OSError(f"the store did not remove a file of another name: {found[-1]}")
        return found

    def _root(self, path: str) -> Any:
        return self._path(f"{scheme_of(path)}://{authority_of(path)}/")

    def context(self, path: str) -> Any:
        """Return the ``FileContext`` of a path, which renames as it is told to."""
        return self._keep("context", path, self.hadoop.FileContext.getFileContext)

    def rename_option(self, name: str) -> Any:
        """Return an array of one option of renaming, ``NONE`` or ``OVERWRITE``."""
        return self._rename_options[name]

    def _array_of_one(self, kind: Any, value: Any) -> Any:
        values = self._gateway.new_array(kind, 1)
        values[0] = value
        return values

    @contextlib.contextmanager
    def exchange_file(self) -> Iterator[str]:
        """The path of a local file, gone afterwards, through which bytes go."""
        path = os.path.join(self._folder.name, uuid.uuid4().hex)
        try:
            yield path
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _keep(self, kind: str, path: str, make: Callable[[Any, Any], Any]) -> Any:
        key = (kind, scheme_of(path), authority_of(path))
        with self._lock:
            if key not in self._opened:
                self._opened[key] = make(self._path(path).toUri(), self._settings)
            return self._opened[key]
