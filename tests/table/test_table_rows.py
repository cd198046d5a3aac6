"""Operations that delete rows of the same data files at once, against sets of rows.

The delete files exist in manifests alone; what they delete is in a dictionary of the test.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64
from rows_in_dictionaries import Deletes, DeletesCompared, Rows
from table_cases import data_file, make_table, open_catalog

from ci_share import examples
from frazil.errors import ConflictError
from frazil.format.manifests import DataFile
from frazil.table.conflicts.rows import OwnRows
from frazil.table.conflicts.validation import Validation
from frazil.table.handle import TableHandle

FILES = ("a", "b")
ROWS = 6
# A snapshot, what is deleted in it, and its delete files.
Seen = tuple[Any, Rows, list[DataFile]]


def path_of(name: str) -> str:
    return data_file(name).file_path


class Compared(DeletesCompared):
    """An operation's rows, in dictionaries."""

    def __init__(self, deletes: Deletes, own: Rows, earlier: Rows) -> None:
        super().__init__(deletes)
        self._own, self._earlier = own, earlier

    def own(self, paths: Collection[str]) -> Mapping[str, OwnRows]:
        return {
            path: OwnRows(BitMap64(self._own.get(path, ())), BitMap64(self._earlier.get(path, ())))
            for path in paths
        }


ROW = st.tuples(st.sampled_from(FILES), st.integers(0, ROWS - 1))
# How far behind an operation reads, the rows that it deletes, whether it may not share a row, and
# whether it writes one delete file for the partition, or takes earlier deletes over.
OPERATION = st.tuples(
    st.integers(0, 2), st.sets(ROW, min_size=1, max_size=4), st.booleans(), st.booleans()
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(version=st.sampled_from([2, 3]), operations=st.lists(OPERATION, min_size=2, max_size=6))
def test_operations_conflict_by_rows(version: int, operations: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(open_catalog("filesystem", folder), version=version)
        table.files.append([data_file(name, rows=ROWS) for name in FILES])
        deletes = Deletes()
        seen: list[Seen] = [(table.current_snapshot, *deletes.live(table))]
        for behind, chosen, is_strict, of_partition in operations:
            read = seen[-1 - min(behind, len(seen) - 1)]
            own = still_there(chosen, read[1])
            if not own:
                continue
            now, _ = deletes.live(table)
            refused = is_strict and shared(own, read[1], now)
            with pytest.raises(ConflictError, match="changes too") if refused else nullcontext():
                delete(table, deletes, own, read, is_strict=is_strict, of_partition=of_partition)
            expected = now if refused else both(now, own)
            assert deletes.live(table)[0] == expected
            if not refused:
                seen.append((table.current_snapshot, *deletes.live(table)))


def still_there(chosen: Collection[tuple[str, int]], earlier: Rows) -> Rows:
    own: Rows = {}
    for name, row in chosen:
        if row not in earlier.get(path_of(name), ()):
            own.setdefault(path_of(name), set()).add(row)
    return own


def shared(own: Rows, earlier: Rows, now: Rows) -> bool:
    return any(own[path] & (now.get(path, set()) - earlier.get(path, set())) for path in own)


def both(one: Rows, other: Rows) -> Rows:
    return {path: one.get(path, set()) | other.get(path, set()) for path in {**one, **other}}


def delete(
    table: Any, deletes: Deletes, own: Rows, read: Seen, *, is_strict: bool, of_partition: bool
) -> None:
    """Delete rows as an engine does that read an earlier snapshot."""
    start, earlier, files = read
    version = table.metadata.format_version
    replaced = [each for each in files if each.referenced_data_file in own]
    if of_partition and version == 2:
        replaced = []
    held = {path: set(rows) for path, rows in own.items()}
    for file in replaced:
        path = str(file.referenced_data_file)
        held[path] |= deletes.held[file.file_path, file.content_offset][path]
    if version > 2:
        held = {path: rows | earlier.get(path, set()) for path, rows in held.items()}
    changed = [data_file(name, rows=ROWS) for name in FILES if path_of(name) in own]
    table.files.row_delta(
        added_deletes=deletes.new(version, held, of_partition=of_partition),
        removed_deletes=replaced,
        referenced_data_files=own,
        changed=changed if is_strict else (),
        validation=Validation(
            start.snapshot_id,
            check_deletes=is_strict,
            rows=Compared(deletes, own, earlier),
        ),
    )


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(("rival", "is_refused"), [(2, False), (1, True)])
def test_a_transaction_deletes_twice_of_a_file_that_others_delete_of(
    version: int, rival: int, is_refused: bool
) -> None:
    """The second step replaces what the first one wrote, which a later try writes anew."""
    with tempfile.TemporaryDirectory() as folder:
        catalog = open_catalog("filesystem", folder)
        table = make_table(catalog, version=version)
        table.files.append([data_file("a", rows=ROWS)])
        deletes, path = Deletes(), path_of("a")
        other = TableHandle(catalog, catalog.load_table("db.t"))
        nothing: Seen = (table.current_snapshot, {}, [])

        def steps() -> None:
            with table.transaction() as tx:
                how = {"is_strict": True, "of_partition": False}
                delete(tx, deletes, {path: {0}}, nothing, **how)
                [written] = list(deletes.held)
                first = (tx.metadata.current_snapshot, {path: {0}}, [deletes.entry(written)])
                delete(tx, deletes, {path: {1}}, first, **how)
                delete(other, deletes, {path: {rival}}, nothing, **how)

        with pytest.raises(ConflictError, match="1 row of") if is_refused else nullcontext():
            steps()
        expected = {rival} if is_refused else {0, 1, rival}
        assert deletes.live(table.refresh())[0] == {path: expected}
