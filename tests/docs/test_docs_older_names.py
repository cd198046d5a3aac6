"""Names that others import from modules of ours stay where they were."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "older", "name"),
    [
        ("frazil.spark.write.files", "_Write", "FileWrite"),
        ("frazil.planning.cache", "clear_cache", "clear_cache"),
        ("frazil.format.partitioning", "spec_for", "spec_for"),
        ("frazil.format.new_table", "new_table_metadata", "new_table_metadata"),
    ],
)
def test_an_older_name_is_the_same_thing(module: str, older: str, name: str) -> None:
    found = import_module(module)
    assert getattr(found, older) is getattr(found, name)
