"""A table's life in a Hive metastore."""

from __future__ import annotations

from contextlib import closing

from catalog_cases import made_table, opened, set_properties
from hive_server import Metastore


def test_a_table_lives(hive: Metastore) -> None:
    properties = {"type": "hive", "uri": hive.uri, "warehouse": hive.warehouse}
    with closing(opened(properties)) as catalog:
        made_table(catalog, "db.t", a="1")
        changed = set_properties(catalog, "db.t", b="2")
        assert catalog.load_table("db.t") == changed
        catalog.rename_table("db.t", "db.u")
        assert catalog.list_tables("db") == [("db", "u")]
        catalog.drop_table("db.u")
        catalog.drop_namespace("db")
        assert catalog.list_namespaces() == [("default",)]
