"""Plans by a predicate of large tables: pruned by the driver, or by executors.

The metadata is that of `bench/slopes_upkeep.py`: uncompressed, each file with a name of its own.
"""

from __future__ import annotations

from typing import Any, Final

from tests.spark_costs.ways import Case, Place, Work

from bench.slopes_data import write_table_of_copies
from frazil.catalog.metadata_files import read_metadata
from frazil.planning.load import listed_manifests
from frazil.storage.files import FileIO

_STEP: Final = 500_000
_OF_A_MANIFEST: Final = 5_000
_WHERE: Final = "id between 100 and 120"
_MATCHING: Final = 3
"""So many files of a step may have rows for that."""


def planned(place: Place, *, size: int) -> Work:
    """A plan by the bounds of a column, of manifests of so many bytes at least, all opened."""

    def make() -> Any:
        folder, io = place.new_folder(), FileIO()
        one = read_metadata(io, write_table_of_copies(folder / "one", files=_STEP))
        assert one.current_snapshot is not None
        listed = listed_manifests(io, one.current_snapshot)
        times = size // sum(each.manifest_length for each in listed) + 1
        made = write_table_of_copies(folder / "all", files=times * _STEP)
        return place.lake.register_table(f"db.planned_{size}", made)

    table = place.once(("planned", size), make)
    files = len(listed_manifests(table.io, table.metadata.current_snapshot)) * _OF_A_MANIFEST
    table.io.caches.clear()
    return Work(
        lambda: table.scan(_WHERE).plan(),
        lambda found: len(found.files),
        lambda: _MATCHING * files // _STEP,
    )


PRUNED_PLANS: Final = Case(
    figures={"PRUNED": lambda size: {"size": size}},
    scenario=planned,
    sign="frazil.spark.read.pruning.work_on",
    beside={"PRUNING_CORES": 0},
)
