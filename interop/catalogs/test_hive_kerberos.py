"""Hive metastores that want a ticket of Kerberos: a realm and servers of their own."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from catalog_cases import made_table, opened, set_properties, set_properties_retrying
from hive_server import OF_SPARK, VERSIONS, Metastore, metastore, properties_of
from kerberos_realm import SERVICE, USER, Realm, kerberos_metastore, kerberos_realm
from pymetastore.hive_metastore import ttypes
from test_hive_writers import ALTER, QUICK, committed_by_processes, new_table, whole
from thrift_proxy import Cut, proxy

from frazil.catalog.pointer.hive.catalog import HiveCatalog
from frazil.catalog.protocol import Catalog
from frazil.errors import AccessDeniedError, StorageError
from frazil.spark.lake import connect

KERBEROS = {"hive.kerberos-authentication": "true"}
OTHER = "other/localhost"
STRANGER = "eve"
ADVICE = "kinit.*KRB5_CLIENT_KTNAME"
PROTECTIONS = dict(zip(VERSIONS, ("authentication", "integrity", "privacy"), strict=True))
"""Each of Hadoop's kinds has a version of Hive: what is sent is as it is, signed or encrypted."""
LONG = 5 * [4 << 20]
"""The lengths of parameters that together are longer than Thrift takes by default."""
LONG_OF_HIVE_2 = 5000 * [4000]
"""The same where none is longer than this."""


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    """A realm with a user and two services."""
    with kerberos_realm() as running:
        for principal in (SERVICE, USER, OTHER, STRANGER):
            running.add(principal)
        yield running


@pytest.fixture(scope="module", params=VERSIONS)
def hive(
    request: pytest.FixtureRequest, realm: Realm, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Metastore]:
    """A metastore of each version that wants tickets of its users alone."""
    settings = {
        "hadoop.rpc.protection": PROTECTIONS[request.param],
        "hadoop.security.auth_to_local": f"RULE:[1:$1]({USER})\nRULE:[2:$1](hive)",
    }
    folder = tmp_path_factory.mktemp("hive")
    with kerberos_metastore(realm, request.param, folder, **settings) as running:
        yield running


