"""FileIO against Azurite, Microsoft's emulator of Azure's blob service."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from emulators import free_port, in_a_forked_child, program, running, winners

from frazil.catalog.filesystem import FilesystemCatalog
from frazil.errors import (
    AlreadyExistsError,
    MissingFileError,
    NamespaceNotEmptyError,
    StorageError,
    UnsupportedError,
)
from frazil.storage.files import FileIO

ACCOUNT = "devstoreaccount1"
# The emulator's key, the same everywhere and published with it.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ODD_NAMES = [
    *("a b", "a%20b", "a%2Fb", "[x]", "{y}", "k=v", "ü", "#1", "q?x", "*", "~", "a:b", "a'b"),
    *("a+b", "a&b", "x?versionId=1", "a@b"),
]


@dataclass(frozen=True)
class Azure:
    """The emulator.

    Attributes:
        client: Microsoft's, to look at what lies there without this library.
        properties: what a FileIO needs to reach it.
    """

    client: Any
    properties: dict[str, str]

    def new_container(self) -> str:
        """Make a container and return its URI."""
        name = f"c{uuid.uuid4().hex}"
        self.client.create_container(name)
        return f"abfss://{name}@{ACCOUNT}.dfs.core.windows.net"

    def names(self, container: str) -> list[str]:
        """Every blob's name in a container, folder markers too."""
        return sorted(blob.name for blob in self.of(container).list_blobs())

    def of(self, container: str) -> Any:
        """Microsoft's client of the container of this URI."""
        return self.client.get_container_client(container.partition("://")[2].partition("@")[0])


@pytest.fixture(scope="module")
def azure() -> Iterator[Azure]:
    pytest.importorskip("adlfs", reason="adlfs is not installed: install frazil[abfs]")
    from azure.storage.blob import BlobServiceClient

    azurite = program("FRAZIL_AZURITE", "azurite-blob", "npm install -g azurite")
    port = free_port()
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};"
        f"BlobEndpoint=http://127.0.0.1:{port}/{ACCOUNT};"
    )
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--silent"]
    command = [azurite, "--blobHost", "127.0.0.1", "--blobPort", str(port), *options]
    with running(command, port), BlobServiceClient.from_connection_string(connection) as client:
        yield Azure(client, {"adls.connection-string": connection})


@pytest.fixture
def container(azure: Azure) -> str:
    return azure.new_container()


@pytest.fixture
def io(azure: Azure) -> FileIO:
    return FileIO(azure.properties)


def put(io: FileIO, base: str, names: list[str]) -> None:
    """Make files, and folders for the names that end in a slash."""
    for name in names:
        if name.endswith("/"):
            io.make_folder(f"{base}/{name}")
        else:
            io.create(f"{base}/{name}", b"1")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_are_literal(azure: Azure, io: FileIO, container: str, name: str) -> None:
    path = f"{container}/d/{name}/file {name}"
    io.create(path, b"1")
    assert azure.names(container) == [path.removeprefix(f"{container}/")]
    assert io.read(path) == b"1"
    assert [(found.path, found.size) for found in io.list(f"{container}/d")] == [(path, 1)]
    assert io.list_folder(f"{container}/d/{name}".rstrip("/")) or "/" in name
    io.delete(path)
    assert not io.exists(path)


def test_a_name_that_the_driver_reads_as_a_version_is_refused(
    azure: Azure, io: FileIO, container: str
) -> None:
    path = f"{container}/d/x"
    io.create(path, b"precious")
    for call in (io.read, io.delete, lambda name: io.write(name, b"2", overwrite=True)):
        with pytest.raises(UnsupportedError, match="versionid"):
            call(f"{path}?versionid=2020")
    assert io.read(path) == b"precious"
    azure.of(container).upload_blob("d/x?versionid=2020", b"other")
    io.delete_folder(f"{container}/d")
    assert azure.names(container) == []


def test_create_keeps_the_blob_that_is_there(io: FileIO, container: str) -> None:
    path = f"{container}/f"
    assert io.creates_atomically(path)
    io.create(path, b"first")
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.create(path, b"second")
    assert io.read(path) == b"first"
    io.write(path, b"third", overwrite=True)
    assert io.read(path) == b"third"


