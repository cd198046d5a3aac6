"""Options of Spark's readers and writers that hold secrets, on their way into the JVM.

The bridge to the JVM notes every text that it sends at the log level DEBUG. So the options go
through a pipe, of which the bridge sees the name alone, and stay an object of the JVM.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrameReader, DataFrameWriter, SparkSession

from frazil.errors import ConfigurationError, UnsupportedError

_REDACTION: Final = "spark.redaction.regex"
_MOST_BYTES: Final = 60_000
"""What a pipe holds before anybody reads it, less some."""
_PLAIN: Final = frozenset("._-/+,")


def give_to_reader(
    spark: SparkSession, reader: DataFrameReader, options: Mapping[str, str]
) -> DataFrameReader:
    """Give a reader options that are in no log of this process; errors as of `_in_jvm`."""
    given: Any = reader
    given._jreader = given._jreader.options(_in_jvm(spark, options))
    return reader


def give_to_writer(
    spark: SparkSession, writer: DataFrameWriter, options: Mapping[str, str]
) -> DataFrameWriter:
    """Give a writer options that are in no log of this process; errors as of `_in_jvm`."""
    given: Any = writer
    given._jwrite = given._jwrite.options(_in_jvm(spark, options))
    return writer


def java_options(
    spark: SparkSession, options: Mapping[str, str], *, hidden: Mapping[str, str]
) -> Any:
    """Return options as a map of the JVM; what is hidden is in no log of this process.

    Raises:
        UnsupportedError: as of `_in_jvm`.
    """
    java: Any = spark._jvm
    found = _in_jvm(spark, hidden) if hidden else java.java.util.Properties()
    found.load(java.java.io.StringReader(_lines(options)))
    return found


def check_redaction(spark: SparkSession, names: list[str]) -> None:
    """Raise ConfigurationError if the session's plans and event logs would show such options."""
    pattern = spark.conf.get(_REDACTION, None)
    if pattern is None:
        return
    java: Any = spark._jvm
    compiled = java.java.util.regex.Pattern.compile(pattern)
    for name in names:
        if not compiled.matcher(name).find():
            raise ConfigurationError(
                f"{_REDACTION} is {pattern!r}, by which plans and event logs would show the option "
                f"{name}, which holds a secret: let it match this name, or leave it as Spark has it"
            )


def _in_jvm(spark: SparkSession, options: Mapping[str, str]) -> Any:
    """Return a map of the JVM.

    Raises:
        UnsupportedError: this system has no named pipes, or the JVM does not see them.
    """
    content = _lines(options).encode("ascii")
    if len(content) > _MOST_BYTES or not hasattr(os, "mkfifo"):
        raise UnsupportedError(
            "the credentials of the table's files cannot be handed to Spark: they are longer than "
            f"{_MOST_BYTES} bytes, or this system has no named pipes"
        )
    java: Any = spark._jvm
    with _pipe(content) as (path, filled):
        try:
            stream = java.java.io.FileInputStream(path)
        except Exception:
            raise UnsupportedError(
                f"the credentials of the table's files cannot be handed to Spark: its JVM does not "
                f"see the pipe {path}"
            ) from None
        filled.close()
        found = java.java.util.Properties()
        try:
            found.load(stream)
        finally:
            stream.close()
    return found


@contextlib.contextmanager
def _pipe(content: bytes) -> Iterator[tuple[str, contextlib.ExitStack]]:
    """A pipe that this user alone can open, gone afterwards; no byte of it is on a disk.

    Its content waits for the reader, who sees the end once what comes with its path is closed.
    """
    folder = tempfile.mkdtemp(prefix="frazil-pipe-")
    try:
        path = os.path.join(folder, "options")
        os.mkfifo(path, 0o600)
        with contextlib.ExitStack() as filled:
            # Opened for both ends it waits for nobody, and keeps what is written until it is read.
            descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
            filled.callback(os.close, descriptor)
            if os.write(descriptor, content) != len(content):
                raise UnsupportedError(
                    "the credentials of the table's files do not fit into a pipe"
                )
            yield path, filled
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _lines(options: Mapping[str, str]) -> str:
    return "".join(f"{_escape(k)}={_escape(v)}\n" for k, v in options.items())


def _escape(text: str) -> str:
    """Text as the JVM's properties files have it."""
    found = []
    for character in text:
        if character in _PLAIN or (character.isascii() and character.isalnum()):
            found.append(character)
            continue
        packed = character.encode("utf-16-be")
        found += [f"\\u{packed[i : i + 2].hex()}" for i in range(0, len(packed), 2)]
    return "".join(found)
