"""Programs that run where pip has no part: Spark is an unpacked archive, Frazil is one file."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pyspark

import frazil

_NOT_PYTHON = ("bin", "sbin", "jars", "data", "licenses", "examples", "python")


def spark_archive(folder: Path, *, settings: str = "") -> Path:
    """Lay Spark out as its archive does: programs, jars, and the package in ``python``.

    Args:
        folder: an empty one.
        settings: what `spark-defaults.conf` has.
    """
    package = Path(pyspark.__file__).parent
    (folder / "jars").symlink_to(package / "jars")
    (folder / "bin").symlink_to(package / "bin")
    target = folder / "python" / "pyspark"
    target.mkdir(parents=True)
    for each in package.iterdir():
        if each.name not in _NOT_PYTHON:
            (target / each.name).symlink_to(each)
    # It looks for Spark beside the file that it really is.
    (target / "find_spark_home.py").unlink()
    shutil.copy(package / "find_spark_home.py", target)
    (folder / "python" / "lib").symlink_to(package / "python" / "lib")
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(settings)
    return folder


def frazil_archive(path: Path) -> Path:
    """Put Frazil's package into one file, as ``--py-files`` takes it."""
    package = Path(frazil.__file__).parent
    with zipfile.ZipFile(path, "w") as archive:
        for each in sorted(package.rglob("*")):
            if each.suffix == ".py":
                archive.write(each, each.relative_to(package.parent))
    return path


def packages_but(folder: Path, *left_out: str) -> Path:
    """Lay out the installed packages without some and what pip knows of these."""
    for each in Path(sysconfig.get_paths()["purelib"]).iterdir():
        name = each.name.lower().lstrip("_")
        if each.suffix != ".pth" and not name.startswith((*left_out, "editable")):
            (folder / each.name).symlink_to(each)
    return folder


def import_only_from(paths: Iterable[Path | str]) -> str:
    """Return the lines of a program after which nothing else but Python's own is found.

    Spark's workers of Python find the same by PYTHONPATH.
    """
    known = [each for each in sys.path if "-packages" not in each]
    own = [each for each in known if each.startswith(sys.base_prefix)]
    found = [*map(str, paths), *own]
    return (
        f"import os, sys\nsys.path[:] = {found!r}\n"
        f"os.environ['PYTHONPATH'] = {os.pathsep.join(found)!r}\n"
    )
