"""FileIO: whole files, literal paths, typed errors, and nothing secret in them."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from frazil.errors import (
    AlreadyExistsError,
    ConfigurationError,
    MissingFileError,
    StorageError,
    UnsupportedError,
    ValidationError,
)
from frazil.storage.files import (
    FileIO,
    is_inside,
    local_path,
    normalize_location,
    redact,
    resolve_inside,
    same_location,
)
from frazil.storage.stores import local as local_store
from frazil.storage.stores.remote_options import AccessToken, storage_options

ODD_NAMES = ["a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"]


@pytest.fixture
def io() -> FileIO:
    return FileIO()


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("prefix", ["{}", "file://{}", "file:{}"])
def test_names_are_literal_in_every_spelling_of_a_path(
    io: FileIO, tmp_path: Path, name: str, prefix: str
) -> None:
    path = prefix.format(tmp_path) + f"/{name}/file {name}"
    io.create(path, b"x")
    assert (tmp_path / name / f"file {name}").read_bytes() == b"x"
    assert io.read(path) == b"x"
    assert [(found.path, found.size) for found in io.list(prefix.format(tmp_path))] == [(path, 1)]
    io.delete(path)
    assert not io.exists(path)


@pytest.mark.parametrize("name", [n for n in ODD_NAMES if n not in ("#1", "q?x")])
def test_remote_names_are_literal(io: FileIO, name: str) -> None:
    base = f"memory://bucket-{time.monotonic_ns()}"
    io.create(f"{base}/d/{name}", b"1")
    io.create(f"{base}/d/other", b"22")
    assert {found.path: found.size for found in io.list(f"{base}/d")} == {
        f"{base}/d/{name}": 1,
        f"{base}/d/other": 2,
    }
    assert io.delete_many([f"{base}/d/{name}", f"{base}/d/missing"]) == {}
    assert io.list_folder(f"{base}/d") == (("other", False),)


@pytest.mark.parametrize("base", ["local", "memory"])
def test_create_keeps_the_file_that_is_there(io: FileIO, tmp_path: Path, base: str) -> None:
    path = f"{tmp_path}/f" if base == "local" else f"memory://c{time.monotonic_ns()}/f"
    io.create(path, b"first")
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.create(path, b"second")
    with pytest.raises(AlreadyExistsError):
        io.write(path, b"second")
    assert io.read(path) == b"first"
    io.write(path, b"third", overwrite=True)
    assert io.read(path) == b"third"
    assert io.read_range(path, offset=1, length=3) == b"hir"
    with io.open_input(path) as stream:
        stream.seek(2)
        assert stream.read() == b"ird"


@pytest.mark.parametrize("base", ["local", "memory"])
@pytest.mark.parametrize("size", [0, 7, (2 << 20) + 1])
def test_an_upload_keeps_the_file_that_is_there(
    io: FileIO, tmp_path: Path, base: str, size: int
) -> None:
    target = f"{tmp_path}/t/u/f" if base == "local" else f"memory://c{time.monotonic_ns()}/u/f"
    source = tmp_path / "a%20 b"
    source.write_bytes(os.urandom(size))
    io.upload(str(source), target)
    assert io.read(target) == source.read_bytes()
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.upload(str(source), target)
    if base == "local":
        assert os.listdir(tmp_path / "t/u") == ["f"]
    with pytest.raises(MissingFileError):
        io.upload(f"{tmp_path}/none", f"{target}2")
    assert not io.exists(f"{target}2")


def test_one_of_many_creators_wins(io: FileIO, tmp_path: Path) -> None:
    won: list[int] = []
    gate = threading.Barrier(8)

    def creator(number: int) -> None:
        gate.wait()
        try:
            io.create(f"{tmp_path}/f", str(number).encode() * 10_000)
        except AlreadyExistsError:
            return
        won.append(number)

    threads = [threading.Thread(target=creator, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert io.read(f"{tmp_path}/f") == str(won[0]).encode() * 10_000
    assert os.listdir(tmp_path) == ["f"]


def test_a_killed_writer_leaves_no_half_file(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "from frazil.storage.stores import local as local_store\n"
        "real = os.fsync\n"
        "os.fsync = lambda fd: os.kill(os.getpid(), 9)\n"
        f"local_store.create({str(tmp_path / 'f')!r}, b'x' * 100000)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], check=False)
    assert result.returncode == -9
    assert not (tmp_path / "f").exists()


def test_create_works_where_there_are_no_hard_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    local_store.create(str(tmp_path / "f"), b"x")
    with pytest.raises(FileExistsError):
        local_store.create(str(tmp_path / "f"), b"y")
    local_store.rename_if_absent(str(tmp_path / "f"), str(tmp_path / "g"))
    assert (tmp_path / "g").read_bytes() == b"x"
    local_store.upload(str(tmp_path / "g"), str(tmp_path / "h"))
    assert (tmp_path / "h").read_bytes() == b"x"
    assert sorted(os.listdir(tmp_path)) == ["g", "h"]


@pytest.mark.parametrize("base", ["local", "memory"])
def test_missing_files_are_typed(io: FileIO, tmp_path: Path, base: str) -> None:
    path = f"{tmp_path}/no" if base == "local" else "memory://none/no"
    for call in (io.read, io.size, io.delete, io.open_input):
        with pytest.raises(MissingFileError, match="no"):
            call(path)
    assert not io.exists(path)
    assert list(io.list(path)) == []
    assert io.delete_many([path]) == {}


@pytest.mark.parametrize(
    "path", ["\x00", "a\x00b", "x" * 5000, "/" + "y" * 300 + "/z", "\ud800"], ids=range(5)
)
def test_unusable_names_are_storage_errors(io: FileIO, tmp_path: Path, path: str) -> None:
    for call in (io.read, io.exists, io.size, lambda p: io.create(p, b""), io.delete):
        with pytest.raises(StorageError):
            call(f"{tmp_path}/{path}")


def test_reading_a_folder_is_a_storage_error(io: FileIO, tmp_path: Path) -> None:
    for call in (io.read, io.size):
        with pytest.raises(StorageError, match=str(tmp_path)):
            call(str(tmp_path))


def test_deleting_reports_failures_by_path(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").write_bytes(b"")
    failures = io.delete_many([f"{tmp_path}/d", f"{tmp_path}/f", f"{tmp_path}/gone"])
    assert list(failures) == [f"{tmp_path}/d"]
    assert isinstance(failures[f"{tmp_path}/d"], StorageError)
    assert not (tmp_path / "f").exists()


def test_renames(io: FileIO, tmp_path: Path) -> None:
    io.create(f"{tmp_path}/a", b"a")
    io.create(f"{tmp_path}/b", b"b")
    with pytest.raises(AlreadyExistsError, match=f"{tmp_path}/b exists"):
        io.rename_if_absent(f"{tmp_path}/a", f"file://{tmp_path}/b")
    io.rename_if_absent(f"{tmp_path}/a", f"{tmp_path}/c")
    io.move(f"{tmp_path}/c", f"{tmp_path}/b")
    assert [(f.path, f.size) for f in io.list(str(tmp_path))] == [(f"{tmp_path}/b", 1)]
    assert io.read(f"{tmp_path}/b") == b"a"
    with pytest.raises(StorageError, match="stores differ"):
        io.move(f"{tmp_path}/b", "memory://x/b")


def test_hadoop_checksums_do_not_outlive_their_file(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / ".f.crc").write_bytes(b"crc of old")
    io.write(f"{tmp_path}/f", b"new", overwrite=True)
    assert os.listdir(tmp_path) == ["f"]


def test_listing_tells_times_and_skips_linked_folders(io: FileIO, tmp_path: Path) -> None:
    io.create(f"{tmp_path}/d/.hidden", b"12")
    (tmp_path / "d" / "loop").symlink_to(tmp_path)
    (found,) = io.list(f"file://{tmp_path}/d/")
    assert found.path == f"file://{tmp_path}/d/.hidden"
    assert abs(found.modified_ms - time.time() * 1000) < 60_000


def test_a_lock_is_of_the_folder_that_is_there(io: FileIO, tmp_path: Path) -> None:
    """Who waited for the lock of a folder that went meanwhile holds no lock."""
    folder = f"{tmp_path}/f"
    io.make_folder(folder)
    outcomes: list[str] = []

    def wait() -> None:
        try:
            with io.lock(folder):
                outcomes.append("locked")
        except MissingFileError:
            outcomes.append("gone")

    for makes_anew, expected in ((False, "gone"), (True, "locked")):
        io.make_folder(folder)
        with io.lock(folder):
            waiting = threading.Thread(target=wait)
            waiting.start()
            time.sleep(0.1)
            io.move_folder(folder, f"{tmp_path}/{expected}")
            if makes_anew:
                io.make_folder(folder)
        waiting.join()
        assert outcomes.pop() == expected


def test_one_place_by_several_names(io: FileIO, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    azure = "c@acc.dfs.core.windows.net/t"
    same = [
        (f"{tmp_path}/real/t", f"file://{tmp_path}/link/t/"),
        ("s3://b/t", "s3a://b/t/"),
        ("gs://b/t", "gcs://b/t"),
        (f"abfss://{azure}", f"wasbs://{azure.replace('dfs', 'blob')}"),
    ]
    others = [
        (f"{tmp_path}/real/t", f"{tmp_path}/real/u"),
        ("s3://b/t", "s3://c/t"),
        ("s3://b/t", "s3://b/T"),
        ("s3://b/t", "gs://b/t"),
        ("s3://b/t", "/b/t"),
        (f"abfss://{azure}", f"abfss://{azure.replace('acc', 'other')}"),
        ("hdfs://a/t", "hdfs://b/t"),
    ]
    assert [pair for pair in same if not io.is_same_place(*pair)] == []
    assert [pair for pair in others if io.is_same_place(*pair)] == []


def test_a_path_of_no_driver_keeps_no_other_from_being_deleted(io: FileIO, tmp_path: Path) -> None:
    io.create(f"{tmp_path}/f", b"")
    failures = io.delete_many(["oss://bucket/x", "file://otherhost/x", f"{tmp_path}/f"])
    assert sorted(failures) == ["file://otherhost/x", "oss://bucket/x"]
    assert not io.exists(f"{tmp_path}/f")


def test_the_lock_keeps_others_out(io: FileIO, tmp_path: Path) -> None:
    """Read, add, write: without the lock, additions are lost."""
    counter = tmp_path / "counter"
    counter.write_text("0")

    def add() -> None:
        own = FileIO()
        for _ in range(100):
            with own.lock(str(tmp_path)):
                counter.write_text(str(int(counter.read_text()) + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_text() == "400"
    with pytest.raises(MissingFileError), io.lock(f"{tmp_path}/none"):
        pass


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


@pytest.mark.parametrize(
    "relative", ["", "..", "../x", "a/../../x", "/etc/passwd", "file:/x", "s3://b/x", "a\x00", "."]
)
def test_escapes_are_refused(relative: str) -> None:
    with pytest.raises(ValidationError):
        resolve_inside("/base", relative)


def test_paths_inside() -> None:
    assert resolve_inside("s3://b/t/", "a/./b c%20") == "s3://b/t/a/b c%20"
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


def test_it_travels_to_other_processes(tmp_path: Path) -> None:
    io = FileIO({"s3.region": "x"})
    io.create("memory://p/f", b"")
    other = pickle.loads(pickle.dumps(io))
    other.create(f"{tmp_path}/f", b"1")
    assert other.properties == {"s3.region": "x"}


def test_a_missing_driver_is_named() -> None:
    script = (
        "import sys\n"
        "from frazil.errors import ConfigurationError\n"
        "from frazil.storage.files import FileIO\n"
        "sys.modules.update(dict.fromkeys(('s3fs', 'gcsfs', 'adlfs')))\n"
        "for scheme in ('s3', 's3a', 'gs', 'abfss'):\n"
        "    try:\n"
        "        FileIO().read(f'{scheme}://bucket/x')\n"
        "    except ConfigurationError as error:\n"
        "        print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert result.stdout.splitlines() == [
        f"no driver for {scheme}:// is installed: install frazil[{extra}]"
        for scheme, extra in (("s3", "s3"), ("s3a", "s3"), ("gs", "gcs"), ("abfss", "abfs"))
    ]


def test_an_unknown_scheme_is_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="nosuch"):
        FileIO().read("nosuch://bucket/x")


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
def test_a_name_that_the_driver_of_azure_reads_as_a_version_is_refused(
    io: FileIO, scheme: str
) -> None:
    for call in (io.read, io.exists, io.delete, lambda name: io.create(name, b"2")):
        with pytest.raises(UnsupportedError, match="versionid"):
            call(f"{scheme}://c@a.dfs.core.windows.net/d/q?versionid=1")


def test_another_store_is_no_place_to_rename_to(io: FileIO) -> None:
    for target in ("memory://x/f", "gs://c/f", "abfss://c@two.dfs.core.windows.net/f"):
        with pytest.raises(StorageError, match="stores differ"):
            io.move("abfss://c@one.dfs.core.windows.net/f", target)
