"""Copies of the checkout, in which a module is broken and tests run."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mutants.cases import PLUGINS
from mutants.sites import Site


@dataclass(frozen=True)
class Tree:
    """A copy of a commit with a Python of its own, which finds Frazil in the copy."""

    folder: Path

    @property
    def python(self) -> Path:
        """The interpreter; it has the packages of the one that runs this."""
        return self.folder / ".venv" / "bin" / "python"

    @contextmanager
    def broken(self, site: Site) -> Iterator[None]:
        """The copy with one fault, as it was afterwards."""
        path = self.folder / site.path
        source = path.read_bytes()
        self._write(path, site.broken(source))
        try:
            yield
        finally:
            self._write(path, source)

    def _write(self, path: Path, source: bytes) -> None:
        path.write_bytes(source)
        # A compiled module is told from its source's size and second, which may stay the same.
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def make_tree(folder: Path, *, root: Path, commit: str) -> Tree:
    """A copy of a commit of the checkout at `root`."""
    folder.mkdir(parents=True)
    archive = subprocess.run(
        ["git", "archive", commit], cwd=root, stdout=subprocess.PIPE, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    shared, link = root.parent / "shared", folder.parent / "shared"
    if shared.is_dir() and not link.exists():
        link.symlink_to(shared)
    venv.create(folder / ".venv", symlinks=True)
    plugins = [folder / ".plugins" / path.name for path in PLUGINS]
    shutil.copytree(Path(__file__).parent, plugins[0] / Path(__file__).parent.name)
    plugins[1].mkdir()
    shutil.copy(PLUGINS[1] / "ci_share.py", plugins[1])
    here = sysconfig.get_path("purelib")
    there = here.replace(sysconfig.get_path("data"), str(folder / ".venv"), 1)
    # A folder that is named comes before what those packages name: the checkout's own sources.
    lines = [folder / "src", *plugins, f"import site; site.addsitedir({here!r})"]
    Path(there, "copy.pth").write_text("".join(f"{line}\n" for line in lines))
    return Tree(folder)


@contextmanager
def trees(folder: Path, *, root: Path, commit: str, count: int) -> Iterator[list[Tree]]:
    """So many copies, which are removed afterwards."""
    try:
        yield [make_tree(folder / str(n), root=root, commit=commit) for n in range(count)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
