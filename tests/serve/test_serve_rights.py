"""Whose files are whose: a folder gives no right, and a purge takes a table's own files alone."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from serve_cases import (
    Running,
    namespace,
    running,
    set_property,
    sql_catalog,
    table,
    tokens_of,
    view,
)
from sqlalchemy import create_engine

from ci_share import only_in_check
from frazil.format.changes import SetProperties
from frazil.serve.rights.places import Places
from frazil.table.handle import TableHandle

OWNER, SALES, DEEP = (f"{name}-0123456789abcdef" for name in ("own", "sales", "deep"))
TOKENS = f"""
tokens:
  - {{name: owner, token: {OWNER}, write: ["*"]}}
  - {{name: sales, token: {SALES}, write: [sales]}}
  - {{name: deep, token: {DEEP}, write: [hr.x]}}
"""
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    tokens = tokens_of(tmp_path, TOKENS)
    with running(sql_catalog(tmp_path / "lake"), tokens=tokens) as server:
        with server.client(OWNER) as owner:
            for name in ("sales", "hr"):
                namespace(owner, name)
        yield server
        server.check_exchanges()


def written(server: Running, name: str, token: str = OWNER) -> Table:
    """A table with two rows, by PyIceberg."""
    catalog = RestCatalog("lake", uri=server.uri, token=token)
    made = catalog.create_table(name, ROWS.schema)
    made.append(ROWS)
    return made


def rows_of(server: Running, name: str) -> int:
    catalog = RestCatalog("lake", uri=server.uri, token=OWNER)
    return int(catalog.load_table(name).scan().to_arrow().num_rows)


def checked(server: Running, name: str) -> pl.DataFrame:
    """What a check says of a table."""
    catalog = server.catalog
    return TableHandle(catalog, catalog.load_table(name)).maintenance.check().frame


def repaired(server: Running, name: str) -> pl.DataFrame:
    """What a repair leaves of a table's problems, and their answers."""
    catalog = server.catalog
    return TableHandle(catalog, catalog.load_table(name)).maintenance.repair().frame


def naming(made: Table, manifest_list: str) -> dict[str, Any]:
    """A commit of a snapshot with that list to a table."""
    current = made.refresh().current_snapshot()
    assert current is not None
    snapshot = {
        "snapshot-id": 77,
        "parent-snapshot-id": current.snapshot_id,
        "sequence-number": 2,
        "timestamp-ms": int(time.time() * 1000) + 1,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 77}
    add = {"action": "add-snapshot", "snapshot": snapshot}
    return {"requirements": [], "updates": [add, ref]}


def copied_list(made: Table, folder: Path) -> str:
    """The table's list of manifests, copied into a folder."""
    current = made.current_snapshot()
    assert current is not None
    shutil.copy(current.manifest_list.removeprefix("file://"), folder / "copy.avro")
    return f"file://{folder}/copy.avro"


def register(client: httpx.Client, levels: str, location: str) -> int:
    body = {"name": "stolen", "metadata-location": location}
    return client.post(f"/v1/namespaces/{levels}/register", json=body).status_code


def test_a_root_of_all_leaves_the_folders_of_others_out() -> None:
    places = Places.of_folders("/").without_folders("/lake/b")
    assert places.hold("/lake/a/f")
    assert not places.hold("/lake/b/f")


def test_a_namespace_named_as_a_table(server: Running, tmp_path: Path) -> None:
    """No new one; and one that is there already gives no right to the table."""
    made = written(server, "hr.x")
    with server.client(DEEP) as deep:
        assert deep.post("/v1/namespaces", json={"namespace": ["hr", "x"]}).status_code == 409
        with create_engine(f"sqlite:///{tmp_path}/lake/catalog.db").begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO iceberg_namespace_properties VALUES ('lake', 'hr.x', 'exists', 'true')"
            )
        assert register(deep, "hr%1Fx", made.metadata_location) == 400
        assert table(deep, "hr%1Fx", "n", location=f"{made.location()}/data").status_code == 400
    assert rows_of(server, "hr.x") == 2
    check = checked(server, "hr.x")
    assert check["problem"].to_list() == ["name"]
    assert "namespace is called hr.x too" in check["reason"][0]
    assert repaired(server, "hr.x")["answer"].to_list() == [
        "rename the table, or drop the namespace"
    ]


