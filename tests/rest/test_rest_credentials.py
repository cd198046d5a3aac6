"""Credentials that come with a table: for its places, renewed before they end, never shown."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from catalog_cases import made_table, opened, properties_of, set_properties

from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.files.credentials import VendedFileIO, storage_credentials
from frazil.catalog.rest.files.signing import SignedFileIO
from frazil.errors import AccessDeniedError, FrazilError, StorageError, UnsupportedError
from frazil.spark.files.parquet.access import spark_access
from frazil.spark.files.write_failures import write_failure
from frazil.spark.read.failures import read_failure
from frazil.storage.stores.remote_options import StorageCredential
from requirements_catalog import RequirementsCatalog
from rest_server import Server, served
from s3_server import S3Store

Connect = Callable[..., RestCatalog]


@pytest.fixture
def on_s3(s3: S3Store, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server whose tables lie in a bucket, and whose clients have no credentials."""
    bucket = s3.new_bucket(f"vended-{abs(hash(request.node.nodeid))}")
    place = {"warehouse": f"{bucket}/wh", **s3.properties}
    behind = RequirementsCatalog("behind", {**properties_of("sqlite", tmp_path), **place})
    with served(Server(behind)) as server:
        yield server
    behind.close()


def ends_in(seconds: float) -> str:
    return str(int((time.time() + seconds) * 1000))


@pytest.mark.check
def test_a_tables_own_credentials_reach_its_files(on_s3: Server, s3: S3Store) -> None:
    vended = {**s3.properties, "s3.session-token-expires-at-ms": ends_in(3600)}
    on_s3.table = {"storage-credentials": [{"prefix": "s3://vended", "config": vended}]}
    catalog = opened({"uri": on_s3.address})
    table = made_table(catalog)
    path = f"{table.metadata.location}/data/x"
    table.io.create(path, b"x")
    assert table.io.read(path) == b"x"
    assert [each.path for each in table.io.list(f"{table.metadata.location}/data")] == [path]
    assert table.io.read_range(path, offset=0, length=1) == b"x"
    sent = pickle.loads(pickle.dumps(table.io))
    assert sent.read(path) == b"x"
    table.io.delete(path)
    assert not table.io.exists(path)
    assert catalog.io.properties == {}
    assert catalog.load_table("db.t").io is table.io
    # The answer to a commit has no credentials of its own.
    on_s3.table = {}
    assert set_properties(catalog, "db.t", a="1").io is not None
    catalog.close()


def test_the_longest_prefix_wins() -> None:
    answered: list[Any] = [
        {"prefix": "s3://b", "config": {"s3.region": "short"}},
        {"prefix": "s3://b/t/deep", "config": {"s3.region": "deep"}},
        {"prefix": "s3", "config": {"s3.region": "any"}},
    ]
    io = VendedFileIO({"s3.region": "own"}, storage_credentials(answered), location="s3://b/t")
    for path, region in [
        ("s3://b/t/deep/x", "deep"),
        ("s3a://b/t/deep/x", "deep"),
        ("s3://b/t/x", "short"),
        ("s3://c/x", "any"),
        ("gs://c/x", "own"),
    ]:
        assert io._io_for(path).properties["s3.region"] == region
    assert io.properties["s3.region"] == "short"
    for wrong in (["x"], [{"prefix": 1, "config": {}}], [{"prefix": "s3", "config": "s3cr3t"}]):
        with pytest.raises(StorageError) as caught:
            storage_credentials(wrong)
        assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("alone", [True, False])
def test_credentials_are_renewed_before_they_end(
    server: Server, connect: Connect, alone: bool
) -> None:
    def vended(seconds: float, key: str) -> list[dict[str, Any]]:
        ends = {"s3.session-token-expires-at-ms": ends_in(seconds)}
        return [{"prefix": "s3://b", "config": {"s3.secret-access-key": key, **ends}}]

    if not alone:
        server.routes = {k: v for k, v in server.routes.items() if not k.endswith("credentials")}
    server.table = {"storage-credentials": vended(2, "s3cr3t-1")}
    server.credentials = vended(3600, "s3cr3t-2")
    catalog = connect()
    io = made_table(catalog).io
    assert isinstance(io, VendedFileIO)
    assert io._io_for("s3://b/x").properties["s3.secret-access-key"] == "s3cr3t-1"
    server.table = {"storage-credentials": server.credentials}
    time.sleep(1.7)
    server.exchanges.clear()
    for _ in range(3):
        assert io._io_for("s3://b/x").properties["s3.secret-access-key"] == "s3cr3t-2"
    assert len(server.exchanges) == 1
    assert server.exchanges[0].path.endswith("/credentials" if alone else "/t")
    sent = pickle.loads(pickle.dumps(io))._io_for("s3://b/x")
    assert sent.properties["s3.secret-access-key"] == "s3cr3t-2"
    assert "s3cr3t" not in repr(io)


