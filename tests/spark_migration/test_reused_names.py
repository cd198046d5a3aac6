"""Names that columns of added files had: no change of the schema changes the rows of such files."""

import json

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ci_share import one_of_each
from frazil.errors import ConflictError, SchemaMismatchError

COLUMNS = "id bigint, n int, m int, s struct<a: string, b: int>"
ROWS = """select * from values (1L, 10, 1, named_struct('a', 'x', 'b', 5)),
    (2L, 20, 2, named_struct('a', 'y', 'b', 6)) as t(id, n, m, s)"""
FORMATS = ["parquet", "orc", "avro"]


def evolve(table, *updates):
    for update in updates:
        with table.update_schema() as change:
            update(change)


def add(name, kind="int"):
    return lambda u: u.add_column(name, kind)


def rename(name, new):
    return lambda u: u.rename_column(name, new)


LEFT = [(1, 1, ("x", 5)), (2, 2, ("y", 6))]
WAYS = {
    # What happens to the table, and the rows of id, n, m and s afterwards.
    "dropped in the update that adds it": (
        lambda t: evolve(t, lambda u: u.delete_column("n").add_column("n", "string")),
        [(i, None, m, s) for i, m, s in LEFT],
    ),
    "swapped": (
        lambda t: evolve(t, lambda u: u.rename_column("n", "m").rename_column("m", "n")),
        [(i, m, 10 * m, s) for i, m, s in LEFT],
    ),
    "a field of a struct": (
        lambda t: evolve(t, rename("s.b", "c"), add("s.b")),
        [(i, 10 * m, m, (a, b, None)) for i, m, (a, b) in LEFT],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(spark, tmp_path_factory):
    """The rows in files of each format, without field ids."""
    place = tmp_path_factory.mktemp("files")
    rows = spark.sql(ROWS).coalesce(1)
    rows.write.parquet(str(place / "parquet"))
    rows.write.orc(str(place / "orc"))
    inner = record("s", a="string", b="int")
    (place / "avro").mkdir()
    with open(place / "avro" / "a.avro", "wb") as file:
        schema = record("r", id="long", n="int", m="int", s=inner)
        fastavro.writer(file, schema, rows.toArrow().to_pylist())
    return place


def record(name, **kinds):
    """An Avro record of optional fields."""
    fields = [{"name": field, "type": ["null", kind]} for field, kind in kinds.items()]
    return {"type": "record", "name": name, "fields": fields}


def rows(table, *, where=None):
    found = table.refresh().scan(where, columns=["id", "n", "m", "s"]).to_df().collect()
    return sorted((r.id, r.n, r.m, tuple(r.s)) for r in found)


@pytest.mark.check
@pytest.mark.parametrize(("way", "kind"), one_of_each(WAYS, FORMATS))
def test_rows_stay_what_they_are(lake, folders, way, kind):
    table = lake.create_table("db.t", COLUMNS)
    table.maintenance.add_files(str(folders / kind), format=kind)
    change, expected = WAYS[way]
    change(table)
    assert rows(table) == expected
    # Filters by what the entries' bounds and counts say.
    new = [row for row in expected if row[1] is None]
    assert rows(table, where="n is null") == new
    assert rows(table, where="n is not null") == [row for row in expected if row not in new]
    assert rows(table, where="m = 2") == [row for row in expected if row[2] == 2]
    (told,) = table.scan().aggregate(["count(n)", "max(m)"]).to_df().collect()
    assert tuple(told) == (len(expected) - len(new), max(row[2] for row in expected))
    with pytest.raises(SchemaMismatchError, match=r"may be the table's (\w|\.)+, the field \d+"):
        table.maintenance.add_files(str(folders / kind), format=kind, check_duplicate_files=False)
    table.compact(rewrite_all=True)
    assert rows(table) == expected


def written(place, **columns):
    place.mkdir(exist_ok=True)
    pq.write_table(pa.table(columns), place / "a.parquet")
    return str(place)


def added(table, place):
    table.maintenance.add_files(place, format="parquet", check_duplicate_files=False)


def test_a_replaced_table_has_names_for_its_new_columns(lake, spark, tmp_path):
    table = lake.create_table("db.t", "id bigint, n int")
    added(table, written(tmp_path / "a", id=[1], n=pa.array([10], pa.int32())))
    before = table.current_snapshot.snapshot_id
    table.replace_as_select(spark.sql("select 2L id, 'text' n, 'z' z"))
    assert table.to_df().collect() == [(2, "text", "z")]
    assert table.scan(snapshot_id=before).to_df().collect() == [(1, 10)]
    added(table, written(tmp_path / "b", id=[3], z=["new"]))
    assert sorted(table.to_df().collect()) == [(2, "text", "z"), (3, None, "new")]
    with pytest.raises(SchemaMismatchError, match=r"column n .* n, the field 3.* field 2, which"):
        added(table, written(tmp_path / "c", id=[4], n=["text"]))


def test_columns_that_were_passed_over_stay_so(lake, tmp_path):
    """The table lacks them when the files come, so their values are not its rows."""
    table = lake.create_table("db.t", "id bigint, s struct<a: bigint>, v string")
    first = written(tmp_path / "a", id=[1], extra=["x"], s=[{"a": 1, "more": 2}])
    added(table, first)
    evolve(table, add("extra", "string"), add("s.more"), add("other", "string"))
    assert table.to_df().collect() == [(1, (1, None), None, None, None)]
    with pytest.raises(SchemaMismatchError, match=r"column extra .* which the table lacked"):
        added(table, first)
    with pytest.raises(SchemaMismatchError, match=r"column s\.more .* the table's s\.more"):
        added(table, written(tmp_path / "b", id=[2], s=[{"more": 2}]))
    added(table, written(tmp_path / "c", id=[3], other=["y"]))
    assert sorted(table.to_df().collect())[1] == (3, None, None, None, "y")
    # The user may say that the name is the column's all the same.
    fields = json.loads(table.properties["schema.name-mapping.default"])
    named = [field for field in fields if field["names"] != ["extra"]]
    number = table.schema.find_field("extra").field_id
    named = [{**f, "names": ["extra"]} if f["field-id"] == number else f for f in named]
    table.set_properties({"schema.name-mapping.default": json.dumps(named)})
    evolve(table, lambda u: u.delete_column("s"))
    added(table, first)
    assert [row.extra for row in table.to_df().where("id = 1").collect()] == ["x", "x"]


def test_another_commit_of_the_schema_or_the_mapping(lake, tmp_path, monkeypatch):
    """Two that add files at once both keep their names; with a new schema columns may differ."""
    from frazil.spark.migration import add_files as module

    table = lake.create_table("db.t", "id bigint, n int")
    first = written(tmp_path / "a", ID=[1], N=pa.array([10], pa.int32()))
    second = written(tmp_path / "b", id=[2], other=[1])
    others = lake.load_table("db.t")
    made = module.AddFiles

    def beside(change):
        def add(*args, **more):
            monkeypatch.setattr(module, "AddFiles", made)
            change()
            return made(*args, **more)

        monkeypatch.setattr(module, "AddFiles", add)

    beside(lambda: added(others, first))
    added(table, second)
    assert sorted(table.refresh().to_df().collect()) == [(1, 10), (2, None)]
    beside(lambda: evolve(others.refresh(), add("c")))
    with pytest.raises(ConflictError, match="add the files again"):
        added(table, second)
    added(table.refresh(), second)
    assert table.refresh().count() == 3
