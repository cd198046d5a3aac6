"""Remote signing: a server signs the requests for files on S3, whose keys nobody else has."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from catalog_cases import made_table, opened, properties_of

from frazil.catalog.rest.catalog import RestCatalog
from frazil.catalog.rest.files.signing import SignedFileIO
from frazil.errors import AccessDeniedError, ConfigurationError, StorageError, UnsupportedError
from open_api import open_api_text
from requirements_catalog import RequirementsCatalog
from rest_server import Server, served
from s3_server import S3Store, s3_server
from s3_signatures import SignaturesChecked, signed_by

SIGN = "POST namespaces/{ns}/tables/{name}/sign"
ODD = "data/a b/50%25+x=y&z/日本.bin"


@dataclass
class Signing:
    """A server that signs, over a store that checks.

    Attributes:
        server: the catalog's.
        checked: the store's check.
        s3: the store.
        asked: the requests to sign.
    """

    server: Server
    checked: SignaturesChecked
    s3: S3Store
    asked: list[dict[str, Any]]


@pytest.fixture
def signing(tmp_path: Path) -> Iterator[Signing]:
    checked = SignaturesChecked({})
    with s3_server(checked.around) as s3:
        own = s3.properties["s3.access-key-id"], s3.properties["s3.secret-access-key"]
        checked.keys = {own[0]: (own[1], None), "AKSIGNER": ("the-signers-secret", None)}
        bucket = s3.new_bucket("signed")
        place = {"warehouse": f"{bucket}/wh", **s3.properties}
        behind = RequirementsCatalog("behind", {**properties_of("sqlite", tmp_path), **place})
        server = Server(behind)
        asked: list[dict[str, Any]] = []
        answer = signed_by("AKSIGNER", "the-signers-secret")

        def sign(request: Any, ns: Any, name: str) -> Any:
            asked.append(request.scope["content"])
            return answer(asked[-1])

        server.routes[SIGN] = sign
        address = {"s3.endpoint": s3.properties["s3.endpoint"], "s3.region": "us-east-1"}
        server.table = {"config": {**address, "s3.remote-signing-enabled": "true"}}
        with served(server):
            yield Signing(server, checked, s3, asked)
        behind.close()


def connected(signing: Signing, **properties: str) -> RestCatalog:
    catalog = opened({"uri": signing.server.address, **properties})
    assert isinstance(catalog, RestCatalog)
    return catalog


def check_protocol(asked: list[dict[str, Any]]) -> None:
    """Each request to sign is as the specification's schema wants it."""
    components = yaml.load(open_api_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))[
        "components"
    ]
    schema = {"$ref": "#/components/schemas/RemoteSignRequest", "components": components}
    for each in asked:
        jsonschema.validate(each, schema)


def test_files_are_read_and_written_by_signatures(signing: Signing) -> None:
    catalog = connected(signing)
    table = made_table(catalog)
    io, location = table.io, table.metadata.location
    assert isinstance(io, SignedFileIO)
    signing.checked.used.clear()
    path = f"{location}/{ODD}"
    io.create(path, b"0123456789")
    assert io.read(path) == b"0123456789"
    assert io.read_range(path, offset=3, length=4) == b"3456"
    with io.open_input(path) as stream:
        assert stream.read() == b"0123456789"
    assert [each.path for each in io.list(f"{location}/data")] == [path]
    assert io.exists(path)
    sent = pickle.loads(pickle.dumps(io))
    assert sent.read(path) == b"0123456789"
    assert "secret" not in repr(io)
    io.write(path, b"anew", overwrite=True)
    assert io.read(path) == b"anew"
    large = bytes(11 << 20)
    io.create(f"{location}/data/large", large)
    assert io.size(f"{location}/data/large") == len(large)
    io.delete_folder(f"{location}/data")
    assert not io.exists(path)
    assert {key for key, _ in signing.checked.used} == {"AKSIGNER"}
    assert {method for _, method in signing.checked.used} >= {"PUT", "GET", "HEAD", "DELETE"} or {
        method for _, method in signing.checked.used
    } >= {"PUT", "GET", "HEAD", "POST"}
    check_protocol(signing.asked)
    assert all(
        ("body" in each) == ("?delete" in each["uri"] and each["method"] == "POST")
        for each in signing.asked
    )
    catalog.close()


