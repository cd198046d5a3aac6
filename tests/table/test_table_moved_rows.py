"""Deletes, copies and rewrites of the same rows at once, against sets of row ids.

The files exist in manifests alone; which rows they hold and delete is in dictionaries of the test.
"""

import itertools
import random
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from rows_in_dictionaries import Deletes, DeletesCompared, Rows
from table_cases import data_file, live_entries, make_table, open_catalog

from ci_share import examples
from frazil.errors import ConflictError
from frazil.format.manifests import Content, DataFile
from frazil.table.conflicts.rows import DeletesOfCopies, MovedDeletes, MovedTo, OwnRows
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle

ROWS = 5
Ids = set[int]


@dataclass
class Seen:
    """The table at a snapshot.

    Attributes:
        files: the live data files.
        deleted: the positions that are deleted of each.
        deletes: the live delete files.
    """

    snapshot_id: int
    files: list[str]
    deleted: Rows
    deletes: list[DataFile]


class World:
    """A table whose rows are numbers.

    Args:
        equal: so many rows have the same values; None where no operation looks at values.
    """

    def __init__(self, folder: str, version: int, equal: int | None = None) -> None:
        self.catalog = open_catalog("filesystem", folder)
        self.table = make_table(self.catalog, version=version)
        self.version = version
        self.deletes = Deletes()
        self.equal = equal
        self.values = {row: row // (equal or 1) for row in range(2 * ROWS)}
        self.ids: dict[str, list[int]] = {}
        self.names = itertools.count()
        first = [self.new_file(range(n * ROWS, (n + 1) * ROWS)) for n in range(2)]
        self.table.files.append(first)

    def new_file(self, ids: Any) -> DataFile:
        rows = list(ids)
        file = data_file(f"f{next(self.names)}", rows=len(rows))
        self.ids[file.file_path] = rows
        return file

    def file(self, path: str) -> DataFile:
        return data_file("x", path=path, rows=len(self.ids[path]))

    def now(self) -> Seen:
        table = TableHandle(self.catalog, self.catalog.load_table("db.t"))
        deleted, deletes = self.deletes.live(table)
        files = [
            entry.data_file.file_path
            for entry in live_entries(table)
            if int(entry.data_file.content) == int(Content.DATA)
        ]
        return Seen(table.current_snapshot.snapshot_id, files, deleted, deletes)

    def live(self, seen: Seen) -> Ids:
        found = [
            row
            for path in seen.files
            for n, row in enumerate(self.ids[path])
            if n not in seen.deleted.get(path, ())
        ]
        assert len(found) == len(set(found)), "a row is there twice"
        return set(found)

    def values_of(self, rows: Ids) -> Counter[int]:
        """The values of rows, each as often as it is there."""
        return Counter(self.values[row] for row in rows)

    def with_equal_rows(self, rows: Ids, seen: Seen) -> Ids:
        """Live rows and all that equal one of them: a condition holds for all or for none."""
        values = {self.values[row] for row in rows}
        return {row for row in self.live(seen) if self.values[row] in values}

    def new_row_like(self, row: int) -> int:
        """A new row that equals another one."""
        new = max(self.values) + 1
        self.values[new] = self.values[row]
        return new

    def equal_places(self, wanted: Counter[int], seen: Seen, files: Collection[str]) -> Rows | None:
        """Where live rows of some values are, as many as are wanted; None where there are fewer."""
        left, found = Counter(wanted), Rows()
        for path in sorted(files):
            for n, row in enumerate(self.ids[path]):
                value = self.values[row]
                if left[value] and n not in seen.deleted.get(path, ()):
                    left[value] -= 1
                    found.setdefault(path, set()).add(n)
        return None if left.total() else found

    def places(self, rows: Ids, seen: Seen, files: Collection[str]) -> Rows:
        """Where live rows are in some files of a snapshot."""
        found: Rows = {}
        for path in files:
            gone = seen.deleted.get(path, set())
            at = {n for n, row in enumerate(self.ids[path]) if row in rows and n not in gone}
            if at:
                found[path] = at
        return found


class Compared(DeletesCompared):
    """The rows of an operation, found by their numbers."""

    def __init__(self, world: World, read: Seen, own_rows: Rows) -> None:
        super().__init__(world.deletes)
        self.world, self.read, self.own_rows = world, read, own_rows

    def own(self, paths: Collection[str]) -> Mapping[str, OwnRows]:
        earlier = self.read.deleted
        return {
            path: OwnRows(
                BitMap64(self.own_rows.get(path, set()) | earlier.get(path, set())),
                BitMap64(earlier.get(path, ())),
            )
            for path in paths
        }

    def moved(
        self, metadata: Any, head: Any, gone: Any, written: MovedTo, since: int
    ) -> MovedDeletes | None:
        world, now = self.world, self.world.now()
        if world.version < 3:
            return self._moved_by_value(gone, written)
        by_path = {
            path: {world.ids[path][n] for n in self.own_rows[path]}
            for path in gone
            if path in self.own_rows
        }
        wanted = set().union(*by_path.values())
        places = world.places(wanted, now, set(now.files) & set(written.every))
        found = {world.ids[path][n] for path, at in places.items() for n in at}
        joined = {path: at | now.deleted.get(path, set()) for path, at in places.items()}
        return MovedDeletes(
            tuple(world.deletes.new(3, joined)),
            tuple(each for each in now.deletes if each.referenced_data_file in places),
            tuple(places),
            len(found),
            {path: len(rows - found) for path, rows in by_path.items() if rows - found},
        )

    def _moved_by_value(self, gone: Any, written: MovedTo) -> MovedDeletes | None:
        world, now = self.world, self.world.now()
        if world.equal is None:
            return None
        own = {world.ids[path][n] for path in gone for n in self.own_rows.get(path, ())}
        files = set(now.files) & set(written.same)
        places = world.equal_places(world.values_of(own), now, files)
        if places is None:
            return None
        added = tuple(world.deletes.new(2, places))
        return MovedDeletes(added, (), tuple(places), len(own))

    def deleted_since(self, metadata: Any, head: Any, paths: Any, since: int) -> Any:
        now = self.world.now()
        return {
            path: BitMap64(new)
            for path in paths
            if (new := now.deleted.get(path, set()) - self.read.deleted.get(path, set()))
        }

    def deletes_of_copies(
        self, metadata: Any, deleted: Mapping[str, BitMap64], copies: Sequence[DataFile]
    ) -> DeletesOfCopies | None:
        if not deleted:
            return DeletesOfCopies()
        ids = self.world.ids
        if self.world.version < 3:
            gone = {ids[path][n] for path, at in deleted.items() for n in at}
            return self._deletes_of_equal_rows(gone, copies)
        by_path = {path: {ids[path][n] for n in at} for path, at in deleted.items()}
        gone = set().union(*by_path.values())
        places = {
            file.file_path: at
            for file in copies
            if (at := {n for n, row in enumerate(ids[file.file_path]) if row in gone})
        }
        copied = {row for file in copies for row in ids[file.file_path]}
        return DeletesOfCopies(
            tuple(self.world.deletes.new(3, places)),
            sum(map(len, places.values())),
            {path: len(rows - copied) for path, rows in by_path.items() if rows - copied},
        )

    def _deletes_of_equal_rows(
        self, gone: Ids, copies: Sequence[DataFile]
    ) -> DeletesOfCopies | None:
        world = self.world
        own = {world.ids[path][n] for path, at in self.own_rows.items() for n in at}
        if world.equal is None or gone & own:
            return None
        files = [file.file_path for file in copies]
        nothing = Seen(0, files, {}, [])
        places = world.equal_places(world.values_of(gone), nothing, files)
        if places is None:
            return None
        return DeletesOfCopies(tuple(world.deletes.new(2, places)), len(gone))


KINDS = ("delete", "delete", "copy", "rewrite")
OPERATION_CHOICES = (
    st.integers(0, 3),
    st.sets(st.integers(0, 2 * ROWS - 1), min_size=1, max_size=3),
    st.booleans(),
    st.integers(0, 99),
)
OPERATION = st.tuples(st.sampled_from(KINDS), *OPERATION_CHOICES)


@pytest.mark.soak
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    version=3,
    operations=[
        ("rewrite", 0, {0}, False, 1),
        ("delete", 0, {1}, False, 0),
        ("delete", 2, {2}, True, 0),
    ],
)
@example(
    version=3,
    operations=[
        ("delete", 0, {1}, False, 0),
        ("copy", 1, {2}, True, 0),
        ("delete", 2, {3}, True, 0),
    ],
)
@given(version=st.sampled_from([2, 3, 3]), operations=st.lists(OPERATION, min_size=4, max_size=9))
def test_each_success_is_explained_by_the_order_of_the_commits(
    version: int, operations: list[Any]
) -> None:
    """A strict operation may not share a row with one that came between; others may."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, version)
        seen = [world.now()]
        for kind, behind, rows, is_strict, seed in operations:
            read = seen[-1] if kind == "rewrite" else seen[-1 - min(behind, len(seen) - 1)]
            own = rows & world.live(read)
            before = seen[-1]
            if kind != "rewrite" and not own:
                continue
            refused = kind != "rewrite" and is_refused(world, kind, own, read, before, is_strict)
            with pytest.raises(ConflictError) if refused else nullcontext():
                run(world, kind, own, read, is_strict=is_strict, seed=seed)
            now = world.now()
            gone = set() if refused or kind == "rewrite" else own
            assert world.live(now) == world.live(before) - gone
            seen.append(now)


EQUAL_KINDS = ("delete", "delete", "copy", "rewrite", "insert")
EQUAL_OPERATION = st.tuples(st.sampled_from(EQUAL_KINDS), *OPERATION_CHOICES)


@pytest.mark.check
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(
    # A rival deletes the rows, adds one that equals them, and writes the file anew.
    equal=1,
    operations=[
        ("delete", 0, {1}, True, 0),
        ("insert", 0, {1}, False, 0),
        ("rewrite", 0, {0}, False, 1),
        ("delete", 3, {1}, True, 0),
    ],
)
@example(
    equal=2,
    operations=[
        ("delete", 0, {1}, True, 0),
        ("rewrite", 0, {0}, False, 1),
        ("delete", 2, {2}, True, 0),
    ],
)
@given(
    equal=st.sampled_from([1, 2, 3]), operations=st.lists(EQUAL_OPERATION, min_size=4, max_size=9)
)
def test_equal_rows_stand_for_each_other_without_ids(equal: int, operations: list[Any]) -> None:
    """A success takes away as many rows of each value as the operation was about."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, 2, equal)
        seen = [world.now()]
        for kind, behind, rows, is_strict, seed in operations:
            read = seen[-1 - min(behind, len(seen) - 1)]
            before = seen[-1]
            own = world.with_equal_rows(rows & world.live(read), read)
            if kind == "insert" and rows & world.values.keys():
                new = world.new_row_like(min(rows))
                append(world, [new])
                seen.append(world.now())
                assert world.live(seen[-1]) == world.live(before) | {new}
                continue
            if kind == "rewrite":
                run(world, kind, set(), before, is_strict=False, seed=seed)
                seen.append(world.now())
                assert world.live(seen[-1]) == world.live(before)
                continue
            if not own:
                continue
            wanted = expected_of_equal_rows(world, kind, own, read, seen, is_strict)
            try:
                run(world, kind, own, read, is_strict=is_strict, seed=seed)
            except ConflictError:
                assert wanted != "goes on"
                assert world.live(world.now()) == world.live(before)
                continue
            assert wanted != "is refused"
            seen.append(world.now())
            gone = own & world.live(before) if wanted == "deletes again" else own
            left = world.values_of(world.live(before)) - world.values_of(gone)
            assert world.values_of(world.live(seen[-1])) == left