@pytest.fixture(autouse=True)
def no_ticket(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process and those that it starts know the realm, and have no ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
    monkeypatch.delenv("KRB5_CLIENT_KTNAME", raising=False)


@pytest.fixture
def ticket(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket of the user."""
    monkeypatch.setenv("KRB5CCNAME", realm.take_ticket(USER, tmp_path / "ticket"))


def secured(hive: Metastore, port: int | None = None, **more: str) -> dict[str, str]:
    """The properties of a catalog that logs in, by the name that the service has."""
    uri = f"thrift://localhost:{port or hive.port}"
    return properties_of(hive, **KERBEROS, **QUICK) | {"uri": uri, **more}


def entered(properties: dict[str, str]) -> closing[Catalog]:
    """A catalog, which is closed at the end."""
    return closing(opened(properties))


def denied(properties: dict[str, str]) -> str:
    """What is said to one who may not come in, for a call that reads and one that changes."""
    said = []
    with entered(properties) as catalog:
        for call in (catalog.list_namespaces, lambda: catalog.create_namespace("denied")):
            begun = time.monotonic()
            with pytest.raises(AccessDeniedError) as caught:
                call()
            assert time.monotonic() - begun < 10
            said.append(str(caught.value))
    return "\n".join(said)


# -- with a ticket ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("ticket")
def test_a_ticket_opens_all(hive: Metastore, spark: Any) -> None:
    db = f"db{uuid4().hex[:10]}"
    with connect(spark, **secured(hive)) as lake:
        lake.create_namespace(db)
        lake.create_table(f"{db}.t", "id BIGINT, s STRING")
        lake.load_table(f"{db}.t").append(spark.createDataFrame([(1, "a"), (2, "b")], ["id", "s"]))
        lake.rename_table(f"{db}.t", f"{db}.u")
        found = lake.sql(f"SELECT id, s FROM {db}.u ORDER BY id").collect()
        assert [tuple(row) for row in found] == [(1, "a"), (2, "b")]
        lake.sql(f"DELETE FROM {db}.u WHERE id = 1")
        assert [row.s for row in lake.sql(f"SELECT s FROM {db}.u").collect()] == ["b"]
        lake.drop_table(f"{db}.u")
        assert lake.list_tables(db) == []
        lake.drop_namespace(db)


@pytest.mark.usefixtures("ticket")
def test_what_is_made_is_the_users_of_the_ticket(hive: Metastore) -> None:
    db = f"db{uuid4().hex[:10]}"
    with entered(secured(hive)) as catalog:
        assert isinstance(catalog, HiveCatalog)
        made_table(catalog, f"{db}.t")
        assert catalog.load_namespace_properties(db)["hive.metastore.database.owner"] == USER
        record = catalog._metastores.read(lambda client: client.get_all_tables(db))
        assert record == ["t"]
        with catalog._locks.hold((db, "t")) as lock:
            assert f"lock {lock.lock_id} of {USER}@" in catalog._locks._holders((db, "t"), -1)


@pytest.mark.usefixtures("ticket")
def test_no_acknowledged_commit_of_a_ticket_is_lost(hive: Metastore) -> None:
    """Threads and processes, each with connections of its own, under the metastore's locks."""
    properties = secured(hive)
    with new_table(properties) as catalog:

        def commits(writer: int) -> None:
            for number in range(5):
                set_properties_retrying(catalog, "db.t", **{f"t{writer}.{number}": "done"})

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(commits, range(3)))
        named = {f"t{writer}.{number}" for writer in range(3) for number in range(5)}
        # Hive 4's own calls for locks wait for each other in Derby.
        if not hive.version.startswith("4."):
            named |= committed_by_processes(properties, writers=3, commits=5)
        whole(catalog, named)


@pytest.mark.usefixtures("ticket")
@pytest.mark.parametrize("arrives", [False, True])
def test_an_answer_to_a_ticket_is_lost(hive: Metastore, arrives: bool) -> None:
    if PROTECTIONS[hive.version] == "privacy":
        pytest.skip("nobody between them can tell which call it is")
    with proxy(hive.port) as between, new_table(secured(hive, between.port)) as catalog:
        between.cuts.append(Cut(ALTER, arrives))
        set_properties(catalog, "db.t", a="done")
        assert not between.cuts
        whole(catalog, {"a"})


@pytest.mark.usefixtures("ticket")
def test_long_answers_come_whole(hive: Metastore) -> None:
    db = f"db{uuid4().hex[:10]}"
    with entered(secured(hive)) as catalog:
        assert isinstance(catalog, HiveCatalog)
        made_table(catalog, f"{db}.t")
        asked = ttypes.GetTableRequest(dbName=db, tblName="t")
        record = catalog._metastores.read(lambda client: client.get_table_req(asked)).table
        sizes = LONG_OF_HIVE_2 if hive.version == OF_SPARK else LONG
        record.parameters |= {f"long{at}": "x" * size for at, size in enumerate(sizes)}
        context = ttypes.EnvironmentContext(properties={})
        catalog._metastores.change(
            lambda client: client.alter_table_with_environment_context(db, "t", record, context)
        )
        assert catalog.list_tables(db) == [(db, "t")]
        set_properties(catalog, f"{db}.t", a="1")
        assert catalog.load_table(f"{db}.t").metadata.properties["a"] == "1"


# -- without one -----------------------------------------------------------------------------------


def test_without_a_ticket_it_is_said_what_to_do(
    hive: Metastore, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = f"secret{uuid4().hex}"
    more = {"uri": f"thrift://anna:{secret}@localhost:{hive.port}", "s3.session-token": secret}
    said = denied(secured(hive, **more))
    assert f"localhost:{hive.port}" in said
    for line in said.splitlines():
        assert "No Kerberos credentials" in line
        assert "kinit" in line
        assert "KRB5_CLIENT_KTNAME" in line
    assert secret not in said + caplog.text + "".join(capfd.readouterr())


def test_a_ticket_that_ended_is_taken_anew(
    hive: Metastore, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is connected stays so; who connects anew shows a ticket that holds."""
    place = tmp_path / "ticket"
    monkeypatch.setenv("KRB5CCNAME", realm.take_ticket(USER, place, life="4s"))
    with proxy(hive.port) as between, entered(secured(hive, between.port)) as catalog:
        db = f"db{uuid4().hex[:10]}"
        made_table(catalog, f"{db}.t")
        time.sleep(5)
        set_properties(catalog, f"{db}.t", late="1")
        with entered(secured(hive)) as other:
            for call in (other.list_namespaces, lambda: other.create_namespace(f"{db}x")):
                with pytest.raises(AccessDeniedError, match=f"(?s)expired.*{ADVICE}"):
                    call()
        between.stop()
        between.start()
        with pytest.raises(AccessDeniedError, match=f"(?s)Ticket expired.*{ADVICE}"):
            catalog.list_namespaces()
        with pytest.raises(AccessDeniedError, match="Ticket expired"):
            set_properties(catalog, f"{db}.t", a="1")
        realm.take_ticket(USER, place)
        set_properties(catalog, f"{db}.t", b="1")
        found = catalog.load_table(f"{db}.t").metadata
        assert "a" not in found.properties
        assert {"late", "b"} <= set(found.properties)
        # The file of the refused commit is gone.
        files = [file.path for file in catalog.io.list(found.location)]
        assert len([path for path in files if path.endswith(".metadata.json")]) == 3


def test_a_keytab_takes_tickets_by_itself(
    hive: Metastore, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path / "krb5.conf"
    short.write_text(
        realm.config.read_text().replace("[libdefaults]", "[libdefaults]\nticket_lifetime = 4s")
    )
    monkeypatch.setenv("KRB5_CONFIG", str(short))
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.keytab(USER)))
    with entered(secured(hive)) as catalog:
        assert ("default",) in catalog.list_namespaces()
        first = (tmp_path / "none").read_bytes()
        catalog.close()
        time.sleep(5)
        assert ("default",) in catalog.list_namespaces()
        assert (tmp_path / "none").read_bytes() != first


def test_a_heartbeat_without_a_ticket_loses_the_lock(
    hive: Metastore, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = realm.take_ticket(USER, tmp_path / "ticket")
    monkeypatch.setenv("KRB5CCNAME", place)
    with proxy(hive.port) as between, new_table(secured(hive, between.port)) as catalog:
        assert isinstance(catalog, HiveCatalog)
        with catalog._locks.hold(("db", "t")) as lock:
            assert lock.is_held()
            monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/none")
            between.stop()
            between.start()
            assert not lock.is_held()
            assert isinstance(lock.failure, AccessDeniedError)
            monkeypatch.setenv("KRB5CCNAME", place)
        set_properties(catalog, "db.t", a="done")
        whole(catalog, {"a"})


@pytest.mark.parametrize(
    ("service", "host", "said"),
    [
        ("other", "localhost", "refuses the ticket for other/localhost.*GSS initiate failed"),
        ("nobody", "localhost", "nobody/localhost.*not found.*hive.kerberos-service-name"),
        ("hive", "127.0.0.1", "hive/127.0.0.1.*not found.*in uri"),
    ],
)
@pytest.mark.usefixtures("ticket")
def test_a_service_of_another_name(hive: Metastore, service: str, host: str, said: str) -> None:
    more = {"uri": f"thrift://{host}:{hive.port}", "hive.kerberos-service-name": service}
    with entered(secured(hive, **more)) as catalog, pytest.raises(AccessDeniedError, match=said):
        catalog.list_namespaces()


def test_a_user_whom_the_metastore_does_not_know(
    hive: Metastore, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It accepts the ticket, and finds no rule for whose it is."""
    monkeypatch.setenv("KRB5CCNAME", realm.take_ticket(STRANGER, tmp_path / "ticket"))
    with entered(secured(hive)) as catalog, pytest.raises(StorageError, match="no answer"):
        catalog.list_namespaces()


@pytest.mark.usefixtures("ticket")
def test_a_kdc_that_cannot_be_reached(
    hive: Metastore, realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "krb5.conf"
    elsewhere.write_text(realm.config.read_text().replace(f":{realm.port}", ":1"))
    monkeypatch.setenv("KRB5_CONFIG", str(elsewhere))
    with entered(secured(hive)) as catalog:
        with pytest.raises(StorageError, match="Cannot contact any KDC"):
            catalog.list_namespaces()
        monkeypatch.setenv("KRB5_CONFIG", str(realm.config))
        assert ("default",) in catalog.list_namespaces()


@pytest.mark.parametrize("more", [{}, {"ugi": "anna"}], ids=["nobody", "ugi"])
def test_who_does_not_log_in_is_told_to(hive: Metastore, more: dict[str, str]) -> None:
    said = denied(secured(hive, **more, **{"hive.kerberos-authentication": "false"}))
    for line in said.splitlines():
        assert "set hive.kerberos-authentication=true" in line


@pytest.mark.usefixtures("ticket")
def test_a_server_that_wants_no_login(tmp_path: Path) -> None:
    with metastore(OF_SPARK, tmp_path / "hive") as plain, entered(secured(plain)) as catalog:
        begun = time.monotonic()
        with pytest.raises(StorageError, match=r"remove hive\.kerberos-authentication"):
            catalog.list_namespaces()
        assert time.monotonic() - begun < 40


@pytest.mark.usefixtures("ticket")
def test_one_of_two_servers_is_unknown_to_the_kdc(hive: Metastore) -> None:
    """It is named by its address; the other one is asked then."""
    both = f"thrift://127.0.0.1:{hive.port},thrift://localhost:{hive.port}"
    with entered(secured(hive, uri=both)) as catalog:
        assert ("default",) in catalog.list_namespaces()
