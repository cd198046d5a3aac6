"""Tables that are taken back to their first rows for each test of a module."""

import pytest
from concurrent_changes import KeptTables


@pytest.fixture(scope="module")
def tables(shared_lake):
    return KeptTables(shared_lake)
