"""What Hadoop's file systems throw, as Python's errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Final

from frazil.errors import ConfigurationError, UnsupportedError

_MISSING: Final = frozenset({"FileNotFoundException", "NoSuchFileException"})
_TAKEN: Final = frozenset({"FileAlreadyExistsException", "RemoteFileChangedException"})
_NUMBERS: Final[Mapping[str, int]] = {
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "DirectoryNotEmptyException": errno.ENOTEMPTY,
}
_NO_CLASS: Final = ("ClassNotFoundException", "NoClassDefFoundError")


def python_error(kind: str, message: str, path: str) -> Exception:
    """Return the error to raise.

    Args:
        kind: the name of the Java class.
        message: what it says; its first line is kept.
        path: of the file.
    """
    name = kind.rpartition(".")[2]
    said = (message.strip().splitlines() or [""])[0]
    scheme = path.partition(":")[0]
    if name in _MISSING:
        return FileNotFoundError(path)
    if name in _TAKEN:
        return FileExistsError(path)
    if name == "EOFException":
        return EOFError(said)
    if name in _NUMBERS:
        return OSError(_NUMBERS[name], os.strerror(_NUMBERS[name]))
    if name == "UnsupportedFileSystemException":
        return UnsupportedError(
            f"Spark's Hadoop knows no file system for {path}: {said}. Name its class in "
            f"spark.hadoop.fs.{scheme}.impl, and bring its jar by spark.jars.packages"
        )
    if name in _NO_CLASS or any(each in said for each in _NO_CLASS):
        return ConfigurationError(
            f"Spark has not the connector that reaches {path}: {said}. Bring its jar by "
            "spark.jars.packages, such as org.apache.hadoop:hadoop-aws of the version of Spark's "
            "own Hadoop for s3a://"
        )
    return OSError(f"{name}: {said}" if said else name)
