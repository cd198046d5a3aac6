"""What every catalog promises (tests/catalog), of a Hive metastore; and commits side by side."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from uuid import uuid4

import pytest
import test_catalog_contract as contract
from catalog_cases import made_table, opened, set_properties_retrying
from hive_server import Metastore

from frazil.catalog.protocol import Catalog
from frazil.errors import FrazilError

OTHERWISE = {
    "test_namespaces": "a namespace in Hive has one level, and `default` is there",
    "test_no_default_place_of_a_table_is_shared_or_outside": "Hive holds no such name",
    "test_odd_names_are_kept": "Hive 3 holds no such name",
    "test_properties_of_namespaces": "a namespace in Hive has a location and an owner",
}
"""The promises that Hive cannot keep; `test_hive_tables` has what is left of them."""

for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and "catalog" in inspect.signature(_test).parameters:
        _marked = pytest.mark.skip(OTHERWISE[_name])(_test) if _name in OTHERWISE else _test
        globals()[_name] = _marked


@pytest.fixture(params=["hive"])
def catalog(hive: Metastore) -> Iterator[Catalog]:
    """A catalog with no namespaces but Hive's own, in a warehouse where nothing lies."""
    warehouse = f"{hive.warehouse}/{uuid4().hex}"
    properties = {"type": "hive", "uri": hive.uri, "warehouse": warehouse}
    with closing(opened(properties)) as made:
        # The tests before this one may be of another module, and leave what they made.
        _emptied(made)
        yield made
        _emptied(made)


def _emptied(catalog: Catalog) -> None:
    for namespace in catalog.list_namespaces():
        for view in catalog.list_views(namespace):
            catalog.drop_view(view)
        for table in catalog.list_tables(namespace):
            catalog.drop_table(table)
        with suppress(FrazilError):
            catalog.drop_namespace(namespace)


def test_commits_of_threads_are_all_there(catalog: Catalog) -> None:
    made_table(catalog, "db.busy")

    def commits(writer: int) -> None:
        for number in range(10):
            set_properties_retrying(catalog, "db.busy", **{f"p{writer}-{number}": "1"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(commits, range(4)))
    properties = catalog.load_table("db.busy").metadata.properties
    assert {f"p{writer}-{number}" for writer in range(4) for number in range(10)} <= set(properties)