def test_what_was_renamed_away_is_out_of_reach(server: Running, tmp_path: Path) -> None:
    moved = written(server, "sales.t", SALES)
    with server.client(OWNER) as owner:
        names = {
            "source": {"namespace": ["sales"], "name": "t"},
            "destination": {"namespace": ["hr"], "name": "t"},
        }
        assert owner.post("/v1/tables/rename", json=names).status_code == 204
    with server.client(SALES) as sales:
        assert register(sales, "sales", moved.metadata_location) == 400
        # Another table of the old name lies beside the old one's files.
        own = written(server, "sales.t", SALES)
        assert not own.location().startswith(f"{moved.location()}/")
        assert own.location() != moved.location()
        folder = Path(own.location().removeprefix("file://")) / "metadata"
        for manifest_list in (
            moved.current_snapshot().manifest_list,  # type: ignore[union-attr]
            copied_list(moved, folder),
        ):
            url = "/v1/namespaces/sales/tables/t"
            assert sales.post(url, json=naming(own, manifest_list)).status_code == 400
        assert table(sales, "sales", "n", location=moved.location()).status_code == 400
        assert sales.delete(f"{url}?purgeRequested=true").status_code == 204
    assert rows_of(server, "hr.t") == 2


def test_files_of_others_in_ones_own_manifest_are_refused(server: Running) -> None:
    own, other = written(server, "sales.t", SALES), written(server, "hr.t")
    data = next(Path(other.location().removeprefix("file://")).glob("data/*.parquet")).as_uri()
    with pytest.raises(Exception, match="outside of the places"):
        own.add_files([data])
    assert rows_of(server, "sales.t") == 2


def test_a_view_of_others_is_not_registered(server: Running) -> None:
    with server.client(OWNER) as owner, server.client(SALES) as sales:
        made = view(owner, "sales", "v").json()
        names = {
            "source": {"namespace": ["sales"], "name": "v"},
            "destination": {"namespace": ["hr"], "name": "v"},
        }
        assert owner.post("/v1/views/rename", json=names).status_code == 204
        body = {"name": "stolen", "metadata-location": made["metadata-location"]}
        url = "/v1/namespaces/sales/register-view"
        assert sales.post(url, json=body).status_code == 400


@pytest.mark.parametrize(
    ("named", "token"),
    [("a manifest", OWNER), ("a data file", SALES), only_in_check("statistics", OWNER)],
)
def test_a_purge_keeps_and_names_what_lies_elsewhere(
    server: Running, named: str, token: str
) -> None:
    """A client of all rights may say that another table's file is this one's."""
    own, other = written(server, "sales.t", SALES), written(server, "hr.t")
    mine = Path(own.location().removeprefix("file://"))
    data = next(Path(other.location().removeprefix("file://")).glob("data/*.parquet")).as_uri()
    manifest = other.current_snapshot().manifests(other.io)[0].manifest_path  # type: ignore[union-attr]
    snapshot_id = own.metadata.current_snapshot_id
    assert snapshot_id is not None
    with server.client(OWNER) as owner:
        if named == "a data file":
            RestCatalog("lake", uri=server.uri, token=OWNER).load_table("sales.t").add_files([data])
        else:
            commit = (
                naming(own, copied_list(other, mine / "metadata"))
                if named == "a manifest"
                else statistics_of(data, snapshot_id)
            )
            assert owner.post("/v1/namespaces/sales/tables/t", json=commit).status_code == 200
    path = manifest if named == "a manifest" else data
    if named == "a manifest":
        left = repaired(server, "sales.t")
        assert ("elsewhere", path) in left.select("problem", "file_path").rows()
        assert "by a server, which keeps the file" in left.filter(problem="elsewhere")["answer"][0]
    with server.client(token) as client:
        gone = client.delete("/v1/namespaces/sales/tables/t?purgeRequested=true")
        assert gone.status_code == 204
        assert gone.headers["x-frazil-kept-files-count"] == "1"
        assert gone.headers["x-frazil-kept-files"].endswith(path.rpartition("/")[2])
        assert client.head("/v1/namespaces/sales/tables/t").status_code == 404
    assert rows_of(server, "hr.t") == 2
    assert [each for each in mine.rglob("*") if each.is_file()] == []


