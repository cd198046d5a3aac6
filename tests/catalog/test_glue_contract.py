"""What every catalog promises (test_catalog_contract), on a Glue of moto's server."""

from __future__ import annotations

import inspect

import pytest
import test_catalog_contract as contract

OTHERWISE = {
    "test_namespaces": "a namespace in Glue has one level",
    "test_no_default_place_of_a_table_is_shared_or_outside": "Glue holds no such name",
    "test_odd_names_are_kept": "Glue holds no such name",
}
"""The promises that Glue cannot keep; `test_glue_tables` has what is left of them."""

for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and "catalog" in inspect.signature(_test).parameters:
        _marked = pytest.mark.skip(OTHERWISE[_name])(_test) if _name in OTHERWISE else _test
        globals()[_name] = _marked


@pytest.fixture(params=["glue"])
def kind() -> str:
    return "glue"
