"""Who asks: tokens and their renewal, passwords, AWS's signatures; and no secret shown."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from catalog_cases import made_table, set_properties
from rest_cases import ask_together

from frazil.catalog.config import resolve
from frazil.catalog.rest.catalog import RestCatalog
from frazil.errors import AccessDeniedError, ConfigurationError, FrazilError, UnsupportedError
from rest_server import Fault, Server

Connect = Callable[..., RestCatalog]
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"


class Grants:
    """A server of tokens, which counts them: t1, t2, …"""

    def __init__(self, server: Server, lives: float | None = 3600) -> None:
        self.forms: list[dict[str, str]] = []
        self.lives = lives
        self.valid: set[str] = set()
        server.grants = self.grant
        server.check = lambda r: r.headers.get("authorization", "")[7:] in self.valid

    def grant(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        self.forms.append(form)
        if form.get("client_secret") == "wrong-s3cr3t":
            text = f"no {form['client_secret']}"
            return 401, {"error": "invalid_client", "error_description": text}
        token = f"t{len(self.forms)}-s3cr3t"
        self.valid.add(token)
        lives = {} if self.lives is None else {"expires_in": self.lives}
        return 200, {"access_token": token, "token_type": "bearer", **lives}


def test_a_bearer_token(server: Server, connect: Connect) -> None:
    server.check = lambda request: request.headers.get("authorization") == "Bearer s3cr3t.abc"
    assert connect(token="s3cr3t.abc").list_namespaces() == []
    for given in ({"token": "other"}, {}):
        with pytest.raises(AccessDeniedError, match="401") as caught:
            connect(**given)
        assert "other" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="no bearer token"):
        connect(token="two words")


def test_client_credentials(server: Server, connect: Connect) -> None:
    grants = Grants(server)
    catalog = connect(credential="me:s3cr3t:x", scope="all", audience="them", resource="here")
    assert catalog.list_namespaces() == []
    assert grants.forms == [
        {
            "grant_type": "client_credentials",
            "scope": "all",
            "audience": "them",
            "resource": "here",
            "client_id": "me",
            "client_secret": "s3cr3t:x",
        }
    ]
    # Taken back before its time: the server refuses it, and another one is had once.
    grants.valid.clear()
    made_table(catalog)
    assert len(grants.forms) == 2
    # Taken back from many threads at once.
    ask_together(server, catalog, grants.valid)
    assert len(grants.forms) == 3
    server.check = lambda _: False
    with pytest.raises(AccessDeniedError):
        set_properties(catalog, "db.t", a="1")
    assert len(grants.forms) == 4
    with pytest.raises(AccessDeniedError, match="invalid_client") as caught:
        connect(credential="me:wrong-s3cr3t")
    assert "s3cr3t" not in str(caught.value)


def test_a_token_is_renewed_before_it_ends(server: Server, connect: Connect) -> None:
    grants = Grants(server, lives=2)
    catalog = connect(credential="s3cr3t")
    assert "client_id" not in grants.forms[0]
    assert grants.forms[0]["scope"] == "catalog"
    catalog.list_namespaces()
    assert len(grants.forms) == 1
    time.sleep(1.6)
    catalog.list_namespaces()
    assert len(grants.forms) == 2
    assert all(each.status == 200 for each in server.exchanges)
    kept = connect(credential="s3cr3t", **{"token-refresh-enabled": "false"})
    time.sleep(1.6)
    kept.list_namespaces()
    assert len(grants.forms) == 3


def test_a_token_is_exchanged_before_it_ends(
    server: Server, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    grants = Grants(server)
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + 1.2}).encode()).decode()
    first = f"h.{claims.rstrip('=')}.s3cr3t"
    grants.valid = {first}
    catalog = connect(token=first)
    assert grants.forms == []
    time.sleep(1)
    catalog.list_namespaces()
    assert grants.forms == [
        {
            "grant_type": EXCHANGE,
            "subject_token": first,
            "subject_token_type": ACCESS,
            "scope": "catalog",
        }
    ]
    # Without an answer the old token goes on.
    short = connect(token=first, **{"token-expires-in-ms": "100"})
    time.sleep(0.2)
    server.faults = [Fault(ends="tokens", status=500, times=3)]
    with caplog.at_level(logging.WARNING):
        short.list_namespaces()
    assert "was not renewed" in caplog.text
    assert "s3cr3t" not in caplog.text


def test_a_users_token_is_exchanged(server: Server, connect: Connect) -> None:
    grants = Grants(server)
    kind = "urn:ietf:params:oauth:token-type:id_token"
    connect(credential="me:s3cr3t", **{kind: "users-s3cr3t"}).list_namespaces()
    first, second = grants.forms
    assert first["grant_type"] == "client_credentials"
    assert second == {
        "grant_type": EXCHANGE,
        "subject_token": "users-s3cr3t",
        "subject_token_type": kind,
        "actor_token": "t1-s3cr3t",
        "actor_token_type": ACCESS,
        "scope": "catalog",
    }


def test_another_server_of_tokens(server: Server, connect: Connect) -> None:
    grants = Grants(server)
    own = {"oauth2-server-uri": f"{server.address}/v1/oauth/tokens"}
    connect(credential="me:s3cr3t", **own)
    connect(credential="me:s3cr3t", **{"oauth2-server-uri": "v1/oauth/tokens"})
    auth = {"type": "oauth2", "oauth2": {"client_id": "me", "client_secret": "s3cr3t"}}
    auth["oauth2"] |= {"token_url": own["oauth2-server-uri"]}  # type: ignore[operator]
    connect(**dict(resolve("lake", {"auth": auth}, environment={}, files=[]).properties))
    assert len(grants.forms) == 3
    assert grants.forms[2] == {"grant_type": "client_credentials"}
    packed = base64.b64encode(b"me:s3cr3t").decode()
    sent = [e.headers.get("authorization") for e in server.exchanges if e.path.endswith("tokens")]
    assert sent[-1:] == [f"Basic {packed}"]


def test_a_name_and_a_password(server: Server, connect: Connect) -> None:
    packed = base64.b64encode("me:s3cr3t ä".encode()).decode()
    server.check = lambda request: request.headers.get("authorization") == f"Basic {packed}"
    given = {"auth": {"type": "basic", "basic": {"username": "me", "password": "s3cr3t ä"}}}
    properties = dict(resolve("lake", given, environment={}, files=[]).properties)
    catalog = connect(**properties)
    assert catalog.list_namespaces() == []
    assert "s3cr3t" not in repr(catalog)
    for wrong, error in [
        ({"auth.type": "basic"}, ConfigurationError),
        ({"auth.type": "magic"}, ConfigurationError),
        ({"auth.type": "entra"}, UnsupportedError),
        ({"auth.type": "custom"}, ConfigurationError),
        ({"auth.type": "custom", "auth.impl": "no.such.Class"}, ConfigurationError),
        ({"header.bad name": "x"}, ConfigurationError),
        ({"header.X": "a\r\nb"}, ConfigurationError),
        ({"uri": "http://me:s3cr3t@127.0.0.1"}, ConfigurationError),
        ({"ssl.cabundle": "/no/such"}, ConfigurationError),
    ]:
        with pytest.raises(error) as caught:
            connect(**wrong)
        assert "s3cr3t" not in str(caught.value)


class Manager:
    """A login of a user's own, as PyIceberg has them."""

    def __init__(self, word: str) -> None:
        self.word = word

    def auth_header(self) -> str:
        return f"Odd {self.word}"