def expected_of_equal_rows(
    world: World, kind: str, own: Ids, read: Seen, seen: Sequence[Seen], is_strict: bool
) -> str:
    """How an operation must end; "may do either" where rows may not be told."""
    now = seen[-1]
    gone_rows = world.live(read) - world.live(now)
    is_shared = bool(own & gone_rows)
    files = world.places(own, read, read.files).keys()
    are_there = files <= set(now.files)
    if is_shared:
        if kind == "delete" and are_there and not is_strict:
            return "deletes again"
        return "is refused"
    if are_there:
        return "goes on"
    since = seen[next(n for n, each in enumerate(seen) if each is read) + 1 :]
    only_moved = all(world.live(each) == world.live(read) for each in since)
    if kind == "delete" and only_moved and len({tuple(each.files) for each in since}) == 1:
        return "goes on"
    return "may do either"


def append(world: World, rows: Sequence[int]) -> None:
    files = TableHandle(world.catalog, world.catalog.load_table("db.t")).files
    files.append([world.new_file(rows)])


def is_refused(world: World, kind: str, own: Ids, read: Seen, now: Seen, is_strict: bool) -> bool:
    """Whether rows that the operation changes were changed by others, or cannot be found."""
    touched = world.places(own, read, read.files)
    gone_rows = world.live(read) - world.live(now)
    if kind == "delete":
        is_lost = world.version < 3 and not touched.keys() <= set(now.files)
        return is_lost or (is_strict and bool(own & gone_rows))
    if not touched.keys() <= set(now.files):
        return True
    of_files = {row for path in touched for row in world.ids[path]}
    if world.version < 3:
        return bool(of_files & gone_rows)
    return is_strict and bool(own & gone_rows)


