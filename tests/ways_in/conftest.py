"""A wheel of this checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from ways_in.environments import built, unpacked


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that was built of a source distribution, as who packages it builds it."""
    folder = tmp_path_factory.mktemp("dist")
    source = unpacked(built(folder, "sdist"), tmp_path_factory.mktemp("source"))
    return built(folder, "wheel", source=source)
