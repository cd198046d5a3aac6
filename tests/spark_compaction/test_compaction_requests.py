"""Compactions of a table on S3, counted by the store: a small group costs no job of Spark's."""

from __future__ import annotations

import uuid
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compacted_tables import (
    ARROW,
    DDL,
    equality_delete_file,
    files_in_metadata,
    files_on_disk,
    row,
)

import frazil
from frazil.format.manifests import Content, DataFile
from s3_counted import Fault, counted_s3

PARTS, INSERTS = 4, 3


@pytest.fixture(scope="module")
def store():
    with counted_s3() as running:
        running.new_bucket("lake")
        yield running


@pytest.fixture
def made(spark, store, tmp_path):
    """A table of so many partitions, with a file of each from every insert."""
    name = f"t{uuid.uuid4().hex[:8]}"
    uri = f"sqlite:///{tmp_path}/c.db"
    with frazil.connect(spark, uri=uri, warehouse=f"s3://lake/{name}", **store.properties) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", DDL, partition_by=("part",))
        for insert in range(INSERTS):
            numbers = range(insert * 10 * PARTS, (insert + 1) * 10 * PARTS)
            rows = [row(number, PARTS) for number in numbers]
            files = [data_file(table, [r for r in rows if r[1] == p], p) for p in range(PARTS)]
            table.files.row_delta(added=files, added_deletes=[])
        yield lake.load_table("db.t")


def data_file(table, rows, part):
    ids = {field.name: str(field.field_id) for field in table.schema.fields}
    fields = [pa.field(n, kind, metadata={"PARQUET:field_id": ids[n]}) for n, kind in ARROW.items()]
    return stored(table, pa.schema(fields), list(zip(*rows, strict=True)), partition=(part,))


def position_delete_file(table, path, positions, part):
    fields = [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483546"}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483545"}),
    ]
    columns = [[path] * len(positions), positions]
    content = Content.POSITION_DELETES
    return stored(table, pa.schema(fields), columns, partition=(part,), content=content)


def stored(table, schema, columns, **more):
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_pydict(dict(zip(schema.names, columns, strict=True)), schema), sink
    )
    data, path = sink.getvalue().to_pybytes(), f"{table.location}/data/{uuid.uuid4()}.parquet"
    table.io.write(path, data)
    size, count = len(data), len(columns[0])
    return DataFile(file_path=path, spec_id=0, record_count=count, file_size_in_bytes=size, **more)


def rows_of(table):
    """What the data files hold."""
    found = Counter()
    for path in table.inspect.data_files()["file_path"]:
        columns = pq.read_table(pa.BufferReader(table.io.read(path))).to_pydict()
        found.update(zip(*(columns[name] for name in ARROW), strict=True))
    return found


def every_row():
    return Counter(row(number, PARTS) for number in range(INSERTS * 10 * PARTS))


def counted(store, work):
    """What work returns, and its requests: each takes longer than a thread may be late."""
    store.take()
    store.wait(150)
    try:
        return work(), store.take()
    finally:
        store.wait(0)


@pytest.mark.check
def test_each_file_is_asked_for_once_and_groups_do_not_wait_for_each_other(made, store):
    result, seen = counted(store, lambda: made.compact(min_input_files=2))
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (12, 4)
    data = {what: count for what, count in seen.kinds.items() if what.endswith(" data")}
    assert data == {"GET data": 12, "PUT data": 4}
    # Manifests, the files, the new files, manifests again, the new manifests, the metadata.
    assert seen.depth <= 8
    assert rows_of(made) == every_row()


def test_deletes_are_read_once_and_their_rows_left_out(made, store):
    [first, *_] = made.inspect.data_files().sort("file_path").to_dicts()
    [part] = first["partition"].values()
    kept = pq.read_table(pa.BufferReader(made.io.read(first["file_path"])))["id"].to_pylist()
    made.files.row_delta(
        added=[],
        added_deletes=[
            position_delete_file(made, first["file_path"], [0, 9], part),
            *(equality_delete_file(made, {"id": [3]}, partition=(p,)) for p in range(PARTS)),
        ],
    )
    result, seen = counted(store, lambda: made.compact(min_input_files=2))
    assert (result.rewritten_data_files_count, result.added_data_files_count) == (12, 4)
    gone = {kept[0], kept[9], 3}
    expected = Counter({r: n for r, n in every_row().items() if r[0] not in gone})
    assert rows_of(made) == expected
    assert seen.depth <= 20


@pytest.mark.check
def test_nothing_is_left_of_a_group_whose_file_the_store_refuses(made, store):
    store.fail(Fault(times=1, status=403, code="AccessDenied", verb="PUT", path=r"\.parquet$"))
    with pytest.raises(frazil.StorageError):
        made.compact(min_input_files=2)
    assert files_on_disk(made) == files_in_metadata(made)
    assert rows_of(made) == every_row()
