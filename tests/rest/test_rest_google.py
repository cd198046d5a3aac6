"""Tokens of Google's: a service account asks for one by a signed note, before the last one ends."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from rest_cases import ask_together

from frazil.catalog.rest.catalog import RestCatalog
from frazil.errors import AccessDeniedError, ConfigurationError, StorageError
from rest_server import Server

Connect = Callable[..., RestCatalog]
JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
EMAIL = "lake@project.iam.gserviceaccount.com"


class Google:
    """A server of tokens that checks notes by the account's public key (RFC 7523)."""

    def __init__(self, server: Server, key: rsa.RSAPrivateKey, lives: int = 3600) -> None:
        self.claims: list[dict[str, Any]] = []
        self.lives = lives
        self.valid: set[str] = set()
        self._key = key.public_key()
        server.grants = self.grant
        server.check = lambda r: r.headers.get("authorization", "")[7:] in self.valid

    def grant(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        assert form["grant_type"] == JWT
        head, claims, signature = form["assertion"].split(".")
        self._key.verify(
            unpacked(signature), f"{head}.{claims}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
        self.claims.append(json.loads(unpacked(claims)))
        if self.lives < 0:
            return 400, {"error": "invalid_grant", "error_description": "s3cr3t account"}
        token = f"g{len(self.claims)}-s3cr3t"
        self.valid.add(token)
        return 200, {"access_token": token, "token_type": "Bearer", "expires_in": self.lives}


def unpacked(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def account(tmp_path: Path, server: Server, key: rsa.RSAPrivateKey) -> Path:
    """The file of a service account whose tokens our server gives."""
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    path = tmp_path / "account.json"
    path.write_text(
        json.dumps(
            {
                "type": "service_account",
                "client_email": EMAIL,
                "private_key": text,
                "private_key_id": "1",
                "token_uri": f"{server.address}/v1/oauth/tokens",
            }
        )
    )
    return path


def test_a_service_account(
    server: Server, connect: Connect, account: Path, key: rsa.RSAPrivateKey
) -> None:
    google = Google(server, key)
    named = {"auth.type": "google", "auth.google.credentials-path": str(account)}
    catalog = connect(**named)
    assert catalog.list_namespaces() == []
    assert "s3cr3t" not in repr(catalog)
    [claims] = google.claims
    assert claims["iss"] == EMAIL
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    connect(**named, **{"auth.google.scopes": "a, b"})
    assert google.claims[-1]["scope"] == "a b"
    # The server takes back a token before its time.
    google.valid.clear()
    asked = len(google.claims)
    assert catalog.list_namespaces() == []
    assert len(google.claims) == asked + 1
    # It takes back one that many threads have sent.
    ask_together(server, catalog, google.valid)
    assert len(google.claims) == asked + 2


def test_a_token_is_had_anew_before_it_ends(
    server: Server, connect: Connect, account: Path, key: rsa.RSAPrivateKey
) -> None:
    """Google's library takes one of a minute for ended at once."""
    google = Google(server, key, lives=60)
    named = {"auth.type": "google", "auth.google.credentials-path": str(account)}
    catalog = connect(**named)
    asked = len(google.claims)
    assert catalog.list_namespaces() == []
    assert len(google.claims) > asked


def test_credentials_come_from_the_environment(
    server: Server,
    connect: Connect,
    account: Path,
    key: rsa.RSAPrivateKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    google = Google(server, key)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(account))
    assert connect(**{"auth.type": "google"}).list_namespaces() == []
    assert google.claims[0]["iss"] == EMAIL


def test_no_token(
    server: Server, connect: Connect, account: Path, key: rsa.RSAPrivateKey, tmp_path: Path
) -> None:
    named = {"auth.type": "google", "auth.google.credentials-path": str(account)}
    Google(server, key, lives=-1)
    with pytest.raises(AccessDeniedError, match="Google gave no token") as caught:
        connect(**named)
    assert "s3cr3t" not in str(caught.value)
    stated = json.loads(account.read_text())
    account.write_text(json.dumps({**stated, "token_uri": "http://127.0.0.1:9/token"}))
    with pytest.raises(StorageError, match="does not answer"):
        connect(**named)
    for text in ("no JSON", '{"type": "service_account"}', "[]"):
        account.write_text(text)
        with pytest.raises(ConfigurationError) as refused:
            connect(**named)
        assert "account.json" in str(refused.value)
    account.write_text('{"type": "external_account", "credential_source": {"url": "http://x"}}')
    with pytest.raises(ConfigurationError, match="external_account"):
        connect(**named)
    with pytest.raises(ConfigurationError, match="missing"):
        connect(**{**named, "auth.google.credentials-path": str(tmp_path / "missing.json")})
