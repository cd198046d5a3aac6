"""`frazil adopt` with views: of a database and of a server, into both, dry first."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from catalog_cases import SCHEMA, made_table
from commands import actions, adopt, everything_below, rows
from view_cases import version

from frazil.catalog.config import load_catalog
from frazil.format.changes import SetProperties
from requirements_catalog import RequirementsCatalog
from rest_server import Server, served

SQL = "SELECT id FROM t"


@pytest.fixture
def home(home):
    """A home with a shop of a table and views."""
    configure(home, shop={"warehouse": str(home / "shop")})
    return home


def configure(home, **catalogs):
    file = home / ".frazil.yaml"
    known = yaml.safe_load(file.read_text())["catalog"] if file.exists() else {}
    file.write_text(yaml.safe_dump({"catalog": {**known, **catalogs}}))


def stocked(name="shop"):
    """The source: db.t and the views db.v, db.deep.w; w has a second version."""
    catalog = load_catalog(name)
    made_table(catalog, "db.t")
    catalog.create_namespace("db.deep")
    catalog.create_view("db.v", SCHEMA, version(SQL))
    catalog.create_view("db.deep.w", SCHEMA, version(SQL))
    catalog.commit_view("db.deep.w", (), (SetProperties({"comment": "mine"}),))
    return catalog


@pytest.fixture
def shop(home):
    return stocked()


def test_a_dry_run_shows_views_and_changes_nothing(home, shop):
    before = everything_below(home)
    lines = adopt("shop").splitlines()
    assert lines[0].split() == ["kind", "source", "table", "action", "version", "metadata"]
    place = shop.load_view("db.v").metadata_location
    assert lines[3].split() == ["view", "db.v", "db.v", "register", "1", place]
    assert "3 register" in lines
    assert "new namespaces: db, db.deep" in lines
    assert everything_below(home) == before


def test_adopted_views_are_those_of_the_source(home, shop):
    found = rows("shop", "--apply")
    assert {name: (row["kind"], row["action"]) for name, row in found.items()} == {
        "db.t": ("table", "registered"),
        "db.v": ("view", "registered"),
        "db.deep.w": ("view", "registered"),
    }
    lake = load_catalog(warehouse="new")
    for name in ("db.v", "db.deep.w"):
        assert lake.load_view(name).metadata == shop.load_view(name).metadata
        assert lake.load_view(name).metadata_location == shop.load_view(name).metadata_location
    assert set(actions("shop", "--apply").values()) == {"exists"}
    lake.commit_view("db.v", (), (SetProperties({"a": "1"}),))
    again = rows("shop")
    assert again["db.v"]["action"] == "exists"
    assert "only one of them may be written to" in again["db.v"]["reason"]
    assert again["db.deep.w"]["reason"] is None


def test_one_namespace_of_views(home, shop):
    assert actions("shop/db.deep") == {"db.deep.w": "register"}
    found = rows("shop", "--into", "x", "--apply")
    assert set(found) == {"x.t", "x.v", "x.w"}
    # Names in the query of a view mean what they did.
    assert "looks for tables in db, as before" in found["x.v"]["reason"]
    assert load_catalog(warehouse="new").list_views("x") == [("x", "v"), ("x", "w")]


def test_a_query_that_names_its_catalog_is_told(home, shop):
    shop.create_view("db.p", SCHEMA, replace(version(SQL), default_catalog="prod"))
    found = rows("shop", "--apply")
    assert found["db.p"]["action"] == "registered"
    assert "in the catalog prod" in found["db.p"]["reason"]


def test_what_cannot_be_adopted_is_said_and_the_others_are(home, shop):
    shop.create_view("db.gone", SCHEMA, version(SQL))
    Path(shop.load_view("db.gone").metadata_location.removeprefix("file://")).unlink()
    lake = load_catalog(warehouse="new")
    made_table(lake, "db.v")
    lake.create_view("db.t", SCHEMA, version(SQL))
    found = rows("shop", "--apply", code=1)
    assert {name: row["action"] for name, row in found.items()} == {
        "db.t": "failed",
        "db.v": "failed",
        "db.gone": "failed",
        "db.deep.w": "registered",
    }
    assert "db.t is a view" in found["db.t"]["reason"]
    assert "db.v is a table" in found["db.v"]["reason"]
    lake.drop_table("db.v")
    lake.create_view("db.v", SCHEMA, version(SQL))
    assert "db.v is another view" in rows("shop", code=1)["db.v"]["reason"]


def test_nothing_gets_a_second_name(home, shop):
    adopt("shop", "--apply")
    found = rows("shop", "--into", "again", "--apply", code=1)
    assert {row["action"] for row in found.values()} == {"failed"}
    assert "the catalog has this table as db.t" in found["again.t"]["reason"]
    assert "the catalog has this view as db.v" in found["again.v"]["reason"]
    assert not load_catalog(warehouse="new").namespace_exists("again")


def test_a_catalog_without_views_takes_the_tables(home, shop):
    (home / "folder").mkdir()
    hadoop = ("--type", "hadoop", "--warehouse", "folder")
    found = rows("shop/db.deep", "--apply", code=1, into=hadoop)
    assert found["db.deep.w"]["action"] == "failed"
    assert "has no views" in found["db.deep.w"]["reason"]
    assert everything_below(home / "folder") == {}


def test_views_of_a_server_and_into_one(home, shop):
    behind = RequirementsCatalog(
        "behind", {"uri": f"sqlite:///{home}/b.db", "warehouse": str(home / "b")}
    )
    with served(Server(behind)) as server:
        configure(home, far={"type": "rest", "uri": server.address})
        far = ("--catalog", "far")
        wanted = {"db.t": "registered", "db.v": "registered", "db.deep.w": "registered"}
        assert actions("shop", "--apply", into=far) == wanted
        assert actions("far", "--apply") == wanted
    behind.close()
    lake = load_catalog(warehouse="new")
    assert lake.load_view("db.v") == shop.load_view("db.v")
