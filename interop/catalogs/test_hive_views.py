"""Views of a Hive metastore: what every catalog with views promises, and Java's catalog beside."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import closing

import pytest
import test_catalog_views as contract
from catalog_cases import made_table, opened
from hive_server import OF_SPARK, Metastore, client_of, properties_of
from pymetastore.hive_metastore import ttypes
from test_hive_java import Both, both  # noqa: F401
from thrift_proxy import Cut, proxy
from view_cases import SCHEMA, made_view, replaced, sql_of, version

from frazil.catalog.protocol import Capability, Catalog
from frazil.errors import NoSuchTableError, NoSuchViewError
from frazil.format.views import replacing_updates

OTHERWISE = {
    "test_a_view_lives": "a folder of a database in Hive has another name",
    "test_odd_names_and_pages": "Hive holds no such names",
}
"""What Hive cannot keep; the tests below have what is left of it."""

for _name, _test in inspect.getmembers(contract, inspect.isfunction):
    if _name.startswith("test_") and "catalog" in inspect.signature(_test).parameters:
        _marked = pytest.mark.skip(OTHERWISE[_name])(_test) if _name in OTHERWISE else _test
        globals()[_name] = _marked


@pytest.fixture(params=["hive"])
def catalog(hive: Metastore) -> Iterator[Catalog]:
    """A catalog without the namespace `db`, in a warehouse where nothing lies."""
    with closing(opened(properties_of(hive))) as made:
        emptied(made)
        yield made
        emptied(made)


def emptied(catalog: Catalog) -> None:
    if catalog.namespace_exists("db"):
        for view in catalog.list_views("db"):
            catalog.drop_view(view)
        for table in catalog.list_tables("db"):
            catalog.drop_table(table)
        catalog.drop_namespace("db")


def test_the_life_of_a_view(catalog: Catalog, hive: Metastore) -> None:
    """Its record is as Java's HiveViewOperations writes it."""
    assert catalog.can(Capability.VIEWS)
    view = made_view(catalog, comment="one")
    assert view.metadata.location.endswith("/db.db/v")
    changed = replaced(catalog, "SELECT 2 AS a")
    assert replaced(catalog, "SELECT 2 AS a") == changed
    assert catalog.load_view("db.v") == changed
    with client_of(hive) as client:
        asked = ttypes.GetTableRequest(dbName="db", tblName="v")
        record = client.get_table_req(asked).table
    assert record.tableType == "VIRTUAL_VIEW"
    assert record.viewOriginalText == record.viewExpandedText == "SELECT 2 AS a"
    assert [(column.name, column.type) for column in record.sd.cols] == [("a", "int")]
    expected = {
        "table_type": "ICEBERG-VIEW",
        "metadata_location": changed.metadata_location,
        "previous_metadata_location": view.metadata_location,
        "uuid": view.metadata.view_uuid,
        "comment": "one",
    }
    assert record.parameters.items() >= expected.items()
    made_table(catalog, "db.t")
    assert catalog.list_views("db") == [("db", "v")]
    assert catalog.list_tables("db") == [("db", "t")]
    catalog.rename_view("db.v", "db.w")
    assert catalog.load_view("db.w").metadata == changed.metadata
    catalog.drop_view("db.w")
    assert not catalog.view_exists("db.w")
    again = catalog.register_view("db.again", changed.metadata_location)
    assert again.metadata == changed.metadata


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("call", ["create_table", "alter_table", "drop_table"])
def test_an_answer_is_lost(hive: Metastore, call: str, arrives: bool) -> None:
    with proxy(hive.port) as between:
        properties = properties_of(hive) | {"uri": between.uri}
        with closing(opened(properties)) as catalog:
            emptied(catalog)
            catalog.create_namespace("db")
            between.cuts.append(Cut(call, arrives))
            made_view(catalog)
            changed = replaced(catalog, "SELECT 2 AS a")
            assert catalog.load_view("db.v") == changed
            if call == "alter_table":
                between.cuts.append(Cut(call, arrives))
            catalog.rename_view("db.v", "db.w")
            assert catalog.load_view("db.w").metadata == changed.metadata
            catalog.drop_view("db.w")
            assert catalog.list_views("db") == []
            assert between.cuts == []
            emptied(catalog)


@pytest.mark.parametrize("hive", ["3.1.3", OF_SPARK], indirect=True)
def test_java_and_frazil_on_views_of_either(both: Both) -> None:  # noqa: F811
    both.lake.create_table(both.name("t"), "id int, v string")
    both.sql("insert into db.t values (1, 'a'), (2, 'b')")
    table = f"{both.java}.{both.db}.t"
    both.sql(f"create view db.theirs as select id from {table}")
    catalog = both.lake.catalog
    found = catalog.load_view(both.name("theirs"))
    assert sql_of(found) == f"select id from {table}"
    catalog.create_view(both.name("ours"), SCHEMA, version(f"select id as a from {table}"))
    assert sorted(row.a for row in both.sql("select a from db.ours")) == [1, 2]
    new = replacing_updates(SCHEMA, version(f"select id + 10 as a from {table}"))
    catalog.commit_view(both.name("ours"), (), new)
    assert sorted(row.a for row in both.sql("select a from db.ours")) == [11, 12]
    both.sql(f"create or replace view db.ours as select id + 20 as a from {table}")
    assert sql_of(catalog.load_view(both.name("ours"))) == f"select id + 20 as a from {table}"
    catalog.commit_view(both.name("theirs"), (), new)
    assert sorted(row.a for row in both.sql("select a from db.theirs")) == [11, 12]
    assert catalog.list_views(both.db) == [(both.db, "ours"), (both.db, "theirs")]
    shown = both.sql(f"show views in {both.java}.{both.db}")
    assert {row.viewName for row in shown} == {"ours", "theirs"}
    assert both.lake.list_tables(both.db) == [(both.db, "t")]
    with pytest.raises(NoSuchTableError, match="view"):
        catalog.load_table(both.name("theirs"))
    catalog.rename_view(both.name("theirs"), both.name("renamed"))
    assert len(both.sql("select * from db.renamed")) == 2
    both.sql("drop view db.renamed")
    with pytest.raises(NoSuchViewError):
        catalog.load_view(both.name("renamed"))
    catalog.drop_view(both.name("ours"))
    assert both.sql(f"show views in {both.java}.{both.db}") == []
