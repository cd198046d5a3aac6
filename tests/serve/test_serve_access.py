"""Tokens and their namespaces, places of files, limits; secrets are in no log and no answer."""

from __future__ import annotations

import hashlib
import json
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from serve_cases import (
    VERSION,
    Running,
    namespace,
    running,
    set_property,
    sql_catalog,
    started,
    table,
    tokens_of,
    view,
)
from sqlalchemy import create_engine, make_url

from frazil.catalog.config import load_catalog
from frazil.errors import ConfigurationError
from frazil.serve.server import CatalogServer
from frazil.serve.settings import Listening, ServeSettings

OWNER, READER, SALES, DEEP = (f"{name}-0123456789abcdef" for name in ("own", "rd", "sal", "deep"))
TOKEN_FILE = f"""
tokens:
  - {{name: owner, token: {OWNER}, write: ["*"]}}
  - {{name: reader, sha256: {hashlib.sha256(READER.encode()).hexdigest()}, read: ["*"]}}
  - {{name: sales, token: {SALES}, write: [sales], read: [shared]}}
  - {{name: deep, token: {DEEP}, read: [hr.open]}}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    tokens = tokens_of(tmp_path, TOKEN_FILE)
    with running(sql_catalog(tmp_path / "lake"), tokens=tokens) as server:
        with server.client(OWNER) as owner:
            for levels in (("sales",), ("hr",), ("hr", "open"), ("hr", "pay"), ("shared",)):
                namespace(owner, *levels)
            for levels in ("sales", "hr", "hr%1Fopen", "shared"):
                assert table(owner, levels, "t").status_code == 200
                assert view(owner, levels).status_code == 200
        yield server
        server.check_exchanges()


def test_without_a_token_nothing_is_told(server: Running) -> None:
    for token in (None, "wrong", OWNER[:-1], OWNER + "x", "*"):
        with server.client() as client:
            if token:
                client.headers["Authorization"] = f"Bearer {token}"
            for path in ("config", "namespaces/hr", "namespaces/none", "namespaces/hr/views/v"):
                answer = client.get(f"/v1/{path}")
                assert answer.status_code == 401
                assert answer.json()["error"]["type"] == "NotAuthorizedException"


def test_who_may_read_cannot_write(server: Running) -> None:
    with server.client(READER) as client:
        for path in ("tables/t", "views", "views/v"):
            assert client.get(f"/v1/namespaces/hr/{path}").status_code == 200
        plan = client.post("/v1/namespaces/hr/tables/t/plan", json={})
        assert plan.status_code == 200
        _all_forbidden(client, "hr")


def _all_forbidden(client: httpx.Client, levels: str) -> None:
    url, named = f"/v1/namespaces/{levels}", {"namespace": levels.split("%1F"), "name": "t"}
    there = {"namespace": ["sales"], "name": "x"}
    shown, gone = {**named, "name": "v"}, {**there, "name": "v"}
    commit = {"identifier": named, "requirements": [], "updates": []}
    for method, path, body in (
        ("POST", "/v1/namespaces", {"namespace": [*levels.split("%1F"), "x"]}),
        ("DELETE", url, None),
        ("POST", f"{url}/properties", {"updates": {"k": "v"}}),
        ("POST", f"{url}/tables", {"name": "n", "schema": {"type": "struct", "fields": []}}),
        ("POST", f"{url}/tables/t", {"requirements": [], "updates": []}),
        ("DELETE", f"{url}/tables/t", None),
        ("DELETE", f"{url}/tables/t?purgeRequested=true", None),
        ("POST", f"{url}/register", {"name": "n", "metadata-location": "x"}),
        ("POST", "/v1/tables/rename", {"source": named, "destination": there}),
        ("POST", "/v1/tables/rename", {"source": there, "destination": named}),
        ("POST", "/v1/transactions/commit", {"table-changes": [commit]}),
        ("POST", f"{url}/views", {"name": "n"}),
        ("POST", f"{url}/views/v", {"updates": []}),
        ("DELETE", f"{url}/views/v", None),
        ("POST", f"{url}/register-view", {"name": "n", "metadata-location": "x"}),
        ("POST", "/v1/views/rename", {"source": shown, "destination": gone}),
        ("POST", "/v1/views/rename", {"source": gone, "destination": shown}),
    ):
        answer = client.request(method, path, json=body)
        assert answer.status_code == 403, (method, path)
        assert answer.json()["error"]["type"] == "ForbiddenException"


def test_a_token_of_a_namespace_sees_no_other(server: Running) -> None:
    with server.client(SALES) as client:
        assert client.get("/v1/namespaces").json()["namespaces"] == [["sales"], ["shared"]]
        for levels in ("hr", "hr%1Fopen", "none"):
            for path in ("", "/tables", "/tables/t", "/tables/t/credentials", "/views", "/views/v"):
                assert client.get(f"/v1/namespaces/{levels}{path}").status_code == 403
            for path in ("tables/t", "views/v"):
                assert client.head(f"/v1/namespaces/{levels}/{path}").status_code == 403
            assert client.get("/v1/namespaces", params={"parent": levels}).status_code == 403
            plan = client.post(f"/v1/namespaces/{levels}/tables/t/plan", json={})
            assert plan.status_code == 403
            _all_forbidden(client, levels)
        _all_forbidden(client, "shared")
        assert client.get("/v1/namespaces/shared/tables/t").status_code == 200
        namespace(client, "sales", "eu")
        assert table(client, "sales%1Feu", "t").status_code == 200
        for path in ("tables/t", "views/v"):
            assert set_property(client, f"/v1/namespaces/sales/{path}", "k", "v").status_code == 200
        assert client.post("/v1/namespaces/sales/tables/t/plan", json={}).status_code == 200
        purged = client.delete("/v1/namespaces/sales%1Feu/tables/t?purgeRequested=true")
        assert purged.status_code == 204
    with server.client(DEEP) as client:
        assert client.get("/v1/namespaces").json()["namespaces"] == [["hr"]]
        below = client.get("/v1/namespaces", params={"parent": "hr"}).json()["namespaces"]
        assert below == [["hr", "open"]]
        assert client.get("/v1/namespaces/hr").status_code == 403
        assert client.get("/v1/namespaces/hr/tables").status_code == 403
        assert client.get("/v1/namespaces/hr%1Fopen/tables/t").status_code == 200


def test_files_of_others_cannot_be_named(server: Running, tmp_path: Path) -> None:
    """Of another namespace by its own token; outside of the warehouse by any."""
    lake = tmp_path / "lake"
    secret = tmp_path / "secret.json"
    secret.write_text('{"password": "not for you"}')
    with server.client(OWNER) as owner:
        others = [owner.get(f"/v1/namespaces/hr/{path}").json()["metadata-location"]
                  for path in ("tables/t", "views/v")]  # fmt: skip
    outside = (f"{tmp_path}/x", f"file://{lake}/../x", "/etc", "s3://b/x", "relative", "file:x")
    for token, places in ((OWNER, outside), (SALES, (*outside, f"{lake}/hr/t", f"{lake}/sale"))):
        with server.client(token) as client:
            for place in places:
                made = table(client, "sales", "n", location=place)
                assert made.status_code == 400, place
                staged = table(client, "sales", "n", location=place, **{"stage-create": True})
                assert staged.status_code == 400
                for name in ("write.data.path", "write.metadata.path"):
                    made = table(client, "sales", "n", properties={name: place})
                    assert made.status_code == 400
                    url = "/v1/namespaces/sales/tables/t"
                    assert set_property(client, url, name, place).status_code == 400
                path = {"write.metadata.path": place}
                assert view(client, "sales", "n", location=place).status_code == 400, place
                assert view(client, "sales", "n", properties=path).status_code == 400
                for update in (
                    {"action": "set-location", "location": place},
                    {"action": "set-properties", "updates": path},
                ):
                    changed = client.post(
                        "/v1/namespaces/sales/views/v", json={"updates": [update]}
                    )
                    assert changed.status_code == 400, update
                body = {"updates": {"location": place}}
                assert client.post("/v1/namespaces/sales/properties", json=body).status_code == 400
                for update in _updates_with(place):
                    commit = {"requirements": [], "updates": [update]}
                    assert client.post(url, json=commit).status_code == 400, update
            files = (str(secret), f"file://{secret}", f"{lake}/../secret.json")
            for file in files if token == OWNER else (*files, *others):
                body = {"name": "n", "metadata-location": file}
                for kind in ("register", "register-view"):
                    answer = client.post(f"/v1/namespaces/sales/{kind}", json=body)
                    assert answer.status_code == 400
                    assert "not for you" not in answer.text


def _updates_with(place: str) -> Iterator[dict[str, object]]:
    yield {"action": "set-location", "location": place}
    snapshot = {
        "snapshot-id": 7,
        "sequence-number": 1,
        "timestamp-ms": 1,
        "manifest-list": f"{place}/m.avro",
        "summary": {"operation": "append"},
    }
    yield {"action": "add-snapshot", "snapshot": snapshot}
    file = {
        "snapshot-id": 7,
        "statistics-path": f"{place}/s.puffin",
        "file-size-in-bytes": 1,
    }
    whole = {**file, "file-footer-size-in-bytes": 1, "blob-metadata": []}
    yield {"action": "set-statistics", "statistics": whole}
    yield {"action": "set-partition-statistics", "partition-statistics": file}


def test_metadata_that_names_files_of_others_is_not_registered(
    server: Running, tmp_path: Path
) -> None:
    with server.client(SALES) as client:
        made = table(client, "sales", "n").json()
        path = Path(made["metadata-location"].removeprefix("file://"))
        for key, value in (
            ("location", f"{tmp_path}/lake/hr/t"),
            ("metadata-log", [{"timestamp-ms": 1, "metadata-file": f"{tmp_path}/lake/hr/m.json"}]),
            ("properties", {"write.data.path": "/etc"}),
        ):
            content = {**json.loads(path.read_text()), key: value}
            file = path.with_name(f"9-{key}.metadata.json")
            file.write_text(json.dumps(content))
            body = {"name": "m", "metadata-location": str(file)}
            assert client.post("/v1/namespaces/sales/register", json=body).status_code == 400
        shown = client.get("/v1/namespaces/sales/views/v").json()["metadata"]
        tree = {**VERSION, "representations": [{"type": "tree", "tree": {}}]}
        for key, value in (
            ("location", f"{tmp_path}/lake/hr/v"),
            ("properties", {"write.metadata.path": "/etc"}),
            ("versions", [tree]),
            ("current-version-id", 7),
        ):
            file = path.with_name(f"9-view-{key}.metadata.json")
            file.write_text(json.dumps({**shown, key: value}))
            body = {"name": "m", "metadata-location": str(file)}
            answer = client.post("/v1/namespaces/sales/register-view", json=body)
            assert answer.status_code == 400, key
        broken = path.with_name("8.metadata.json")
        broken.write_text("not for you")
        body = {"name": "m", "metadata-location": str(broken)}
        answer = client.post("/v1/namespaces/sales/register", json=body)
        assert answer.status_code == 400
        assert "not for" not in answer.text


def test_any_location_where_it_is_allowed(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path / "lake"), ServeSettings(any_location=True)) as server:
        with server.client() as client:
            namespace(client, "a")
            assert table(client, "a", "t", location=f"{tmp_path}/x").status_code == 200
        server.check_exchanges()


def test_read_only(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path)
    catalog.create_namespace("a")
    with running(catalog, ServeSettings(read_only=True)) as server, server.client() as client:
        _all_forbidden(client, "a")
        offered = client.get("/v1/config").json()["endpoints"]
        assert not [each for each in offered if each.startswith("DELETE")]
        assert "POST /v1/{prefix}/namespaces" not in offered


def test_secrets_are_in_no_log_and_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, postgres_url: str
) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = {"s3.access-key-id": "AKIA-hidden", "s3.secret-access-key": "hidden-key"}
    shown = {"s3.endpoint": "http://127.0.0.1:1", "s3.region": "eu"}
    tokens = tokens_of(tmp_path, TOKEN_FILE)
    hidden = [*secrets.values(), "s3cr3t-pw", OWNER, READER, SALES]
    for vends in (False, True):
        settings = ServeSettings(vend_credentials=vends)
        catalog = sql_catalog(tmp_path, uri=postgres_url, type="sql", **secrets, **shown)
        with running(catalog, settings, tokens=tokens) as server:
            with server.client(OWNER) as owner:
                if not vends:
                    namespace(owner, "sales")
                made = table(owner, "sales", f"t{vends}".lower())
                given = made.json().get("storage-credentials", [])
                assert [each["config"] for each in given] == ([{**secrets, **shown}] * vends)
                assert made.json()["config"] == shown
            for token in (READER, SALES):
                with server.client(token) as client:
                    client.get("/v1/namespaces/sales%0d%0aGET", params={"token": OWNER})
                    url = f"/v1/namespaces/sales/tables/t{vends}".lower()
                    for path in ("/v1/config", url, f"{url}/credentials", "/v1/none"):
                        answer = client.get(path).text
                        assert not [each for each in hidden if each in answer]
            # The database is told to be gone: its driver's messages name host and user.
            server.catalog._database.close()
    others = ("httpx", "httpcore", "asyncio")
    told = [each for each in caplog.records if each.name.partition(".")[0] not in others]
    assert not [each for each in hidden if any(each in line.getMessage() for line in told)]
    lines = [each.getMessage() for each in caplog.records if each.name == "frazil.serve"]
    assert all("\n" not in line for line in lines)
    assert any("/v1/namespaces/sales/tables/ttrue 200" in line for line in lines)
    assert any(line.split(" ")[-1] == "sales" for line in lines)


def test_the_log_of_the_program_has_no_secrets(tmp_path: Path, postgres_url: str) -> None:
    """What the command prints, also of a database that fails while it serves."""
    tokens = tmp_path / "tokens.yaml"
    tokens.write_text(TOKEN_FILE)
    url = make_url(postgres_url).set(password="s3cr3t-pw")
    secrets = {"S3__ACCESS_KEY_ID": "AKIA-hidden", "S3__SECRET_ACCESS_KEY": "hidden-key"}
    server, uri = started(
        tmp_path,
        f"--uri={url.render_as_string(hide_password=False)}",
        f"--token-file={tokens}",
        "--vend-credentials",
        **{f"PYICEBERG_CATALOG__LAKE__{name}": value for name, value in secrets.items()},
    )
    try:
        with httpx.Client(base_url=uri, headers={"Authorization": f"Bearer {OWNER}"}) as owner:
            namespace(owner, "sales")
            made = table(owner, "sales", "t", properties={"s3.secret-access-key": "of-a-client"})
            assert made.status_code == 200
            assert "hidden-key" in made.text
            for headers in ({"Authorization": f"Basic {READER}"}, {"Authorization": f"x{OWNER}"}):
                assert owner.get("/v1/config", headers=headers).status_code == 401
            owner.get("/v1/namespaces/sales", params={"token": READER})
            with create_engine(url).begin() as connection:
                connection.exec_driver_sql("DROP TABLE iceberg_tables")
            failed = owner.get("/v1/namespaces/sales/tables/t", headers={"X-Iceberg": SALES})
            assert failed.status_code >= 500
            assert "s3cr3t-pw" not in failed.text
    finally:
        server.process.terminate()
        server.process.wait(60)
        server.kill()
    printed = server.printed + "".join(server.errors)
    assert "/v1/namespaces/sales/tables/t 5" in printed
    hidden = [*secrets.values(), "of-a-client", "s3cr3t-pw", OWNER, READER, SALES]
    assert not [each for each in hidden if each in printed]


FILES = {
    "no list": "tokens: 3",
    "no YAML": "{tokens: [",
    "a key that is not known": "tokens: [{token: 0123456789abcdef, reads: [a]}]",
    "no namespaces": "tokens: [{token: 0123456789abcdef}]",
    "both": f"tokens: [{{token: 0123456789abcdef, sha256: {'0' * 64}, read: [a]}}]",
    "neither": "tokens: [{read: [a]}]",
    "no hash": "tokens: [{sha256: 0123456789abcdef, read: [a]}]",
    "a short token": "tokens: [{token: abcdef, read: [a]}]",
    "one text": "tokens: [{token: 0123456789abcdef, read: a}]",
    "a name of two lines": 'tokens: [{name: "a\\nb", token: 0123456789abcdef, read: [a]}]',
    "the same twice": "tokens: [{token: 0123456789abcdef, read: [a]}, "
    "{token: 0123456789abcdef, write: [b]}]",
}


@pytest.mark.parametrize("case", FILES)
def test_token_files_that_are_refused(case: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refused:
        tokens_of(tmp_path, FILES[case])
    assert "abcdef" not in str(refused.value)


def test_token_files_of_toml(tmp_path: Path) -> None:
    text = '[[tokens]]\nname = "a"\ntoken = "0123456789abcdef"\nread = ["x.y"]\n'
    principal = tokens_of(tmp_path, text, "tokens.toml").principal("0123456789abcdef")
    assert principal is not None
    assert (principal.name, principal.reads) == ("a", {("x", "y")})


def test_other_machines_are_let_in_on_demand_alone(tmp_path: Path) -> None:
    catalog = load_catalog("lake", warehouse=str(tmp_path))
    with pytest.raises(ConfigurationError, match="--token-file"):
        CatalogServer(catalog, listening=Listening(host="0.0.0.0", port=0))
    where = Listening(host="127.0.0.1", port=0, certificate=tmp_path / "c.pem")
    with pytest.raises(ConfigurationError, match="together"):
        CatalogServer(catalog, listening=where)


def test_pages_of_the_web_are_not_answered(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        assert client.get("/v1/config", headers={"Host": "evil.example"}).status_code == 400
        plain = client.post(
            "/v1/namespaces",
            content=b'{"namespace": ["a"]}',
            headers={"Content-Type": "text/plain"},
        )
        assert plain.status_code == 400
        assert client.head("/v1/namespaces/a").status_code == 404


def test_limits(tmp_path: Path) -> None:
    settings = ServeSettings(max_body_bytes=1 << 20, body_seconds=0.5)
    with running(sql_catalog(tmp_path), settings) as server:
        host, port = "127.0.0.1", httpx.URL(server.uri).port
        head = f"POST /v1/namespaces HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        for framing, sent in (
            (f"Content-Length: {100 << 20}\r\n\r\n", b"x" * 1000),
            ("Transfer-Encoding: chunked\r\n\r\n", b"100001\r\n" + b"x" * 0x100001 + b"\r\n"),
            ("Content-Length: 100\r\n\r\n", b"slow"),
            ("Content-Length: 3\r\n\r\n", b"\xff{}"),
        ):
            with socket.create_connection((host, port), timeout=10) as connection:
                connection.sendall((head + framing).encode() + sent)
                answer = connection.recv(10_000)
                assert answer.startswith(b"HTTP/1.1 400"), (framing, answer)
        # A client that sends no head, or half of one, is let go.
        for begin in (b"", b"GET /v1/con"):
            with socket.create_connection((host, port), timeout=60) as connection:
                connection.sendall(begin)
                started = time.monotonic()
                assert connection.recv(1000) == b""
                assert time.monotonic() - started < 20
        with server.client() as client:
            assert client.get("/health").status_code == 200


ODD_NAMES = ["a.b", "a/b", "ä ö", "'\"`", "日本", "%2F", "a%b", "x" * 255, "a;b?c#d", "..x", "a\\b"]
BAD_NAMES = ["", " ", "x" * 256, "a\x00b", "a\nb"]


def test_odd_names(tmp_path: Path) -> None:
    with running(sql_catalog(tmp_path)) as server, server.client() as client:
        namespace(client, "n")
        for number, name in enumerate(ODD_NAMES):
            place = {"location": f"{tmp_path}/t{number}"}
            assert table(client, "n", name, **place).status_code == 200, name
            url = f"/v1/namespaces/n/tables/{quote(name, safe='')}"
            assert client.head(url).status_code == 204, name
            assert client.get(url).json()["metadata"]["location"] == place["location"]
            if len(name) < 100 and "." not in name:
                namespace(client, name)
                namespace(client, name, name)
                nested = quote(f"{name}\x1f{name}", safe="")
                assert client.head(f"/v1/namespaces/{nested}").status_code == 204
        listed = client.get("/v1/namespaces/n/tables").json()["identifiers"]
        assert sorted(each["name"] for each in listed) == sorted(ODD_NAMES)
        for name in BAD_NAMES:
            assert table(client, "n", name).status_code == 400, name
            body = {"namespace": [name]}
            assert client.post("/v1/namespaces", json=body).status_code == 400, name
        for path in ("%ff", "a%1F", "%1Fa", "n/tables/%ff"):
            assert client.get(f"/v1/namespaces/{path}").status_code == 400
        assert client.get("/v1/namespaces?parent=%ff").status_code == 400
        deep = '{"namespace": ' + "[" * 100_000 + "]" * 100_000 + "}"
        kind = {"Content-Type": "application/json"}
        assert client.post("/v1/namespaces", content=deep, headers=kind).status_code == 400
        half = '{"namespace": ["a"], "properties": {"k": "\\ud800"}}'
        assert client.post("/v1/namespaces", content=half, headers=kind).status_code == 400
        server.check_exchanges()