@pytest.mark.parametrize(("creators", "size"), [(6, 1), (3, 70 << 20)])
def test_of_many_creators_the_store_lets_one_win(
    azure: Azure, io: FileIO, container: str, creators: int, size: int
) -> None:
    (winner,) = winners(azure.properties, f"{container}/f", creators, size)
    found = io.read(f"{container}/f")
    assert len(found) == size
    assert set(found) == {winner}


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 5, b"01234"), (3, 100, b"3456789"), (4, 0, b""), (10, 1, b""), (25, 5, b"")],
)
def test_ranges_end_with_the_blob(
    io: FileIO, container: str, offset: int, length: int, expected: bytes
) -> None:
    io.create(f"{container}/f", b"0123456789")
    assert io.read_range(f"{container}/f", offset=offset, length=length) == expected
    with pytest.raises(MissingFileError):
        io.read_range(f"{container}/none", offset=offset, length=length)


@pytest.mark.parametrize(
    ("names", "folder", "expected"),
    [
        (["a/f", "a/b/g"], "a", (("b", True), ("f", False))),
        (["a/", "a/f"], "a", (("f", False),)),
        (["a/", "a/b/"], "a", (("b", True),)),
        (["a/", "a/b/f"], "a", (("b", True),)),
        (["a/b/"], "a", (("b", True),)),
        (["a/f", "ab", "ac/f"], "a", (("f", False),)),
        (["a", "a/f"], "a", (("f", False),)),
        (["a", "a/f", "b"], "", (("a", False), ("a", True), ("b", False))),
        (["x/y/z/f"], "x/y", (("z", True),)),
        (["a/"], "a", ()),
    ],
)
def test_one_level_is_listed(
    io: FileIO,
    container: str,
    names: list[str],
    folder: str,
    expected: tuple[tuple[str, bool], ...],
) -> None:
    put(io, container, names)
    path = f"{container}/{folder}".rstrip("/")
    assert io.list_folder(path) == expected
    assert io.is_folder(path)


def test_folders_are_marked_and_markers_are_no_files(
    azure: Azure, io: FileIO, container: str
) -> None:
    put(io, container, ["a/", "a/b/", "a/b/f", "ab/"])
    assert azure.names(container) == ["a/", "a/b/", "a/b/f", "ab/"]
    assert [(found.path, found.size) for found in io.list(f"{container}/a")] == [
        (f"{container}/a/b/f", 1)
    ]
    with pytest.raises(StorageError, match="not empty"):
        io.delete_empty_folder(f"{container}/a")
    assert azure.names(container) == ["a/", "a/b/", "a/b/f", "ab/"]
    io.delete_folder(f"{container}/a")
    assert azure.names(container) == ["ab/"]
    io.delete_empty_folder(f"{container}/ab")
    assert azure.names(container) == []
    assert not io.is_folder(f"{container}/ab")


def test_folders_of_an_account_with_a_hierarchy_are_no_files(
    azure: Azure, io: FileIO, container: str
) -> None:
    for name in ("h", "h/k"):
        azure.of(container).upload_blob(name, b"", metadata={"hdi_isfolder": "true"})
    io.create(f"{container}/h/f", b"1")
    assert io.list_folder(container) == (("h", True),)
    assert io.list_folder(f"{container}/h") == (("f", False), ("k", True))
    assert io.list_folder(f"{container}/h/k") == ()
    assert [found.path for found in io.list(container)] == [f"{container}/h/f"]
    assert io.is_folder(f"{container}/h/k")
    io.delete_empty_folder(f"{container}/h/k")
    assert azure.names(container) == ["h", "h/f"]
    io.delete_folder(f"{container}/h")
    assert azure.names(container) == []


def test_a_file_is_no_folder(azure: Azure, io: FileIO, container: str) -> None:
    put(io, container, ["d/f"])
    path = f"{container}/d/f"
    assert list(io.list(path)) == []
    assert not io.is_folder(path)
    io.delete_folder(path)
    io.delete_empty_folder(path)
    with pytest.raises(MissingFileError):
        io.list_folder(path)
    assert azure.names(container) == ["d/f"]
    with pytest.raises(StorageError, match="directory"):
        io.size(f"{container}/d")


