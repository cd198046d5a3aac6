"""`position_deletes`: the positions of delete files of every format and of deletion vectors."""

from __future__ import annotations

from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc
from pyarrow import parquet as pq
from pyspark.errors import PySparkException

from frazil.format.manifests import Content, DataFile
from frazil.format.puffin import PuffinBuilder, deletion_vector_to_bytes
from frazil.spark.session import costs

PATH, POSITION, ROW, ID, CITY = 2147483546, 2147483545, 2147483544, 1, 2


def field(name, kind, field_id):
    """An Arrow field with the ids that Parquet and ORC files hold."""
    ids = {"PARQUET:field_id": str(field_id), "iceberg.id": str(field_id)}
    return pa.field(name, kind, metadata=ids)


ROW_TYPE = pa.struct([field("id", pa.int64(), ID), field("city", pa.string(), CITY)])
AVRO = {
    "type": "record", "name": "delete",
    "fields": [
        {"name": "file_path", "type": "string", "field-id": PATH},
        {"name": "pos", "type": "long", "field-id": POSITION},
    ],
}  # fmt: skip


def written(folder: Path, file_format: str, deletes, rows=None) -> DataFile:
    """A position delete file of (path, position) pairs, with the deleted rows if given."""
    path = folder / f"{len(list(folder.iterdir()))}-deletes.{file_format}"
    paths, positions = [p for p, _ in deletes], [n for _, n in deletes]
    fields = [field("file_path", pa.string(), PATH), field("pos", pa.int64(), POSITION)]
    columns = [pa.array(paths), pa.array(positions, pa.int64())]
    if rows is not None:
        fields.append(field("row", ROW_TYPE, ROW))
        columns.append(pa.array(rows, ROW_TYPE))
    table = pa.table(columns, schema=pa.schema(fields))
    if file_format == "parquet":
        pq.write_table(table, path)
    elif file_format == "orc":
        orc.write_table(table, str(path))
    else:
        with path.open("wb") as stream:
            records = [{"file_path": p, "pos": n} for p, n in deletes]
            fastavro.writer(stream, fastavro.parse_schema(AVRO), records)
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=path.as_uri(),
        file_format=file_format,
        record_count=len(deletes),
        file_size_in_bytes=path.stat().st_size,
    )


def vector(folder: Path, data_path: str, positions) -> DataFile:
    """A deletion vector."""
    puffin = PuffinBuilder()
    place = puffin.add_deletion_vector(
        deletion_vector_to_bytes(sorted(positions)),
        referenced_data_file=data_path,
        cardinality=len(positions),
    )
    path = folder / f"{len(list(folder.iterdir()))}.puffin"
    path.write_bytes(puffin.to_bytes())
    return DataFile(
        content=Content.POSITION_DELETES,
        file_path=path.as_uri(),
        file_format="puffin",
        record_count=len(positions),
        file_size_in_bytes=path.stat().st_size,
        referenced_data_file=data_path,
        content_offset=place.offset,
        content_size_in_bytes=place.length,
    )


@pytest.fixture
def folder(tmp_path):
    """Where delete files lie."""
    made = tmp_path / "deletes"
    made.mkdir()
    return made


def table_of(lake, spark, version, name="db.t"):
    """A table of one data file of ten rows."""
    table = lake.create_table(name, "id bigint not null, city string", format_version=version)
    table.append(spark.range(10).selectExpr("id", "concat('c', id) as city").coalesce(1))
    return table, table.inspect.files()["file_path"][0]


def pairs(df):
    """What is deleted, and by which file."""
    rows = [(r.file_path, r.pos, r.row, r.delete_file_path) for r in df.collect()]
    return sorted(rows, key=repr)