def test_a_class_of_the_users(server: Server, connect: Connect) -> None:
    server.check = lambda request: request.headers.get("authorization") == "Odd yes"
    impl = {"auth.type": "custom", "auth.impl": f"{__name__}.Manager", "auth.custom.word": "yes"}
    assert connect(**impl).list_namespaces() == []


def test_headers_of_every_request(server: Server, connect: Connect) -> None:
    made_table(connect(**{"header.X-Team": "data"}))
    for each in server.exchanges:
        assert each.headers["x-team"] == "data"
        assert each.headers["x-iceberg-access-delegation"] == "vended-credentials"
    server.exchanges.clear()
    connect(**{"header.x-iceberg-access-delegation": "none"})
    assert server.exchanges[0].headers["x-iceberg-access-delegation"] == "none"


def test_what_the_server_configures(server: Server, connect: Connect) -> None:
    server.config["defaults"] = {"rest-page-size": "7", "s3.region": "eu", "flag": None}
    server.config["overrides"] |= {"warehouse": "real", "header.X-Late": "1"}
    catalog = connect(warehouse="mine", **{"s3.region": "us"})
    assert server.exchanges[0].query == "warehouse=mine"
    assert catalog.properties["warehouse"] == "real"
    assert catalog.properties["s3.region"] == "us"
    assert catalog.io.properties == {"s3.region": "us"}
    catalog.list_namespaces()
    assert "pageSize=7" in server.exchanges[-1].query
    assert server.exchanges[-1].headers["x-late"] == "1"
    server.faults = [Fault("GET", status=404)]
    with pytest.raises(ConfigurationError, match="configuration"):
        connect(warehouse="none")


