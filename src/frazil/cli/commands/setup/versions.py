"""Versions of Python, Spark, Java and packages, beside those that Frazil supports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from frazil.cli.commands.setup.findings import Finding
from frazil.errors import ConfigurationError
from frazil.installed_spark import INSTALL, PYSPARK, is_client_alone, pyspark_version, spark_version
from frazil.later import later
from frazil.version import FRAZIL_VERSION

if TYPE_CHECKING:
    from frazil.spark.local.java import find_java, javas_there_are, needed_java
else:
    find_java, javas_there_are, needed_java = later(
        "frazil.spark.local.java", "find_java", "javas_there_are", "needed_java"
    )

_SHOWN: Final = frozenset({"pyarrow"})
TESTED_PYTHONS: Final = ((3, 11), (3, 12), (3, 13), (3, 14))
TESTED_SPARKS: Final = ((4, 0), (4, 1), (4, 2), (4, 3))
_NOT_FOR_USERS: Final = frozenset({"demo", "dev", "java", "local"})


def version_findings() -> Iterator[Finding]:
    """Yield what is found of Python, of packages that are always needed, of Spark and of Java."""
    yield _python()
    needs = requirements()
    if not needs:
        found = f"{FRAZIL_VERSION}, of which pip knows nothing"
        yield Finding("Frazil", "warning", found, "what it needs cannot be compared")
    for needed in needs:
        finding = _package(needed)
        if needed.name in _SHOWN or finding.state != "ok":
            yield finding
    yield from _spark()


def extra_findings() -> Iterator[Finding]:
    """Yield which extras are installed, a line each."""
    for extra in _extras():
        if extra not in _NOT_FOR_USERS:
            yield _extra(extra, requirements(extra))


def requirements(extra: str = "") -> list[Requirement]:
    """Return what the installed Frazil says that it needs on this machine.

    Args:
        extra: only what this one brings; only what is always installed unless given.
    """
    try:
        stated = [Requirement(line) for line in requires("frazil") or []]
    except PackageNotFoundError:
        return []
    always = [each for each in stated if _is_needed(each, "")]
    if not extra:
        return always
    return [each for each in stated if each not in always and _is_needed(each, extra)]


def _is_needed(needed: Requirement, extra: str) -> bool:
    return needed.marker is None or needed.marker.evaluate({"extra": extra})


def _extras() -> list[str]:
    try:
        return metadata("frazil").get_all("Provides-Extra") or []
    except PackageNotFoundError:
        return []


def _python() -> Finding:
    try:
        limits = metadata("frazil")["Requires-Python"] or ""
    except PackageNotFoundError:
        limits = ""
    found = f"{platform.python_version()} at {sys.executable}"
    if not _is_within(SpecifierSet(limits), platform.python_version()):
        return Finding("Python", "failed", found, f"Frazil needs Python {limits}")
    return _if_tested("Python", platform.python_version(), TESTED_PYTHONS, found)


def _package(needed: Requirement) -> Finding:
    name = needed.name
    install = f'pip install "{needed.name}{needed.specifier}"'
    found = _version_of(needed.name)
    if found is None:
        return Finding(name, "failed", "not installed", install)
    if not _is_within(needed.specifier, found):
        return Finding(name, "failed", f"{found}, and {needed.specifier} is needed", install)
    return Finding(name, "ok", found)


def _if_tested(check: str, number: str, tested: tuple[tuple[int, int], ...], found: str) -> Finding:
    if Version(number).release[:2] in tested:
        return Finding(check, "ok", found)
    *most, last = (".".join(map(str, each)) for each in tested)
    return Finding(
        check, "warning", found, f"Frazil is tested with {', '.join(most)} and {last} only"
    )


def _spark() -> Iterator[Finding]:
    number = pyspark_version()
    if number is None:
        # A choice: a server and most commands need none.
        yield Finding("PySpark", "warning", "not installed", f"for what needs Spark: {INSTALL}")
        return
    yield _pyspark(number)
    if not is_client_alone():
        yield _java()


def _pyspark(number: str) -> Finding:
    needed = Requirement(PYSPARK).specifier
    home = os.environ.get("SPARK_HOME")
    theirs = None if home is None else spark_version(home)
    if not _is_within(needed, number):
        return Finding("PySpark", "failed", number, f"{needed} is needed, and the Spark of that")
    if is_client_alone():
        found = f"{number}, for Spark Connect alone"
        return _if_tested("PySpark", number, TESTED_SPARKS, found)
    if theirs is not None and _minor(theirs) != _minor(number):
        found = f"{number}, and SPARK_HOME has Spark {theirs}"
        advice = "one does not run the other: unset SPARK_HOME, or pip uninstall pyspark"
        return Finding("PySpark", "failed", found, advice)
    return _if_tested("PySpark", number, TESTED_SPARKS, number)


def _minor(number: str) -> list[str]:
    """The numbers that a platform keeps where it puts a word of its own behind them."""
    return number.split(".")[:2]


def _java() -> Finding:
    try:
        java = find_java()
    except ConfigurationError as error:
        return Finding("Java", "failed", str(error))
    found = f"{java.version} by {java.found_by} ({java.path})"
    first = next(javas_there_are(os.environ))
    if first.found_by != java.found_by:
        advice = f"the Spark that Frazil starts needs {needed_java()} and takes this one"
        return Finding("Java", "warning", f"{first}; {found}", advice)
    return Finding("Java", "ok", found)


def _extra(extra: str, needed: list[Requirement]) -> Finding:
    there = {each.name: _version_of(each.name) for each in needed}
    missing = [name for name, found in there.items() if found is None]
    old = [
        f"{each.name} {found} instead of {each.specifier}"
        for each in needed
        if (found := there[each.name]) is not None and not _is_within(each.specifier, found)
    ]
    install = f'pip install "frazil[{extra}]"'
    if old:
        return Finding(f"extra {extra}", "warning", ", ".join(old), install)
    if missing:
        return Finding(f"extra {extra}", "ok", f"not installed; {install} brings it")
    return Finding(
        f"extra {extra}", "ok", ", ".join(f"{name} {found}" for name, found in there.items())
    )


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _is_within(limits: SpecifierSet, found: str) -> bool:
    # One that is to come is a version as others.
    return limits.contains(found, prereleases=True)
