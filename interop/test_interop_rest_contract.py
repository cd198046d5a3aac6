"""What every catalog promises (tests/catalog), of the client of the Java library's own handlers."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import test_catalog_contract as contract
from catalog_cases import NO_REPORTS, SERVED, opened
from interop_rest import java_server

from frazil.catalog.protocol import Catalog

OTHERWISE = {
    "test_a_broken_requirement_changes_nothing": "Java says UUID in capitals",
    "test_a_missing_metadata_file_is_typed": "Java reads such a file again for minutes",
    "test_namespaces": "names of namespaces that differ in case are one to Java on SQLite",
    "test_no_default_place_of_a_table_is_shared_or_outside": "Java makes folders of every name",
    "test_properties_of_namespaces": "Java tells a location that nobody has set",
    "test_purge_removes_metadata_that_only_older_logs_name": "Java leaves such files",
}
"""The promises that the Java library keeps otherwise, and how."""

for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and "catalog" in inspect.signature(_test).parameters:
        _marked = pytest.mark.skip(OTHERWISE[_name])(_test) if _name in OTHERWISE else _test
        globals()[_name] = _marked


@pytest.fixture(params=["java"])
def catalog(spark: Any, tmp_path: Path) -> Iterator[Catalog]:
    """A client of handlers over Java's JDBC catalog, in which there is nothing."""
    with (
        java_server(spark, tmp_path) as (uri, own),
        closing(opened(own, own.pop("name"))) as behind,
        closing(opened({"type": "rest", "uri": uri, **NO_REPORTS})) as made,
    ):
        SERVED[uri] = behind
        yield made
        del SERVED[uri]
