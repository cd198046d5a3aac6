"""What lies in a warehouse."""

import pytest


@pytest.fixture
def files(tmp_path):
    """What lies in the warehouse below `data` folders, by file name."""

    def found(suffix=".parquet"):
        return {str(p.relative_to(tmp_path)) for p in tmp_path.rglob(f"*{suffix}")}

    return found
