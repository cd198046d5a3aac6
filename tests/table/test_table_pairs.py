"""Each change beside each other one, where the catalog checks the stated requirements alone.

The second change is committed after the first one has read the table, and before the first one is
sent. What comes of both is what comes of one after the other, or the first one is refused.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from operation_cases import CHANGES, MOVES_DEV, MOVES_MAIN, old_table
from table_cases import open_catalog, short

from ci_share import one_of_each
from frazil.catalog.protocol import Catalog, LoadedTable
from frazil.errors import CommitError, FrazilError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.frames import live_entries
from frazil.planning.load import ManifestLoader
from frazil.storage.files import FileIO
from frazil.table.handle import TableHandle

VERSIONS = (1, 2, 3)

# What no requirement of the protocol can say: what the first change reads, and the second changes.
CHANGES_COLUMNS = {"add column", "delete column", "rename column", "transaction"}
LIMITS: dict[str, tuple[set[str], str]] = {
    "keep main longer": (MOVES_MAIN, "retention"),
    "keep dev longer": (MOVES_DEV, "retention"),
    "set name mapping": (CHANGES_COLUMNS, "properties"),
    "set column property": ({"rename column"}, "properties"),
    "expire": ({"roll back"}, "ancestry"),
}


@dataclass(frozen=True)
class Outcome:
    """What a change made of a table, or how it was refused."""

    state: Any
    location: str
    error: FrazilError | None = None


@dataclass(frozen=True)
class Start:
    """A table with a past, where its metadata is, and what each change alone makes of it."""

    catalog: Catalog
    location: str
    numbers: Iterator[int] = field(default_factory=itertools.count)
    alone: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    contents: dict[str, Any] = field(default_factory=dict)

    def after(self, change: str, location: str = "") -> Outcome:
        """What becomes of the table, or of it at another state, by a change alone."""
        key = (location or self.location, change)
        if key not in self.alone:
            self.alone[key] = self.run(change, at=key[0])
        return self.alone[key]

    def run(self, change: str, *, at: str, between: str | None = None) -> Outcome:
        """Make a change of the table at a state; when it is sent the table is at another one."""
        name = f"db.t{next(self.numbers)}"
        table = TableHandle(self.catalog, self.catalog.register_table(name, at))
        if between is not None:
            self._move_when_sent(name, between)
        error = None
        try:
            CHANGES[change](table)
        except FrazilError as refused:
            error = refused
        self.catalog.__dict__.pop("commit_table", None)
        if between is not None and self.catalog.load_table(name).metadata_location == at:
            # It had nothing to send.
            self._move(name, between)
        return Outcome(self.state_of(name), self.catalog.load_table(name).metadata_location, error)

    def _move_when_sent(self, name: str, location: str) -> None:
        real = self.catalog.commit_table

        def commit_table(*arguments: Any, **base: Any) -> LoadedTable:
            self.catalog.commit_table = real  # type: ignore[method-assign]
            self._move(name, location)
            return real(*arguments, **base)

        self.catalog.commit_table = commit_table  # type: ignore[method-assign]

    def _move(self, name: str, location: str) -> None:
        self.catalog.drop_table(name)
        self.catalog.register_table(name, location)

    def state_of(self, name: str) -> dict[str, Any]:
        """What a table is, without ids and times that are another's in each run."""
        loaded = self.catalog.load_table(name)
        metadata, io = loaded.metadata, loaded.io
        of = {s.snapshot_id: self.content(metadata, s, io) for s in metadata.snapshots}
        main = metadata.current_snapshot_id
        chain = () if main is None else metadata.ancestors_of(main)
        check_sound(metadata)
        return {
            "version": metadata.format_version,
            "location": metadata.location,
            "properties": dict(metadata.properties),
            "columns": str(metadata.schema.fields),
            "all columns": sorted(str(s.fields) for s in metadata.schemas),
            "last column": metadata.last_column_id,
            "partitions": str(metadata.spec.fields),
            "all partitions": sorted(str(s.fields) for s in metadata.partition_specs),
            "last partition": metadata.last_partition_id,
            "order": str(metadata.sort_order.fields),
            "main": [of[s.snapshot_id] for s in chain],
            "snapshots": Counter(of.values()),
            "refs": {
                name: (replace(ref, snapshot_id=0), of[ref.snapshot_id])
                for name, ref in metadata.refs.items()
            },
            "statistics": sorted(
                (file.statistics_path, str(of.get(file.snapshot_id)))
                for file in (*metadata.statistics, *metadata.partition_statistics)
            ),
        }

    def content(self, metadata: TableMetadata, snapshot: Snapshot, io: FileIO) -> Any:
        """The live files of a snapshot, with what decides which deletes apply."""
        key = snapshot.manifest_list
        assert key is not None
        if key not in self.contents:
            loader = ManifestLoader.of(metadata, io)
            manifests = loader.manifests(snapshot)
            for manifest in manifests:
                metadata.spec_by_id(manifest.partition_spec_id)
            rows = [
                (short(path), *more)
                for frame in loader.entries(manifests)
                for path, *more in live_entries(frame)
                .select("file_path", "record_count", "sequence_number")
                .iter_rows()
            ]
            self.contents[key] = tuple(sorted(rows))
        return self.contents[key]


