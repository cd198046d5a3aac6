"""Versions of Python, Spark, Java and packages, beside those that Frazil supports."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from typing import Final

from frazil.cli.commands.setup.findings import Finding
from frazil.errors import ConfigurationError
from frazil.spark.local.java import find_java, javas_there_are, needed_java

_SHOWN: Final = {"pyspark": "PySpark", "pyarrow": "pyarrow"}
_TESTED_SPARKS: Final = ((4, 1), (4, 3))
_NOT_FOR_USERS: Final = frozenset({"demo", "dev", "java"})
_REQUIREMENT: Final = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*(?P<range>[^;]*)"
    r"(?:;\s*extra == ['\"](?P<extra>[\w-]+)['\"])?"
)
_LIMIT: Final = re.compile(r"(>=|==|<)\s*([\d.]+)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A package that Frazil uses.

    Attributes:
        package: its name.
        limits: of its version, as ``>=4.1,<5``.
        extra: the extra that brings it; None for what is always installed.
    """

    package: str
    limits: str
    extra: str | None = None

    def allows(self, found: str) -> bool:
        """Whether a version is within the limits."""
        at = _numbers(found)
        for sign, limit in _LIMIT.findall(self.limits):
            wanted = _numbers(limit)
            fits = {">=": at >= wanted, "<": at < wanted, "==": at == wanted}
            if not fits[sign]:
                return False
        return True


def version_findings() -> Iterator[Finding]:
    """Yield what is found of Python, of the packages that are always needed, and of Java."""
    yield _python()
    for each in requirements():
        if each.extra is None:
            finding = _package(each)
            if each.package in _SHOWN or finding.state != "ok":
                yield finding
    yield _java()


def extra_findings() -> Iterator[Finding]:
    """Yield which extras are installed, a line each."""
    by_extra: dict[str, list[Requirement]] = {}
    for each in requirements():
        if each.extra is not None and each.extra not in _NOT_FOR_USERS:
            by_extra.setdefault(each.extra, []).append(each)
    for extra, needed in by_extra.items():
        yield _extra(extra, needed)


def requirements() -> list[Requirement]:
    """Return what the installed Frazil says that it needs."""
    try:
        lines = requires("frazil") or []
    except PackageNotFoundError:
        return []
    found = (_REQUIREMENT.match(line) for line in lines)
    return [
        Requirement(each["name"].lower(), each["range"].strip(), each["extra"])
        for each in found
        if each is not None and each["name"].lower() != "frazil"
    ]


def _python() -> Finding:
    try:
        limits = metadata("frazil")["Requires-Python"] or ""
    except PackageNotFoundError:
        limits = ""
    found = f"{platform.python_version()} at {sys.executable}"
    if Requirement("python", limits).allows(platform.python_version()):
        return Finding("Python", "ok", found)
    return Finding("Python", "failed", found, f"Frazil needs Python {limits}")


def _package(needed: Requirement) -> Finding:
    name = _SHOWN.get(needed.package, needed.package)
    install = f'pip install "{needed.package}{needed.limits}"'
    found = _installed(needed.package)
    if found is None:
        return Finding(name, "failed", "not installed", install)
    if not needed.allows(found):
        return Finding(name, "failed", f"{found}, and {needed.limits} is needed", install)
    if needed.package == "pyspark" and _numbers(found)[:2] not in _TESTED_SPARKS:
        tested = " and ".join(".".join(map(str, each)) for each in _TESTED_SPARKS)
        return Finding(name, "warning", found, f"Frazil is tested with {tested} only")
    return Finding(name, "ok", found)


def _java() -> Finding:
    try:
        java = find_java()
    except (ConfigurationError, PackageNotFoundError) as error:
        return Finding("Java", "failed", str(error))
    found = f"{java.version} by {java.found_by} ({java.path})"
    first = next(javas_there_are(os.environ))
    if first.found_by != java.found_by:
        advice = f"the Spark that Frazil starts needs {needed_java()} and takes this one"
        return Finding("Java", "warning", f"{first}; {found}", advice)
    return Finding("Java", "ok", found)


def _extra(extra: str, needed: list[Requirement]) -> Finding:
    there = {each.package: _installed(each.package) for each in needed}
    missing = [name for name, found in there.items() if found is None]
    old = [
        f"{each.package} {there[each.package]} instead of {each.limits}"
        for each in needed
        if there[each.package] is not None and not each.allows(str(there[each.package]))
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
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    parts = [int(part) for part in found[0].split(".")] if found else []
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)
