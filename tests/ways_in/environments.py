"""Environments that have what a wheel of Frazil says that it needs, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def built(folder: Path, kind: str, *, source: Path = ROOT) -> Path:
    """Build a distribution of a folder of sources: a `wheel`, or an `sdist`."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(words, cwd=source, check=True, capture_output=True)
    [found] = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return found


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack a source distribution; returns its one folder."""
    shutil.unpack_archive(archive, folder)
    [found] = folder.iterdir()
    return found


def environment(folder: Path, wheel: Path, *extras: str) -> Path:
    """Make an environment of a wheel and of all that it needs, some extras too.

    What it needs is linked from the packages that the tests run with, so that nothing is fetched.

    Returns:
        Its Python.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    words = [sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-index"]
    subprocess.run([*words, "--no-deps", "--no-compile", str(wheel)], check=True)
    packages = packages_of(folder)
    [frazil] = distributions(name="frazil", path=[str(packages)])
    for each in needed_by(frazil, set(extras), set()):
        link(each, packages)
    return python


def packages_of(environment: Path) -> Path:
    """The folder of an environment's packages."""
    [found] = (environment / "lib").glob("python*/site-packages")
    return found


def needed_by(of: Distribution, extras: set[str], seen: set[str]) -> Iterator[Distribution]:
    """Yield what a distribution needs, and what these need; those in `seen` have been there."""
    for line in of.requires or []:
        needed = Requirement(line)
        if needed.marker and not any(needed.marker.evaluate({"extra": e}) for e in ("", *extras)):
            continue
        if needed.name == of.name:
            yield from needed_by(of, needed.extras, seen)
            continue
        key = f"{needed.name.lower()}{sorted(needed.extras)}"
        if key not in seen:
            seen.add(key)
            found = distribution(needed.name)
            yield found
            yield from needed_by(found, needed.extras, seen)


def link(of: Distribution, packages: Path) -> None:
    """Let a folder of packages have what another one has of a distribution."""
    for name in {file.parts[0] for file in of.files or [] if file.parts[0] != ".."}:
        if not (packages / name).exists():
            (packages / name).symlink_to(Path(of.locate_file(name)).resolve())
