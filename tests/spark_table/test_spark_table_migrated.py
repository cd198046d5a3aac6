"""Files that older Hive and Spark wrote, without field ids, in a table with a name mapping."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from table_rows import rows_of
from thrift.Thrift import TType

from frazil.errors import InvalidDataFileError, InvalidMetadataError, UnsupportedError
from frazil.format.manifests import DataFile
from frazil.format.schema.name_mapping import mapping_for
from frazil.storage.parquet import footer as parquet_footer

COLUMNS = """
    id int, city string, tags array<string>, points array<struct<x: int, y: string>>,
    counts map<string, bigint>,
    nest struct<a: struct<b: array<int>, m: map<int, struct<z: double>>>, c: string>,
    matrix array<array<int>>, maps array<map<string, int>>, lists map<int, array<string>>
"""
ROWS = """
    select 1 id, 'Oslo' city, array('r', null) tags,
        array(named_struct('x', 1, 'y', 'p'), null) points, map('k', 9L, 'l', null) counts,
        named_struct('a', named_struct('b', array(1, null), 'm',
            map(3, named_struct('z', 2.5D))), 'c', 's') nest,
        array(array(1, 2), null, array()) matrix, array(map('u', 7), map()) maps,
        map(5, array('v', null), 6, null) lists
    union all select 2, null, null, null, null, null, null, null, null
    union all select 3, '', array(), array(), map(), named_struct('a', null, 'c', null), array(),
        array(), map()
"""
REPETITION, NAME, CONVERTED_TYPE, LOGICAL_TYPE = 3, 4, 6, 10
MAP_KEY_VALUE, UNKNOWN = 2, 11


def registered(table, path: Path, rows: int, file_format: str = "parquet"):
    """The table with a file that was there before it."""
    table.files.append(
        [
            DataFile(
                file_path=path.as_uri(),
                file_format=file_format,
                record_count=rows,
                file_size_in_bytes=path.stat().st_size,
            )
        ]
    )
    return table


def mapped(lake, name: str, columns: str, mapping: str | None = None):
    table = lake.create_table(name, columns)
    table.set_properties(
        {"schema.name-mapping.default": mapping or mapping_for(table.schema).to_json()}
    )
    return table


def written(df, folder: Path) -> Path:
    df.coalesce(1).write.parquet(str(folder))
    (path,) = folder.glob("*.parquet")
    return path


def with_schema(path: Path, change) -> None:
    """Change the elements of the schema in a file's footer."""
    with path.open("rb") as file:
        footer = parquet_footer.read_footer(file, str(path))[1]
    version, elements, rest = parquet_footer._split(footer)
    change(elements)
    changed = parquet_footer._join(version, elements, rest)
    data = path.read_bytes()[: -len(footer) - 8]
    path.write_bytes(data + changed + struct.pack("<I", len(changed)) + b"PAR1")
    (path.parent / f".{path.name}.crc").unlink(missing_ok=True)


def mark_entries_as_unknown(elements) -> None:
    """Mark the entries of maps as parquet-mr 1.11 and 1.12 did."""
    for element in elements:
        if element.get(CONVERTED_TYPE, (0, 0))[1] == MAP_KEY_VALUE:
            element[LOGICAL_TYPE] = (TType.STRUCT, {UNKNOWN: (TType.STRUCT, {})})


def make_keys_optional(elements) -> None:
    for element in elements:
        if element[NAME][1] == b"key":
            element[REPETITION] = (TType.I32, 1)


def depth_first(mapping: str) -> str:
    """The mapping with the ids that Hive's migration gives: counted in depth first."""
    numbers = iter(range(1, 1000))

    def numbered(fields):
        return [
            {
                "field-id": next(numbers),
                "names": field["names"],
                "fields": numbered(field.get("fields", [])),
            }
            for field in fields
        ]

    return json.dumps(numbered(json.loads(mapping)))


@pytest.fixture
def hive_file(spark, session, tmp_path):
    session(spark__sql__parquet__writeLegacyFormat="true")
    path = written(spark.sql(ROWS), tmp_path / "hive")
    with_schema(path, mark_entries_as_unknown)
    with pytest.raises(OSError, match="Null cannot be applied to group node"):
        pq.read_metadata(path)
    return path


@pytest.mark.parametrize("numbered", ["by the table", "depth first"])
def test_nested_parquet_columns_of_hive(lake, spark, hive_file, numbered):
    table = mapped(lake, "db.t", COLUMNS)
    if numbered == "depth first":
        mapping = depth_first(mapping_for(table.schema).to_json())
        table.set_properties({"schema.name-mapping.default": mapping})
    registered(table, hive_file, 3)
    expected = rows_of(spark.read.parquet(str(hive_file)).selectExpr("string(struct(*))"))
    assert rows_of(table.to_df().selectExpr("string(struct(*))")) == expected
    assert expected == rows_of(spark.sql(ROWS).selectExpr("string(struct(*))"))
    (row,) = table.scan(where="nest.c = 's'", columns=["nest"]).to_df().collect()
    assert row.nest.a.m[3].z == 2.5


