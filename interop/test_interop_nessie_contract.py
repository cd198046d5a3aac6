"""What every catalog promises (tests/catalog), of the client of Nessie."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pytest
import test_catalog_contract as contract
from catalog_cases import SERVED, opened
from interop_nessie import Nessie

from frazil.catalog.protocol import Catalog
from frazil.errors import NoSuchTableError

OTHERWISE: dict[str, str] = {}
"""The promises that Nessie keeps otherwise, and how."""

for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and "catalog" in inspect.signature(_test).parameters:
        _marked = pytest.mark.skip(OTHERWISE[_name])(_test) if _name in OTHERWISE else _test
        globals()[_name] = _marked


@dataclass
class Places:
    """Where the tables of a server lie, of which some have been dropped."""

    catalog: Catalog
    known: dict[str, str]

    def default_table_location(self, name: Any) -> str:
        text = name if isinstance(name, str) else ".".join(name)
        try:
            self.known[text] = self.catalog.load_table(name).metadata.location
        except NoSuchTableError:
            self.known.setdefault(text, f"{self.catalog.properties['warehouse']}/own/{text}")
        return self.known[text]


@pytest.fixture(params=["nessie"])
def catalog(nessie: Nessie) -> Iterator[Catalog]:
    """A client of a new branch, on which there is nothing."""
    uri = nessie.empty_branch()
    with closing(opened({"type": "rest", "uri": uri, **nessie.properties})) as made:
        SERVED[made.properties["uri"]] = Places(made, {})  # type: ignore[assignment]
        yield made
        del SERVED[made.properties["uri"]]
