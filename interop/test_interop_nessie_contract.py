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

_OWN_FILES = "after a commit Nessie tells an address of its own, not that of a metadata file"
_PARENTS = "a namespace is made in one that is there; none has no tables where it is not there"
_PROPERTIES = "Nessie puts properties of its own into metadata, and a location into namespaces"
_GC = "Nessie's tables have gc.enabled=false, so they are not purged"
OTHERWISE = {
    "test_a_broken_requirement_changes_nothing": "Nessie says UUID in capitals",
    "test_a_missing_metadata_file_is_typed": "Nessie does not read its metadata files",
    "test_a_table_lives": _OWN_FILES,
    "test_a_table_made_by_a_commit": _OWN_FILES,
    "test_metadata_is_compressed_when_asked": _OWN_FILES,
    "test_namespaces": _PARENTS,
    "test_no_default_place_of_a_table_is_shared_or_outside": "places end in random letters",
    "test_old_metadata_files_go_when_asked": _GC,
    "test_properties_of_namespaces": _PROPERTIES,
    "test_purge_removes_metadata": _GC,
    "test_purge_removes_metadata_that_only_older_logs_name": _GC,
    "test_registering": _PROPERTIES,
    "test_relocation": _OWN_FILES,
    "test_renames": _PROPERTIES,
}
"""The promises that Nessie keeps otherwise, and how; `test_interop_nessie` has what is left."""

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
