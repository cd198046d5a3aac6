"""Spellings of locations, paths that stay inside a folder, and texts without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import ConfigurationError, MissingFileError, ValidationError
from frazil.storage.files import (
    FileIO,
    is_inside,
    local_path,
    normalize_location,
    redact,
    same_location,
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/a/b/", "file:///a/b"),
        ("file:/a/b", "file:///a/b"),
        ("file:///a//b/../c", "file:///a/c"),
        ("file://localhost/a", "file:///a"),
        ("FILE:///a", "file:///a"),
        ("//a", "file:///a"),
        ("/", "file:///"),
        ("s3://b/p%20q//x/", "s3://b/p%20q//x"),
        ("file:///a b%20", "file:///a b%20"),
    ],
)
def test_locations_have_one_spelling(given: str, expected: str) -> None:
    assert normalize_location(given) == expected
    assert same_location(given, expected)


def test_relative_locations_are_of_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert normalize_location("wh") == f"file://{tmp_path}/wh"
    with pytest.raises(ConfigurationError):
        normalize_location(" ")


def test_a_foreign_host_is_no_local_file() -> None:
    with pytest.raises(ValidationError, match="server"):
        local_path("file://server/share")


def test_paths_inside() -> None:
    assert is_inside("file:///t", "/t/a")
    assert not is_inside("/t", "/tt/a")
    assert not is_inside("s3://b/t", "s3://b/t/../x")


SECRETS = {
    "s3.access-key-id": "AKIAEXAMPLE",
    "s3.secret-access-key": "hush-hush",
    "gcs.oauth2.token": "ya29.token",
    "adls.connection-string": "AccountKey=zzz",
    "adls.sas-token.acc.dfs.core.windows.net": "sv=sig",
    "uri": "postgresql://me:pa55@host/db",
}


def test_secrets_do_not_show() -> None:
    io = FileIO(SECRETS)
    shown = repr(io) + redact("x hush-hush y https://u:pa55@h/p", SECRETS)
    for secret in ("AKIAEXAMPLE", "hush-hush", "ya29", "zzz", "sig", "pa55"):
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        "GET /tokeninfo?access_token=hush-hush HTTP/1.1",
        "client_secret=hush-hush&x=1",
        "{'refresh_token': 'hush-hush'}",
        "AccountName=a;AccountKey=hush-hush==;EndpointSuffix=x",
        "SharedAccessSignature=hush-hush&sig=hush-hush",
        "https://h/c?sv=1&sig=hush-hush%3D",
        "Authorization: Bearer hush-hush",
        "{'Authorization': 'Bearer hush-hush'}",
    ],
)
def test_credentials_do_not_show_whatever_the_properties(text: str) -> None:
    assert "hush" not in redact(text)


@pytest.mark.parametrize(
    "shown",
    [
        "hush/hush+of=tests",
        "hush%2Fhush%2Bof%3Dtests",
        "hush%2fhush%2bof%3dtests",
        "hush/hush%2Bof%3Dtests",
        "hush/hush%2Bof=tests",
    ],
)
@pytest.mark.parametrize(
    "properties",
    [
        {"gcs.oauth2.token": "hush/hush+of=tests"},
        {"adls.connection-string": "AccountName=a;AccountKey=hush/hush+of=tests;X=y"},
        {"adls.sas-token": "?sv=1&sig=hush%2Fhush%2Bof%3Dtests"},
        {"gcs.oauth2.token": '{"client_secret": "hush/hush+of=tests"}'},
    ],
)
def test_a_secret_does_not_show_in_any_spelling(properties: dict[str, str], shown: str) -> None:
    assert "hush" not in redact(f"at {shown} it failed", properties)


@pytest.mark.parametrize(
    "text", ["the token is over", "design=x", "s3://b/secrets/f", "Authorization header is wrong"]
)
def test_words_are_no_credentials(text: str) -> None:
    assert redact(text) == text


def test_errors_do_not_show_secrets(tmp_path: Path) -> None:
    io = FileIO(SECRETS)
    with pytest.raises(MissingFileError) as caught:
        io.read(f"{tmp_path}/hush-hush")
    assert "hush-hush" not in str(caught.value)
    assert caught.value.__cause__ is None