def run(world: World, kind: str, own: Ids, read: Seen, *, is_strict: bool, seed: int) -> None:
    """Do it as an engine does that read an earlier snapshot."""
    files = TableHandle(world.catalog, world.catalog.load_table("db.t")).files
    if kind == "rewrite":
        rows = sorted(world.live(read))
        random.Random(seed).shuffle(rows)
        files.rewrite(
            removed=[world.file(path) for path in read.files],
            added=[world.new_file(rows)],
            from_snapshot=read.snapshot_id,
        )
        return
    places = world.places(own, read, read.files)
    compared = Compared(world, read, places)
    changed = [world.file(path) for path in places]
    # Under snapshot isolation who deletes a row must be the only one.
    how = Validation(
        read.snapshot_id,
        "snapshot" if is_strict else "serializable",
        operation="delete",
        check_deletes=is_strict or kind == "copy",
        rows=compared,
    )
    if kind == "copy":
        kept = world.live(read) - own
        copies = [
            world.new_file(rest)
            for path in places
            if (rest := [row for row in world.ids[path] if row in kept])
        ]
        files.overwrite(copies, removed=changed, validation=how)
        return
    replaced = [each for each in read.deletes if each.referenced_data_file in places]
    held = {path: at | read.deleted.get(path, set()) for path, at in places.items()}
    files.row_delta(
        added_deletes=world.deletes.new(world.version, held),
        removed_deletes=replaced,
        referenced_data_files=places,
        changed=changed if is_strict else (),
        validation=how,
    )