def check_sound(metadata: TableMetadata) -> None:
    """Check what no order of changes may break."""
    used = (*metadata.spec.fields, *metadata.sort_order.fields)
    for source in (source for each in used for source in each.source_ids):
        is_void = any(f.is_void for f in metadata.spec.fields if source in f.source_ids)
        assert is_void or metadata.schema.field_or_none(source) is not None
    there = metadata.snapshots_by_id
    assert all(ref.snapshot_id in there for ref in metadata.refs.values())


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Start]:
    made: dict[int, Start] = {}

    def start(version: int) -> Start:
        if version not in made:
            catalog = open_catalog("requirements", tmp_path_factory.mktemp(f"v{version}"))
            made[version] = Start(catalog, old_table(catalog, version=version).metadata_location)
        return made[version]

    return start


# Where the one reads what the other changes, beside what the updates of either say.
CLOSE_PAIRS = [
    ("append", "append"),
    ("append", "partition by a bucket"),
    ("append", "upgrade"),
    ("append", "keep main longer"),
    ("append to dev", "append"),
    ("append to dev", "keep dev longer"),
    ("append to a new branch", "roll back"),
    ("stage", "roll back"),
    ("stage", "append"),
    ("row delta", "upgrade"),
    ("delete column", "partition by note"),
    ("delete column", "sort by note"),
    ("partition by note", "delete column"),
    ("sort by note", "delete column"),
    ("promote column", "partition by size"),
    ("partition by size", "promote column"),
    ("partition by a bucket", "remove unused definitions"),
    ("rename column", "set column property"),
    ("add column", "set name mapping"),
    ("promote column", "set name mapping"),
    ("replace", "remove unused definitions"),
    ("replace", "add column"),
    ("transaction", "remove unused definitions"),
    ("remove unused definitions", "partition by a bucket"),
    ("cherry-pick", "expire staged"),
    ("publish", "expire"),
    ("set statistics of staged", "expire staged"),
    ("create tag of staged", "expire staged"),
    ("expire", "create tag in the past"),
    ("expire staged", "create tag of staged"),
    ("expire", "append"),
    ("roll back", "expire"),
    ("rename branch", "append to dev"),
]


@pytest.mark.parametrize(("change", "rival"), CLOSE_PAIRS)
def test_what_a_change_reads_of_another_is_asked_for(
    starts: Callable[[int], Start], change: str, rival: str
) -> None:
    check_pair(starts(2), change, rival)


@pytest.mark.parametrize(
    ("version", "change", "rival"), one_of_each(VERSIONS, list(CHANGES), list(reversed(CHANGES)))
)
def test_requirements_alone_make_two_changes_serial(
    starts: Callable[[int], Start], version: int, change: str, rival: str
) -> None:
    check_pair(starts(version), change, rival)


def check_pair(start: Start, change: str, rival: str) -> None:
    """Check what comes of a change when another one comes in between."""
    first, second = start.after(change), start.after(rival)
    if first.error or second.error:
        # This format version has no such thing.
        return
    found = start.run(change, at=start.location, between=second.location)
    after_rival = start.after(change, second.location)
    if found.error is not None:
        assert found.state == second.state
        is_same = type(found.error) is type(after_rival.error)
        assert is_same or isinstance(found.error, CommitError), found.error
        return
    if after_rival.error is None and found.state == after_rival.state:
        return
    before_rival = start.after(rival, first.location)
    is_serial = before_rival.error is None and found.state == before_rival.state
    if change in LIMITS.get(rival, (set(), ""))[0]:
        assert not is_serial, "a limit less: take it out of LIMITS and docs/architecture.md"
    elif not is_serial:
        assert found.state == after_rival.state
        assert found.state == before_rival.state
