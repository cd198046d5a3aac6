"""A lake with two tables for transactions."""

import contextlib

import pytest
from catalog_cases import serve_properties
from transaction_cases import make_tables


@pytest.fixture(params=["sqlite"])
def lake_settings(request, tmp_path):
    """A lake on a database or behind a server."""
    with contextlib.ExitStack() as stack:
        settings = {"warehouse": str(tmp_path / "lake")}
        if request.param == "postgres":
            settings |= {"type": "sql", "uri": request.getfixturevalue("postgres_url")}
        if request.param == "serve":
            settings = stack.enter_context(serve_properties(tmp_path))
        yield {**settings, "name": "lake"}


@pytest.fixture
def tables(lake):
    """The lake's tables `db.a` and `db.b`."""
    return make_tables(lake)


@pytest.fixture
def files(tmp_path):
    """What lies in the warehouse: data, manifests and metadata."""

    def found():
        return {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if _is_of_a_table(p)}

    return found


def _is_of_a_table(path):
    return path.suffix in (".parquet", ".avro", ".json", ".puffin")