@pytest.mark.parametrize("everything", ["beside", "executors"])
def test_files_of_every_format(lake, spark, folder, monkeypatch, everything):
    if everything == "executors":
        monkeypatch.setattr(costs, "DECODED_BYTES", 0)
    table, data = table_of(lake, spark, 2)
    row = {"id": 3, "city": "c3"}
    deletes = [
        written(folder, "parquet", [(data, 3)], [row]),
        written(folder, "parquet", [(data, 4)]),
        written(folder, "orc", [(data, 5), (data, 5), ("file:///gone.parquet", 7)]),
        written(folder, "avro", [(data, 6)]),
    ]
    table.files.row_delta(added_deletes=deletes)
    files = [delete.file_path for delete in deletes]
    found = table.inspect.dataframes.position_deletes()
    assert found.columns == ["file_path", "pos", "row", "spec_id", "delete_file_path"]
    expected = [
        (data, 3, (3, "c3"), files[0]),
        (data, 4, None, files[1]),
        (data, 5, None, files[2]),
        (data, 5, None, files[2]),
        ("file:///gone.parquet", 7, None, files[2]),
        (data, 6, None, files[3]),
    ]
    assert pairs(found) == sorted(expected, key=repr)
    assert (
        table.inspect.dataframes.position_deletes(
            snapshot_id=table.metadata.snapshots[0].snapshot_id
        ).count()
        == 0
    )


@pytest.mark.check
def test_vectors_and_the_files_they_replace(lake, spark, folder):
    """An upgraded table holds both; where a vector lies is told, of a file it is NULL."""
    table, data = table_of(lake, spark, 2)
    old = written(folder, "parquet", [("file:///other.parquet", 1)])
    table.files.row_delta(added_deletes=[old])
    table.upgrade(3)
    many = list(range(5000, 15000))
    dv = vector(folder, data, [0, 9, *many])
    table.files.row_delta(added_deletes=[dv])
    found = table.inspect.dataframes.position_deletes()
    assert found.columns[-2:] == ["content_offset", "content_size_in_bytes"]
    places = found.groupBy("delete_file_path", "content_offset", "content_size_in_bytes").count()
    assert sorted(map(tuple, places.collect())) == sorted([
        (old.file_path, None, None, 1),
        (dv.file_path, dv.content_offset, dv.content_size_in_bytes, 10_002),
    ])  # fmt: skip
    positions = {r.pos for r in found.where(found.file_path == data).collect()}
    assert positions == {0, 9, *many}


def test_rows_follow_the_current_schema(lake, spark, folder):
    """By field id: renamed, added, widened to what Spark shows."""
    table, data = table_of(lake, spark, 2)
    deletes = written(folder, "parquet", [(data, 3)], [{"id": 3, "city": "c3"}])
    table.files.row_delta(added_deletes=[deletes])
    with table.update_schema() as change:
        change.rename_column("city", "town")
        change.add_column("code", "uuid")
    (found,) = table.inspect.dataframes.position_deletes().collect()
    assert found.row.asDict() == {"id": 3, "town": "c3", "code": None}


def test_damaged_files_are_refused(lake, spark, folder):
    table, data = table_of(lake, spark, 2)
    deletes = written(folder, "parquet", [(data, 3)])
    Path(deletes.file_path.removeprefix("file://")).write_bytes(b"PAR1 no")
    table.files.row_delta(added_deletes=[deletes])
    with pytest.raises(PySparkException, match=r"InvalidDataFileError.*cannot be read"):
        table.inspect.dataframes.position_deletes().collect()


def test_partitions_of_deletes(lake, spark, folder):
    table = lake.create_table("db.p", "id bigint, city string", partition_by=["city"])
    table.append(spark.range(4).selectExpr("id", "if(id < 2, null, 'a') as city").coalesce(1))
    data = table.inspect.files().filter(table.inspect.files()["partition"].struct["city"] == "a")
    made = written(folder, "parquet", [(data["file_path"][0], 1)])
    fields = {name: getattr(made, name) for name in made.__slots__}
    table.files.row_delta(added_deletes=[DataFile(**{**fields, "partition": ("a",)})])
    found = table.inspect.dataframes.position_deletes()
    assert found.schema["partition"].dataType.simpleString() == "struct<city:string>"
    (row,) = found.collect()
    assert (row.partition.city, row.spec_id, row.pos) == ("a", 0, 1)
