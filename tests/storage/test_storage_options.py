"""Settings of stores by PyIceberg's names, as the drivers take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from frazil.errors import ConfigurationError, UnsupportedError
from frazil.storage.files import FileIO
from frazil.storage.stores.remote_options import AccessToken, storage_options


def test_options_follow_pyiceberg() -> None:
    assert storage_options(
        "s3a",
        {
            "s3.endpoint": "http://minio:9000",
            "s3.access-key-id": "a",
            "s3.secret-access-key": "b",
            "s3.session-token": "c",
            "s3.region": "eu",
            "s3.connect-timeout": "2",
            "s3.force-virtual-addressing": "true",
        },
    ) == {
        "anon": False,
        "client_kwargs": {
            "endpoint_url": "http://minio:9000",
            "aws_access_key_id": "a",
            "aws_secret_access_key": "b",
            "aws_session_token": "c",
            "region_name": "eu",
        },
        "config_kwargs": {"connect_timeout": 2.0, "s3": {"addressing_style": "virtual"}},
    }
    with pytest.raises(ConfigurationError):
        storage_options("s3", {"s3.connect-timeout": "soon"})


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (
            {"gcs.project-id": "p", "gcs.oauth2.token": "t"},
            {"project": "p", "token": AccessToken("t")},
        ),
        (
            {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1700000000000"},
            {"token": AccessToken("t", 1_700_000_000_000)},
        ),
        ({"gcs.oauth2.token": "anon"}, {"token": "anon"}),
        ({"gcs.oauth2.token": ' {"type": "x"}'}, {"token": {"type": "x"}}),
        ({"gcs.service.host": "http://h:1/"}, {"endpoint_url": "http://h:1"}),
        ({"gcs.service.host": "http://h:1"}, {"endpoint_url": "http://h:1"}),
        ({"gcs.session-kwargs": '{"a": 1}'}, {"session_kwargs": {"a": 1}}),
    ],
)
def test_options_of_google(properties: dict[str, str], expected: dict[str, object]) -> None:
    assert storage_options("gs", properties) == expected


def test_the_key_file_of_google_is_named_as_it_is(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("{}")
    assert storage_options("gs", {"gcs.oauth2.token": str(key)}) == {"token": str(key)}


@pytest.mark.parametrize(
    "properties",
    [
        {"gcs.oauth2.token": "/no/such/hush-hush.json"},
        {"gcs.oauth2.token": "{hush-hush"},
        {"gcs.oauth2.token": "hush-hush", "gcs.oauth2.token-expires-at": "soon"},
        {"gcs.session-kwargs": "[]"},
        {"gcs.cache-timeout": "soon"},
    ],
)
def test_malformed_options_of_google_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"gcs\.") as caught:
        storage_options("gs", properties)
    assert "hush" not in str(caught.value)


TWO_SAS = {"adls.sas-token.one.dfs.core.windows.net": "s1", "adls.sas-token.two": "s2"}


@pytest.mark.parametrize(
    ("properties", "host", "expected"),
    [
        (
            {"adls.sas-token.acc.dfs.core.windows.net": "s"},
            "",
            {"account_name": "acc", "sas_token": "s"},
        ),
        ({}, "two.dfs.core.windows.net", {"account_name": "two"}),
        (TWO_SAS, "one.dfs.core.windows.net", {"account_name": "one", "sas_token": "s1"}),
        (TWO_SAS, "two.blob.core.windows.net", {"account_name": "two", "sas_token": "s2"}),
        (TWO_SAS, "three.dfs.core.windows.net", {"account_name": "three"}),
        (
            {**TWO_SAS, "adls.account-name": "one"},
            "two.dfs.core.windows.net",
            {"account_name": "two", "sas_token": "s2"},
        ),
        (
            {**TWO_SAS, "adls.account-name": "two"},
            "",
            {"account_name": "two", "sas_token": "s2"},
        ),
        (
            {"adls.account-name": "one", "adls.account-key": "k", "adls.account-host": "h"},
            "two.dfs.core.windows.net",
            {"account_name": "two"},
        ),
        (
            {"adls.account-name": "one", "adls.account-key": "k", "adls.account-host": "h"},
            "one.dfs.core.windows.net",
            {"account_name": "one", "account_key": "k", "account_host": "h"},
        ),
        (
            {"adls.account-key": "k"},
            "two.dfs.core.windows.net",
            {"account_name": "two", "account_key": "k"},
        ),
        (
            {"adls.connection-string": "AccountName=one;AccountKey=k"},
            "two.dfs.core.windows.net",
            {"account_name": "two"},
        ),
        (
            {"adls.connection-string": "AccountName=one;AccountKey=k"},
            "",
            {"account_name": "one", "connection_string": "AccountName=one;AccountKey=k"},
        ),
        (
            {"adls.connection-string": "BlobEndpoint=http://h;SharedAccessSignature=s"},
            "",
            {"connection_string": "BlobEndpoint=http://h;SharedAccessSignature=s"},
        ),
        (
            {},
            "two.dfs.core.chinacloudapi.cn",
            {"account_name": "two", "account_host": "two.blob.core.chinacloudapi.cn"},
        ),
        ({}, "two.dfs.core.example.com", {"account_name": "two"}),
    ],
)
def test_the_account_that_an_azure_path_names_decides(
    properties: dict[str, str], host: str, expected: dict[str, str]
) -> None:
    assert storage_options("abfss", properties, host) == expected


def test_an_azure_path_without_account_is_refused_where_there_are_several() -> None:
    with pytest.raises(ConfigurationError, match="one, two"):
        storage_options("az", TWO_SAS)


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "wasb", "wasbs", "ABFSS"])
def test_a_name_that_the_driver_of_azure_reads_as_a_version_is_refused(scheme: str) -> None:
    io = FileIO()
    for call in (io.read, io.exists, io.delete, lambda name: io.create(name, b"2")):
        with pytest.raises(UnsupportedError, match="versionid"):
            call(f"{scheme}://c@a.dfs.core.windows.net/d/q?versionid=1")