def test_what_cannot_be_renewed_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def renew() -> list[StorageCredential]:
        asked.append(1)
        raise AccessDeniedError("no")

    old = StorageCredential("s3://b", {"s3.secret-access-key": "s3cr3t"}, int(ends_in(0.1)))
    io = VendedFileIO({}, [old], location="s3://b/t", renew=renew)
    time.sleep(0.2)
    for _ in range(3):
        assert io._io_for("s3://b/x").properties == old.config
    assert asked == [1]
    assert "were not renewed" in caplog.text
    assert "s3cr3t" not in caplog.text + repr(io)
    with pytest.raises(FrazilError) as caught:
        io.read("s3://b/x")
    assert "s3cr3t" not in str(caught.value)


def test_a_tables_own_token(server: Server, connect: Connect) -> None:
    valid = {"mine", "tables-1"}
    server.check = lambda request: request.headers.get("authorization", "")[7:] in valid
    server.table = {"config": {"token": "tables-1"}}
    catalog = connect(token="mine")
    made_table(catalog)
    set_properties(catalog, "db.t", a="1")
    assert server.exchanges[-1].headers["authorization"] == "Bearer tables-1"
    valid.remove("tables-1")
    valid.add("tables-2")
    server.table = {"config": {"token": "tables-2"}}
    assert set_properties(catalog, "db.t", a="2").metadata.properties["a"] == "2"


def test_what_this_release_has_not_is_refused_by_name(server: Server, connect: Connect) -> None:
    catalog = connect()
    made_table(catalog)
    server.table = {"config": {"scan-planning-mode": "server"}}
    server.etags = False
    with pytest.raises(UnsupportedError, match="plan scans"):
        connect().load_table("db.t")


def test_a_table_without_credentials_has_the_catalogs_files(
    server: Server, connect: Connect
) -> None:
    """And so the catalog's connections to a store."""
    catalog = connect()
    made_table(catalog)
    assert catalog.load_table("db.t").io is catalog.io


def test_keys_come_before_signatures(server: Server, connect: Connect) -> None:
    catalog = connect()
    made_table(catalog)
    signing = {"s3.remote-signing-enabled": "true"}
    for told in ({"config": signing}, {"remote-signing-config": {}}):
        server.table = told
        server.etags = False
        assert isinstance(connect().load_table("db.t").io, SignedFileIO)
    own = {"s3.access-key-id": "a", "s3.secret-access-key": "b"}
    assert not isinstance(connect(**own).load_table("db.t").io, SignedFileIO)
    vended = [{"prefix": "s3", "config": {"s3.access-key-id": "a"}}]
    for given in ({"storage-credentials": vended}, {"config": {**signing, **own}}):
        server.table = {"config": signing, **given}
        assert isinstance(connect().load_table("db.t").io, VendedFileIO)


@pytest.mark.parametrize(("seconds", "tense"), [(-3600, "ended"), (3600, "end")])
def test_a_task_that_the_store_refuses_names_the_end_of_its_credentials(
    spark: Any, seconds: float, tense: str
) -> None:
    keys = {"s3.access-key-id": "AK", "s3.secret-access-key": "s3cr3t"}
    ends_ms = int(ends_in(seconds))
    path = f"s3://of-{tense}/t/data/f.parquet"
    io = VendedFileIO({}, [StorageCredential("s3://", keys, ends_ms)], location="s3://b/t")
    [place] = spark_access(pl.Series("path", [path]), spark, io).paths
    at = f"{datetime.fromtimestamp(ends_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    # As Spark's connector says it.
    refused = f"java.nio.file.AccessDeniedException: {place}: open: ExpiredToken (Status Code: 400)"
    for told in (
        read_failure(RuntimeError(refused), table="db.t", snapshot_id=1, operation="the count"),
        write_failure(RuntimeError(refused), folder="s3://b/t/data"),
    ):
        assert isinstance(told, StorageError)
        assert f"{tense} at {at}" in str(told)
        assert "s3cr3t" not in str(told)