def test_requests_signed_for_aws(server: Server, connect: Connect) -> None:
    keys = {"client.access-key-id": "AK", "client.secret-access-key": "s3cr3t-aws"}
    aws = {"rest.sigv4-enabled": "true", "rest.signing-region": "eu-x", **keys}
    catalog = connect(token="tok", **aws, **{"rest.signing-name": "glue"})
    catalog.create_namespace("a b")
    made_table(catalog, "a b.t ä")
    for each in server.exchanges:
        head = each.headers
        signed = head["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert head["original-authorization"] == "Bearer tok"
        assert {"host", "x-amz-date", "original-authorization"} <= set(signed)
        query = dict(part.split("=", 1) for part in each.query.split("&") if part)
        request = AWSRequest(
            method=each.method,
            url=f"{server.address}{each.path}",
            params={key: unquote(value) for key, value in query.items()},
            data=each.body,
            headers={name: head[name] for name in signed},
        )
        request.context["timestamp"] = head["x-amz-date"]
        signer = SigV4Auth(Credentials("AK", "s3cr3t-aws"), "glue", "eu-x")
        canonical = signer.canonical_request(request)
        assert (
            signer.signature(signer.string_to_sign(request, canonical), request)
            in head["authorization"]
        )
    assert "s3cr3t" not in repr(catalog)


def test_a_signed_login_is_renewed(server: Server, connect: Connect) -> None:
    grants = Grants(server)
    server.check = lambda r: r.headers.get("original-authorization", "")[7:] in grants.valid
    keys = {"client.access-key-id": "AK", "client.secret-access-key": "s3cr3t-aws"}
    aws = {"rest.sigv4-enabled": "true", "rest.signing-region": "eu-x", **keys}
    catalog = connect(credential="me:s3cr3t", **aws)
    for count in (1, 2, 3):
        assert catalog.list_namespaces() == []
        assert len(grants.forms) == count
        grants.valid.clear()


def test_a_run_shows_no_secret(
    server: Server, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    Grants(server)
    shown: list[str] = []
    with caplog.at_level(logging.DEBUG):
        catalog = connect(credential="me:s3cr3t-one", **{"header.X-Api-Key-Token": "s3cr3t-two"})
        server.table = {"config": {"token": "s3cr3t-three", "s3.secret-access-key": "s3cr3t-4"}}
        loaded = made_table(catalog)
        shown += [repr(catalog), repr(loaded), repr(loaded.io), repr(catalog.load_table("db.t"))]
        content = b'{"error": {"message": "s3cr3t-three t1-s3cr3t"}}'
        server.faults = [Fault(status=400, content=content)]
        with pytest.raises(FrazilError) as caught:
            set_properties(catalog, "db.t", a="1")
        shown += [repr(caught.value), repr(caught.value.__context__)]
    assert "s3cr3t" not in "\n".join(shown)
    ours = [each.getMessage() for each in caplog.records if not each.name.startswith("httpcore")]
    assert "s3cr3t" not in "\n".join(ours)