def test_old_names_of_the_signers_place(signing: Signing) -> None:
    """`s3.signer.uri` and `s3.signer.endpoint`, relative and absolute."""
    paths: list[str] = []
    answer = signed_by("AKSIGNER", "the-signers-secret")

    def sign(request: Any) -> Any:
        paths.append(request.url.path)
        return answer(request.scope["content"])

    signing.server.prefix = ""
    signing.server.config["overrides"] = {}
    signing.server.routes["POST aws/s3/sign"] = sign
    signing.server.routes["POST elsewhere"] = sign
    del signing.server.routes[SIGN]
    config, address = signing.server.table["config"], signing.server.address
    for told, path in [
        ({}, "/v1/aws/s3/sign"),
        ({"s3.signer.uri": address, "s3.signer.endpoint": "v1/elsewhere"}, "/v1/elsewhere"),
        ({"signer.endpoint": f"{address}/v1/elsewhere"}, "/v1/elsewhere"),
    ]:
        signing.server.table = {"config": {**config, **told}}
        catalog = connected(signing)
        if not catalog.namespace_exists("db"):
            made_table(catalog)
        io = catalog.load_table("db.t").io
        paths.clear()
        assert not io.exists("s3://signed/wh/nothing")
        assert set(paths) == {path}
        catalog.close()


@pytest.mark.check
def test_what_the_server_wants_with_each_request(signing: Signing) -> None:
    config = {"properties": {"ticket": "t-1"}, "headers": {"X-Signer": ["a", "b"]}}
    signing.server.table |= {"remote-signing-config": config}
    signing.server.table["config"]["token"] = "the-tables-own"
    catalog = connected(signing)
    io = made_table(catalog).io
    io.exists("s3://signed/x")
    sent = [each for each in signing.server.exchanges if each.path.endswith("/sign")]
    assert sent
    assert {each.headers["x-signer"] for each in sent} == {"a, b"}
    assert {each.headers["authorization"] for each in sent} == {"Bearer the-tables-own"}
    assert all(each["properties"] == {"ticket": "t-1"} for each in signing.asked)
    check_protocol(signing.asked)
    catalog.close()


def test_signatures_that_may_be_kept_are(signing: Signing) -> None:
    from rest_server import _json

    answer = signed_by("AKSIGNER", "the-signers-secret")
    kept = {"cache-control": "private"}

    def sign(request: Any, ns: Any, name: str) -> Any:
        signing.asked.append(request.scope["content"])
        return _json(answer(signing.asked[-1]), headers=kept)

    signing.server.routes[SIGN] = sign
    catalog = connected(signing)
    table = made_table(catalog)
    path = f"{table.metadata.location}/x"
    table.io.create(path, b"0123456789")
    signing.asked.clear()
    for _ in range(3):
        assert table.io.read_range(path, offset=2, length=3) == b"234"
    assert table.io.read_range(path, offset=5, length=3) == b"567"
    assert len(signing.asked) == 2
    kept.clear()
    table.io.write(path, b"anew", overwrite=True)
    assert table.io.read(path) == b"anew"
    catalog.close()


def test_refusals_of_the_signer(signing: Signing) -> None:
    catalog = connected(signing)
    io = made_table(catalog).io

    def refuse(request: Any, ns: Any, name: str) -> Any:
        from rest_server import _error

        return _error(403, "ForbiddenException", "not this file")

    signing.server.routes[SIGN] = refuse
    with pytest.raises(AccessDeniedError, match="sign a request for the files of the table"):
        io.read("s3://signed/x")
    with pytest.raises(AccessDeniedError):
        io.create("s3://signed/x", b"x")
    broken: list[Any] = [{"uri": 1}, {"uri": "s3://x", "headers": {}}, []]
    signing.server.routes[SIGN] = lambda request, ns, name: broken[0]
    while broken:
        with pytest.raises(StorageError, match="server answered"):
            io.read("s3://signed/x")
        broken.pop(0)
    assert signing.s3.keys("signed") == [
        key for key in signing.s3.keys("signed") if key.startswith("wh/")
    ]
    catalog.close()


def test_places_that_are_refused(signing: Signing) -> None:
    made_table(connected(signing))
    config = signing.server.table["config"]
    signing.server.etags = False
    for told, error in [
        ({"config": {**config, "s3.signer.uri": "ftp://x"}}, ConfigurationError),
        ({"config": config, "remote-signing-config": {"properties": []}}, StorageError),
    ]:
        signing.server.table = told
        with pytest.raises(error):
            connected(signing).load_table("db.t")


def test_executors_cannot_log_in_with_sigv4(signing: Signing) -> None:
    keys = {"client.region": "r", "rest.access-key-id": "a", "rest.secret-access-key": "b"}
    catalog = connected(signing, **{"rest.sigv4-enabled": "true", **keys})
    io = made_table(catalog).io
    with pytest.raises(UnsupportedError, match="SigV4"):
        pickle.dumps(io)
    catalog.close()


def test_executors_get_what_reaches_the_server_and_no_secret(signing: Signing) -> None:
    properties = {
        "token": "a-token", "credential": "me:the-secret-word", "header.X-Word": "the-secret-word",
        "rest.client.connection-timeout-ms": "4711",
    }  # fmt: skip
    catalog = connected(signing, **properties)
    pickled = pickle.dumps(made_table(catalog).io)
    catalog.close()
    assert b"4711" in pickled
    assert b"the-secret-word" not in pickled
