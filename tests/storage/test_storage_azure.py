"""FileIO against Azurite, Microsoft's emulator of Azure's blob service."""

from __future__ import annotations

import pytest
from remote_stores import ACCOUNT_KEY, Azure, check_literal_name

from frazil.errors import MissingFileError, StorageError, UnsupportedError
from frazil.storage.files import FileIO


@pytest.fixture
def store(azure: Azure) -> Azure:
    return azure


def test_another_case_of_the_parameter_is_a_name(store: Azure, io: FileIO, bucket: str) -> None:
    check_literal_name(store, io, bucket, "x?versionId=1")


def test_a_name_that_the_driver_reads_as_a_version_is_refused(
    azure: Azure, io: FileIO, bucket: str
) -> None:
    path = f"{bucket}/d/x"
    io.create(path, b"precious")
    for call in (io.read, io.delete, lambda name: io.write(name, b"2", overwrite=True)):
        with pytest.raises(UnsupportedError, match="versionid"):
            call(f"{path}?versionid=2020")
    assert io.read(path) == b"precious"
    azure.of(bucket).upload_blob("d/x?versionid=2020", b"other")
    io.delete_folder(f"{bucket}/d")
    assert azure.names(bucket) == []


def test_folders_of_an_account_with_a_hierarchy_are_no_files(
    azure: Azure, io: FileIO, bucket: str
) -> None:
    for name in ("h", "h/k"):
        azure.of(bucket).upload_blob(name, b"", metadata={"hdi_isfolder": "true"})
    io.create(f"{bucket}/h/f", b"1")
    assert io.list_folder(bucket) == (("h", True),)
    assert io.list_folder(f"{bucket}/h") == (("f", False), ("k", True))
    assert io.list_folder(f"{bucket}/h/k") == ()
    assert [found.path for found in io.list(bucket)] == [f"{bucket}/h/f"]
    assert io.is_folder(f"{bucket}/h/k")
    io.delete_empty_folder(f"{bucket}/h/k")
    assert azure.names(bucket) == ["h", "h/f"]
    io.delete_folder(f"{bucket}/h")
    assert azure.names(bucket) == []


@pytest.mark.parametrize("scheme", ["abfs", "wasb", "wasbs"])
def test_the_blob_host_names_the_same_blobs(io: FileIO, bucket: str, scheme: str) -> None:
    other = bucket.replace("abfss://", f"{scheme}://").replace(".dfs.", ".blob.")
    io.create(f"{other}/d/f", b"1")
    assert io.read(f"{bucket}/d/f") == b"1"
    assert [found.path for found in io.list(f"{other}/d")] == [f"{other}/d/f"]


def test_a_refusal_is_told_on_one_line(azure: Azure, bucket: str) -> None:
    wrong = ACCOUNT_KEY[:-6] + "AAAA=="
    text = azure.properties["adls.connection-string"].replace(ACCOUNT_KEY, wrong)
    io = FileIO({"adls.connection-string": text})
    for call in (io.read, io.exists, io.is_folder, io.list_folder, lambda path: [*io.list(path)]):
        with pytest.raises(StorageError, match="authenticate") as caught:
            call(f"{bucket}/d")
        assert not isinstance(caught.value, MissingFileError)
        assert "\n" not in str(caught.value)
        assert wrong not in f"{caught.value!r} {io!r}"
