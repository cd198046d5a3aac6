"""Versions that were seen: a store that tells of them says what a look from the hint on does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from frazil.catalog.pointer.versions import EXTENSIONS, HINT, SeenVersions, VersionFolder
from frazil.storage.files import FileIO


class TellingIO(FileIO):
    """A local disk that tells of several files at once."""

    def marks(self, path: str, names: Sequence[str]) -> Mapping[str, str]:
        found = {name: Path(path) / name for name in names}
        return {name: str(each.stat().st_size) for name, each in found.items() if each.exists()}


@pytest.mark.parametrize("later", [1, 2])
@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("seen", EXTENSIONS)
def test_a_version_of_any_name_is_found(
    tmp_path: Path, seen: str, extension: str, later: int
) -> None:
    versions = VersionFolder(TellingIO(), str(tmp_path))
    (tmp_path / HINT).write_text("1")
    (tmp_path / f"v1{seen}").write_text("{}")
    known = SeenVersions()
    assert known.current(versions) == versions.find(1)
    assert known.mark_of(versions, str(tmp_path / f"v1{seen}")) == "2 1"
    assert known.mark_of(versions, str(tmp_path / "v2.metadata.json")) is None
    (tmp_path / f"v{later}{extension}").write_text("{}")
    assert known.current(versions) == versions.current()
