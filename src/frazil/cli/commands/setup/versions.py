"""Versions of Python, Spark, Java and packages, beside those that Frazil supports."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final

import pyspark
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from frazil.cli.commands.setup.findings import Finding
from frazil.errors import ConfigurationError
from frazil.spark.local.java import find_java, javas_there_are, needed_java
from frazil.version import FRAZIL_VERSION

_SHOWN: Final = {"pyspark": "PySpark", "pyarrow": "pyarrow"}
_TESTED_PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
_TESTED_SPARKS: Final = ((4, 1), (4, 3))
_NOT_FOR_USERS: Final = frozenset({"demo", "dev", "java"})


def version_findings() -> Iterator[Finding]:
    """Yield what is found of Python, of the packages that are always needed, and of Java."""
    yield _python()
    needs = requirements()
    if not needs:
        found = f"{FRAZIL_VERSION}, of which pip knows nothing"
        yield Finding("Frazil", "warning", found, "what it needs cannot be compared")
        yield _if_tested("PySpark", pyspark.__version__, _TESTED_SPARKS, pyspark.__version__)
    for needed in needs:
        finding = _package(needed)
        if needed.name in _SHOWN or finding.state != "ok":
            yield finding
    yield _java()


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
    always = [each for each in stated if _applies(each, "")]
    if not extra:
        return always
    return [each for each in stated if each not in always and _applies(each, extra)]


def _applies(needed: Requirement, extra: str) -> bool:
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
    if not _allows(SpecifierSet(limits), platform.python_version()):
        return Finding("Python", "failed", found, f"Frazil needs Python {limits}")
    return _if_tested("Python", platform.python_version(), _TESTED_PYTHONS, found)


def _package(needed: Requirement) -> Finding:
    name = _SHOWN.get(needed.name, needed.name)
    install = f'pip install "{needed.name}{needed.specifier}"'
    found = _installed(needed.name)
    if found is None:
        return Finding(name, "failed", "not installed", install)
    if not _allows(needed.specifier, found):
        return Finding(name, "failed", f"{found}, and {needed.specifier} is needed", install)
    if needed.name == "pyspark":
        return _if_tested(name, found, _TESTED_SPARKS, found)
    return Finding(name, "ok", found)


def _if_tested(check: str, number: str, tested: tuple[tuple[int, int], ...], found: str) -> Finding:
    if Version(number).release[:2] in tested:
        return Finding(check, "ok", found)
    *most, last = (".".join(map(str, each)) for each in tested)
    return Finding(
        check, "warning", found, f"Frazil is tested with {', '.join(most)} and {last} only"
    )


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
    there = {each.name: _installed(each.name) for each in needed}
    missing = [name for name, found in there.items() if found is None]
    old = [
        f"{each.name} {found} instead of {each.specifier}"
        for each in needed
        if (found := there[each.name]) is not None and not _allows(each.specifier, found)
    ]
    install = f'pip install "frazil[{extra}]"'
    if old:
        return Finding(f"extra {extra}", "warning", ", ".join(old), install)
    if missing:
        return Finding(f"extra {extra}", "ok", f"not installed; {install} brings it")
    return Finding(
        f"extra {extra}", "ok", ", ".join(f"{name} {found}" for name, found in there.items())
    )


def _installed(package: str) -> str | None:
    if package == "pyspark":
        # It may come with a Spark that pip knows nothing of.
        return pyspark.__version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _allows(limits: SpecifierSet, found: str) -> bool:
    # One that is to come is a version as others.
    return limits.contains(found, prereleases=True)