def test_data_and_metadata_paths_are_the_tables_own(server: Running, tmp_path: Path) -> None:
    paths = {
        "write.data.path": f"{tmp_path}/lake/d",
        "write.metadata.path": f"{tmp_path}/lake/m",
    }
    catalog = RestCatalog("lake", uri=server.uri, token=OWNER)
    catalog.create_table("hr.t", ROWS.schema, properties=paths).append(ROWS)
    files = [each for name in "dm" for each in (tmp_path / "lake" / name).rglob("*.*")]
    assert len(files) >= 4
    with server.client(OWNER) as owner:
        gone = owner.delete("/v1/namespaces/hr/tables/t?purgeRequested=true")
    assert (gone.status_code, "x-frazil-kept-files" in gone.headers) == (204, False)
    assert not [each for each in files if each.exists()]


def test_a_purge_that_is_refused_changes_nothing(server: Running) -> None:
    catalog = RestCatalog("lake", uri=server.uri, token=OWNER)
    catalog.create_table("hr.t", ROWS.schema, properties={"gc.enabled": "false"}).append(ROWS)
    with server.client(OWNER) as owner:
        refused = owner.delete("/v1/namespaces/hr/tables/t?purgeRequested=true")
        assert refused.status_code == 400
    assert rows_of(server, "hr.t") == 2


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of the lake but its database."""
    found = (each for each in folder.rglob("*") if each.is_file() and ".db" not in each.name)
    return {str(each): each.read_bytes() for each in found}


def names(source: str, target: str) -> dict[str, Any]:
    """What a rename says."""
    parts = {"source": source.split("."), "destination": target.split(".")}
    return {key: {"namespace": each[:-1], "name": each[-1]} for key, each in parts.items()}


UUID_OF_NONE = {
    "type": "assert-table-uuid",
    "uuid": "00000000-0000-0000-0000-000000000000",
}


def part_of(name: str, *requirements: dict[str, str]) -> dict[str, Any]:
    """What a commit of several tables says of one."""
    update = {"action": "set-properties", "updates": {"k": "v"}}
    levels = name.split(".")
    identifier = {"namespace": levels[:-1], "name": levels[-1]}
    return {"identifier": identifier, "requirements": requirements, "updates": [update]}


# Each request, whose token it has, and the status that the protocol has for it.
HALF = {
    "a purge by the token of another namespace": (
        DEEP, "DELETE", "namespaces/hr/tables/t?purgeRequested=true", None, 403,
    ),
    "a purge of a table that is not there": (
        OWNER, "DELETE", "namespaces/hr/tables/none?purgeRequested=true", None, 404,
    ),
    "a rename to a name that is taken": (
        OWNER, "POST", "tables/rename", names("hr.t", "sales.t"), 409,
    ),
    "a rename to a namespace that is not there": (
        OWNER, "POST", "tables/rename", names("hr.t", "none.t"), 404,
    ),
    "a rename out of what the token may change": (
        SALES, "POST", "tables/rename", names("sales.t", "hr.new"), 403,
    ),
    "the end of a namespace that has a table": (OWNER, "DELETE", "namespaces/hr", None, 409),
    "a commit of two tables, of which one is another": (
        OWNER, "POST", "transactions/commit",
        {"table-changes": [part_of("hr.t"), part_of("sales.t", UUID_OF_NONE)]}, 409,
    ),
    "a commit of two tables, of which one is not the token's": (
        SALES, "POST", "transactions/commit",
        {"table-changes": [part_of("sales.t"), part_of("hr.t")]}, 403,
    ),
}  # fmt: skip


def test_a_request_of_two_steps_that_is_refused_changes_nothing(
    server: Running, tmp_path: Path
) -> None:
    for name in ("hr.t", "sales.t"):
        written(server, name)
    locations = server.catalog.all_locations()
    before = files_below(tmp_path / "lake")
    for case, (token, method, url, body, status) in HALF.items():
        with server.client(token) as client:
            answer = client.request(method, f"/v1/{url}", json=body)
        assert answer.status_code == status, (case, answer.text)
        assert server.catalog.all_locations() == locations, case
        assert files_below(tmp_path / "lake") == before, case
    assert (rows_of(server, "hr.t"), rows_of(server, "sales.t")) == (2, 2)


def statistics_of(path: str, snapshot_id: int) -> dict[str, Any]:
    """A commit that calls a file a table's statistics."""
    statistics = {
        "snapshot-id": snapshot_id,
        "statistics-path": path,
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    return {
        "requirements": [],
        "updates": [{"action": "set-statistics", "statistics": statistics}],
    }


def test_a_commit_that_trims_the_log_deletes_the_tables_own_metadata_alone(
    server: Running,
) -> None:
    """The log came with a file that was registered, and names another table's current metadata."""
    own, other = written(server, "sales.t"), written(server, "hr.t")
    theirs = server.catalog.metadata_location("hr.t")
    place = Path(server.catalog.metadata_location("sales.t").removeprefix("file://"))
    content = json.loads(place.read_text())
    content["metadata-log"] = [{"timestamp-ms": 1, "metadata-file": theirs}]
    content["properties"] |= {
        "write.metadata.previous-versions-max": "1",
        "write.metadata.delete-after-commit.enabled": "true",
    }
    file = place.with_name("00009-other.metadata.json")
    file.write_text(json.dumps(content))
    url = "/v1/namespaces/sales/tables/t"
    with server.client(OWNER) as owner:
        assert owner.delete(url).status_code == 204
        body = {"name": "t", "metadata-location": str(file)}
        assert owner.post("/v1/namespaces/sales/register", json=body).status_code == 200
        for number in range(2):
            [log] = set_property(owner, url, "k", str(number)).json()["metadata"]["metadata-log"]
            assert log["metadata-file"] != theirs
    # The table's own is trimmed, the other table's is kept.
    assert not file.exists()
    assert rows_of(server, "hr.t") == 2
    assert other.location() != own.location()


HIT = {
    "uuid": ('"table-uuid": "', '"table-uuid": "x', "which is no UUID"),
    "snapshot id": ("SNAPSHOT", str(2**63 + 5), "more than 64 bits"),
    "operation": ('"operation": "append"', '"operation": "x"', "it must be one of"),
}


@pytest.mark.parametrize("case", HIT)
def test_a_table_that_others_cannot_load_opens_and_a_check_names_it(
    server: Running, case: str
) -> None:
    made, (old, new, reason) = written(server, "hr.t"), HIT[case]
    file = Path(server.catalog.metadata_location("hr.t").removeprefix("file://"))
    text = json.dumps(json.loads(file.read_text()))
    old = old.replace("SNAPSHOT", str(made.metadata.current_snapshot_id))
    assert old in text
    file.write_text(text.replace(old, new))
    check = checked(server, "hr.t")
    assert "value" in check["problem"].to_list()
    assert any(reason in (each or "") for each in check["reason"])
    # It is still written to, and what nothing mends is left by a repair.
    server.catalog.commit_table("hr.t", (), [SetProperties({"k": "v"})])
    [answer] = repaired(server, "hr.t").filter(problem="value")["answer"].unique()
    assert answer.startswith("nothing mends it where it is")
