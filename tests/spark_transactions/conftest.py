"""A lake with two tables for transactions."""

from __future__ import annotations

import contextlib

import pytest
from catalog_cases import serve_properties
from transaction_cases import make_tables

import frazil


@pytest.fixture(params=["sqlite"])
def lake(request, spark, tmp_path):
    """A lake on a database or behind a server, with the tables `db.a` and `db.b`."""
    with contextlib.ExitStack() as stack:
        settings = {"warehouse": str(tmp_path / "lake")}
        if request.param == "postgres":
            settings |= {"type": "sql", "uri": request.getfixturevalue("postgres_url")}
        if request.param == "serve":
            settings = stack.enter_context(serve_properties(tmp_path))
        made = stack.enter_context(frazil.connect(spark, **settings, name="lake"))
        make_tables(made)
        yield made


@pytest.fixture
def files(tmp_path):
    """What lies in the warehouse: data, manifests and metadata."""

    def found():
        return {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if _is_of_a_table(p)}

    return found


def _is_of_a_table(path):
    return path.suffix in (".parquet", ".avro", ".json", ".puffin")