def test_nested_orc_columns_of_hive(lake, spark, tmp_path):
    """Numbered depth first by Hive, so that the ids of the mapping stand for other fields."""
    path = tmp_path / "000000_0"
    kinds = {
        "outer": pa.struct([("list", pa.list_(pa.int32())), ("city", pa.string())]),
        "counts": pa.map_(pa.int32(), pa.int64()),
        "inner": pa.struct([("deep", pa.struct([("ids", pa.list_(pa.int64()))]))]),
    }
    rows = [
        {
            "outer": {"list": [0, None], "city": "A"},
            "counts": [(2, 3), (4, None)],
            "inner": {"deep": {"ids": [4]}},
        },
        {"outer": None, "counts": None, "inner": {"deep": None}},
    ]
    orc.write_table(pa.Table.from_pylist(rows, pa.schema(list(kinds.items()))), path)
    table = mapped(
        lake,
        "db.t",
        "outer struct<list: array<int>, city: string>, counts map<int, bigint>,"
        " inner struct<deep: struct<ids: array<bigint>>>",
    )
    mapping = depth_first(mapping_for(table.schema).to_json())
    table.set_properties({"schema.name-mapping.default": mapping})
    registered(table, path, 2, "orc")
    first, second = table.to_df().collect()
    assert first.asDict(recursive=True) == {**rows[0], "counts": {2: 3, 4: None}}
    assert second.asDict(recursive=True) == rows[1]


def test_a_mapping_that_stands_for_nothing_is_refused(lake, tmp_path):
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"p": [{"old": 1}], "n": [2]}), path)
    mapping = [
        {"field-id": 1, "names": ["p"], "fields": [{"field-id": 2, "names": ["old"]}]},
        {"field-id": 3, "names": ["n"]},
    ]
    table = mapped(lake, "db.t", "p struct<x: bigint>, n bigint", json.dumps(mapping))
    registered(table, path, 1)
    with pytest.raises(InvalidMetadataError, match=r"'?p\.old'?.* the id 2.*no field"):
        table.to_df()


def test_without_a_mapping_columns_are_found_by_their_places(lake, tmp_path):
    """The parts of nested columns have no place: they need one."""
    flat, nested = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"p": ["x", "y"], "q": [5, 6]}), flat)
    pq.write_table(pa.table({"a": ["x"], "b": [5], "c": [[{"z": 1}]]}), nested)
    table = registered(lake.create_table("db.t", "name string, n bigint"), flat, 2)
    assert rows_of(table) == [("x", 5), ("y", 6)]
    columns = "name string, n bigint, points array<struct<x: bigint>>"
    table = registered(lake.create_table("db.u", columns), nested, 1)
    with pytest.raises(UnsupportedError, match="name mapping"):
        table.to_df()


def test_maps_with_optional_keys(lake, tmp_path):
    """Arrow refuses them, and Spark reads them."""
    path = tmp_path / "f.parquet"
    kinds = pa.schema([("m", pa.map_(pa.string(), pa.int32())), ("n", pa.int32())])
    pq.write_table(pa.Table.from_pylist([], kinds), path)
    with_schema(path, make_keys_optional)
    with pytest.raises(pa.ArrowInvalid, match="Map keys must be annotated as required"):
        pq.read_metadata(path)
    table = registered(mapped(lake, "db.t", "m map<string, int>, n int"), path, 0)
    assert table.to_df().collect() == []


def test_unsigned_and_null_columns_are_what_spark_makes_of_them(lake, spark, tmp_path):
    path = tmp_path / "f.parquet"
    values = {
        "a": pa.array([0, 255], pa.uint8()),
        "b": pa.array([0, 2**16 - 1], pa.uint16()),
        "c": pa.array([0, 2**32 - 1], pa.uint32()),
        "d": pa.array([0, 2**64 - 1], pa.uint64()),
        "e": pa.nulls(2),
        "f": pa.array([[None], []], pa.list_(pa.null())),
        "g": pa.array([{"d": 2**64 - 1}, None], pa.struct([("d", pa.uint64()), ("e", pa.null())])),
    }
    pq.write_table(pa.table(values), path, store_schema=False)
    plain = spark.read.parquet(str(path))
    table = lake.create_table(
        "db.t",
        "a int, b int, c bigint, d decimal(20, 0), e int, f array<int>,"
        " g struct<d: decimal(20, 0), e: int>",
    )
    table.set_properties({"schema.name-mapping.default": mapping_for(table.schema).to_json()})
    registered(table, path, 2)
    text = "string(struct(*))"
    assert rows_of(table.to_df().selectExpr(text)) == rows_of(plain.selectExpr(text))


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_an_error_out_of_a_worker_names_the_file(lake, tmp_path, kind):
    path = tmp_path / f"broken.{kind}"
    data = pa.table(
        {"n": ["text"], "v": [None]},
        schema=pa.schema(
            [("n", pa.string()), ("v", pa.null() if kind == "parquet" else pa.int32())]
        ),
    )
    (pq if kind == "parquet" else orc).write_table(data, path)
    table = registered(mapped(lake, "db.t", "n decimal(9, 2), v int"), path, 1, kind)
    with pytest.raises(InvalidDataFileError, match=rf"'n' is stored as string.*broken\.{kind}"):
        table.scan().to_arrow()