def test_namespaces_of_the_filesystem_catalog_stay_while_they_hold_something(
    azure: Azure, container: str
) -> None:
    catalog = FilesystemCatalog("c", {"warehouse": f"{container}/w", **azure.properties})
    catalog.create_namespace("db")
    catalog.create_namespace("db.sub")
    assert catalog.list_namespaces("db") == [("db", "sub")]
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    catalog.drop_namespace("db.sub")
    catalog.drop_namespace("db")
    assert azure.names(container) == []


def test_many_blobs_go_at_once(azure: Azure, io: FileIO, container: str) -> None:
    put(io, container, [f"d/{number:02}" for number in range(40)])
    gone = [f"{container}/d/{number:02}" for number in range(20)]
    assert io.delete_many([*gone, f"{container}/none"]) == {}
    assert azure.names(container) == [f"d/{number}" for number in range(20, 40)]
    io.delete_folder(f"{container}/d")
    assert azure.names(container) == []


def test_renames(io: FileIO, container: str) -> None:
    put(io, container, ["a", "b"])
    io.write(f"{container}/a", b"a", overwrite=True)
    with pytest.raises(AlreadyExistsError, match="exists"):
        io.rename_if_absent(f"{container}/a", f"{container}/b")
    io.rename_if_absent(f"{container}/a", f"{container}/c")
    io.move(f"{container}/c", f"{container}/b")
    assert [found.path for found in io.list(container)] == [f"{container}/b"]
    assert io.read(f"{container}/b") == b"a"


@pytest.mark.parametrize("place", ["none", "d/none"])
def test_missing_blobs_and_containers_are_typed(io: FileIO, container: str, place: str) -> None:
    other = f"abfss://nosuchcontainer@{ACCOUNT}.dfs.core.windows.net"
    for path in (f"{container}/{place}", f"{other}/{place}"):
        for call in (io.read, io.size, io.delete, io.open_input, io.list_folder):
            with pytest.raises(MissingFileError, match=place):
                call(path)
        assert not io.exists(path)
        assert not io.is_folder(path)
        assert list(io.list(path)) == []
        assert io.delete_many([path]) == {}
        io.delete_folder(path)
    for make in (
        lambda path: io.create(path, b""),
        lambda path: io.write(path, b"", overwrite=True),
        io.make_folder,
    ):
        with pytest.raises(MissingFileError, match="no such bucket"):
            make(f"{other}/{place}")
    assert not io.exists(other)
    assert io.exists(container)


@pytest.mark.parametrize("scheme", ["abfs", "wasb", "wasbs", "ABFSS"])
def test_every_scheme_names_the_same_blobs(io: FileIO, container: str, scheme: str) -> None:
    other = container.replace("abfss://", f"{scheme}://").replace(".dfs.", ".blob.")
    io.create(f"{other}/d/f", b"1")
    assert io.read(f"{container}/d/f") == b"1"
    assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]
    assert io.list_folder(f"{other}/d") == (("f", False),)
    io.delete_folder(f"{other}/d")
    assert not io.is_folder(f"{container}/d")


def test_a_refusal_is_told_on_one_line(azure: Azure, container: str) -> None:
    wrong = KEY[:-6] + "AAAA=="
    text = azure.properties["adls.connection-string"].replace(KEY, wrong)
    io = FileIO({"adls.connection-string": text})
    for call in (io.read, io.exists, io.is_folder, io.list_folder, lambda path: [*io.list(path)]):
        with pytest.raises(StorageError, match="authenticate") as caught:
            call(f"{container}/d")
        assert not isinstance(caught.value, MissingFileError)
        assert "\n" not in str(caught.value)
        assert wrong not in f"{caught.value!r} {io!r}"


def test_a_container_is_no_file(io: FileIO, container: str) -> None:
    for path in (container, f"{container}/"):
        with pytest.raises(StorageError, match="directory"):
            io.delete(path)
    assert io.is_folder(container)


def test_it_works_in_a_forked_child(io: FileIO, container: str) -> None:
    io.create(f"{container}/f", b"1")
    assert in_a_forked_child(lambda: io.read(f"{container}/f")) == "b'1'"
    assert io.read(f"{container}/f") == b"1"
