"""Three snapshots of merge-on-read with their sequence numbers, worked out by hand.

Snapshot 1 adds a.dat: ``(1, X), (2, A)``. Snapshot 2 is an upsert: the delete file b.dat takes the
key 2 and c.dat brings ``(3, Q), (2, B)``; b.dat is newer than a.dat and does not reach c.dat.
Snapshot 3 has the positions of d.dat on a.dat and c.dat, and e.dat with ``(4, Y)``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frazil.format.manifests import Content, DataFile
from frazil.spark.lake import Lake
from frazil.storage.files import local_path

pytestmark = pytest.mark.check

FILE_PATH, POS = 2147483546, 2147483545
STATES = {
    1: [(1, "X"), (2, "A")],
    2: [(1, "X"), (2, "B"), (3, "Q")],
    3: [(1, "X"), (2, "B"), (4, "Y")],
}
MATCHES: dict[int, set[tuple[str, str]]] = {
    1: set(),
    2: {("b", "a")},
    3: {("b", "a"), ("d", "a"), ("d", "c")},
}
FILES = {1: (["a"], []), 2: (["a", "c"], ["b"]), 3: (["a", "c", "e"], ["b", "d"])}


def with_id(name: str, kind: pa.DataType, field_id: int) -> pa.Field:
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(field_id)})


def entry(
    folder: Path, name: str, fields: Sequence[pa.Field], rows: Sequence[Any], **more: Any
) -> DataFile:
    path = folder / f"{name}.dat"
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=pa.schema(list(fields))), path)
    return DataFile(
        file_path=f"file://{path}",
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        **more,
    )


@pytest.fixture
def files(tmp_path: Path) -> dict[str, DataFile]:
    folder = tmp_path / "files"
    folder.mkdir()
    key, value = with_id("id", pa.int64(), 1), with_id("v", pa.string(), 2)
    rows = {"a": [(1, "X"), (2, "A")], "c": [(3, "Q"), (2, "B")], "e": [(4, "Y")]}
    made = {name: entry(folder, name, [key, value], held) for name, held in rows.items()}
    made["b"] = entry(
        folder, "b", [key], [(2,)], content=Content.EQUALITY_DELETES, equality_ids=(1,)
    )
    # Sorted by path, then by position; the bounds of the paths tell a reader which files to skip.
    places = [(made["a"].file_path, 1), (made["c"].file_path, 0)]
    made["d"] = entry(
        folder,
        "d",
        [with_id("file_path", pa.string(), FILE_PATH), with_id("pos", pa.int64(), POS)],
        places,
        content=Content.POSITION_DELETES,
        lower_bounds={FILE_PATH: places[0][0].encode()},
        upper_bounds={FILE_PATH: places[1][0].encode()},
    )
    return made


def upsert_at_once(table: Any, files: dict[str, DataFile]) -> None:
    table.files.row_delta(added=[files["c"]], added_deletes=[files["b"]])


def deletes_first(table: Any, files: dict[str, DataFile]) -> None:
    table.files.row_delta(added_deletes=[files["b"]])
    table.files.append([files["c"]])


# Sequence numbers of the files, and of (content, manifest, its oldest entry) at the end.
AT_ONCE = (
    {"a": 1, "b": 2, "c": 2, "d": 3, "e": 3},
    [(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 2, 2), (1, 3, 3)],
)
APART = (
    {"a": 1, "b": 2, "c": 3, "d": 4, "e": 4},
    [(0, 1, 1), (0, 3, 3), (0, 4, 4), (1, 2, 2), (1, 4, 4)],
)


@pytest.mark.parametrize(
    ("upsert", "expected"),
    [(upsert_at_once, AT_ONCE), (deletes_first, APART)],
    ids=["in one commit", "in two commits"],
)
def test_three_snapshots(
    lake: Lake,
    files: dict[str, DataFile],
    upsert: Callable[[Any, dict[str, DataFile]], None],
    expected: tuple[dict[str, int], list[tuple[int, int, int]]],
) -> None:
    numbers, manifests = expected
    table = lake.create_table("db.t", "id bigint, v string", format_version=2)
    ids = {}
    table.files.append([files["a"]])
    ids[1] = table.current_snapshot.snapshot_id
    upsert(table, files)
    ids[2] = table.current_snapshot.snapshot_id
    table.files.row_delta(added=[files["e"]], added_deletes=[files["d"]])
    ids[3] = table.current_snapshot.snapshot_id

    assert table.metadata.last_sequence_number == max(numbers.values())
    names = {file.file_path: name for name, file in files.items()}
    for number, snapshot_id in ids.items():
        data, deletes = FILES[number]
        snapshot = table.snapshot(snapshot_id)
        assert snapshot.sequence_number == max(numbers[name] for name in (*data, *deletes))
        assert snapshot.summary["total-data-files"] == str(len(data))
        assert snapshot.summary["total-delete-files"] == str(len(deletes))
        scan = table.scan(snapshot_id=snapshot_id)
        assert sorted(tuple(row) for row in scan.to_df().collect()) == STATES[number]
        plan = scan.plan()
        found = {
            names[row["file_path"]]: row["sequence_number"]
            for frame in (plan.files, plan.deletes)
            for row in frame.to_dicts()
        }
        assert found == {name: numbers[name] for name in (*data, *deletes)}
        assert {
            (names[deletes_at], names[path])
            for path, ordinal in plan.files.select("file_path", "ordinal").rows()
            for deletes_at in plan.deletes_of(ordinal)["file_path"]
        } == MATCHES[number]

    # What the files say themselves.
    with open(local_path(table.current_snapshot.manifest_list), "rb") as stream:
        listed = list(fastavro.reader(stream))
    assert (
        sorted(
            (each["content"], each["sequence_number"], each["min_sequence_number"])
            for each in listed
        )
        == manifests
    )
    changes = table.changes(ids[1], ids[3])
    assert sorted((r["_change_type"], r["id"], r["v"]) for r in changes.collect()) == [
        ("DELETE", 2, "A"),
        ("DELETE", 3, "Q"),
        ("INSERT", 2, "B"),
        ("INSERT", 3, "Q"),
        ("INSERT", 4, "Y"),
    ]
