"""The filesystem catalog: drops beside writers, a version's one name, a warehouse's spellings."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from catalog_cases import made_table, new_metadata, opened, properties_of, set_properties

from frazil.catalog.pointer.versions import EXTENSIONS, HINT, SeenVersions, VersionFolder
from frazil.errors import (
    CommitFailedError,
    MissingFileError,
    NoSuchTableError,
    StorageError,
    ValidationError,
)
from frazil.storage.files import FileIO

CODEC = "write.metadata.compression-codec"


@pytest.fixture(params=["filesystem", "filesystem on s3"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def at_the_call(io: FileIO, name: str, then: Callable[[], object]) -> None:
    """Do something else just before the next call of that name."""
    real = getattr(io, name)

    def call(*args: Any, **options: Any) -> Any:
        setattr(io, name, real)
        then()
        return real(*args, **options)

    setattr(io, name, call)


def test_a_drop_beside_writers_leaves_the_table_whole_or_gone(properties: dict[str, str]) -> None:
    catalog = opened(properties)
    for number in range(5):
        name = f"db.t{number}"
        made_table(catalog, name)
        writer = threading.Thread(target=write_until_gone, args=(properties, name))
        writer.start()
        time.sleep(0.03 * number)
        catalog.drop_table(name)
        writer.join()
        assert not catalog.table_exists(name)
        with pytest.raises(NoSuchTableError):
            catalog.load_table(name)
    assert catalog.list_tables("db") == []
    assert catalog.list_namespaces("db") == []
    catalog.drop_namespace("db")


def write_until_gone(properties: dict[str, str], name: str) -> None:
    own = opened(properties)
    try:
        for number in range(100):
            set_properties(own, name, n=str(number))
    except (NoSuchTableError, CommitFailedError, MissingFileError):
        return


def test_a_commit_between_read_and_swap_of_a_drop(properties: dict[str, str]) -> None:
    dropping, writing = opened(properties), opened(properties)
    made_table(writing)
    if "s3.endpoint" in properties:
        # Without a lock the drop comes between the writer's look and its swap.
        at_the_call(writing.io, "create", lambda: dropping.drop_table("db.t"))
    else:
        at_the_call(writing.io, "lock", lambda: dropping.drop_table("db.t"))
    with pytest.raises(NoSuchTableError, match=r"db\.t"):
        set_properties(writing, "db.t", a="1")
    assert not dropping.table_exists("db.t")
    assert made_table(dropping) == writing.load_table("db.t")


def test_a_drop_before_a_commit_writes_its_hint_leaves_no_folder(
    properties: dict[str, str],
) -> None:
    if "s3.endpoint" not in properties:
        pytest.skip("a lock keeps both apart")
    for call in ("write", "exists"):
        dropping, writing = opened(properties), opened(properties)
        made_table(writing)
        at_the_call(writing.io, call, lambda dropping=dropping: dropping.drop_table("db.t"))
        with suppress(NoSuchTableError, CommitFailedError):
            set_properties(writing, "db.t", a="1")
        assert dropping.list_tables("db") == []
        assert dropping.list_namespaces("db") == []


def test_a_commit_to_a_table_that_was_made_anew(tmp_path: Path) -> None:
    properties = properties_of("filesystem", tmp_path)
    other, writing = opened(properties), opened(properties)
    made_table(writing)

    def make_anew() -> None:
        other.drop_table("db.t")
        made_table(other, "db.t", anew="1")

    at_the_call(writing.io, "lock", make_anew)
    with pytest.raises(NoSuchTableError, match="made anew"):
        set_properties(writing, "db.t", a="1")
    assert other.load_table("db.t").metadata.properties["anew"] == "1"


def test_a_drop_that_cannot_delete_leaves_the_table_whole(properties: dict[str, str]) -> None:
    catalog = opened(properties)
    made_table(catalog)
    table = set_properties(catalog, "db.t", a="1")

    def fail() -> None:
        raise StorageError("the store failed")

    at_the_call(catalog.io, "delete_many" if "s3.endpoint" in properties else "move_folder", fail)
    with pytest.raises(StorageError, match="the store failed"):
        catalog.drop_table("db.t")
    assert catalog.load_table("db.t") == table


def test_what_a_killed_drop_has_left_is_no_table(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    made_table(catalog)
    left = tmp_path / "wh" / "db" / f".t.{'0' * 32}.dropped"
    (tmp_path / "wh" / "db" / "t").rename(left)
    assert catalog.list_tables("db") == []
    assert catalog.list_namespaces("db") == []
    catalog.drop_namespace("db")
    assert not left.exists()


def test_two_writers_with_different_codecs_meet(properties: dict[str, str]) -> None:
    plain, zipped = opened(properties), opened(properties)
    made_table(plain)
    compressed = {CODEC: "gzip"}
    # On a disk the lock would keep the other out from here on.
    call = "create" if "s3.endpoint" in properties else "lock"
    at_the_call(zipped.io, call, lambda: set_properties(plain, "db.t", first="1"))
    with pytest.raises(CommitFailedError, match="another writer was first"):
        set_properties(zipped, "db.t", **compressed)
    assert plain.load_table("db.t").metadata.properties["first"] == "1"
    set_properties(opened(properties), "db.t", **compressed)
    after = set_properties(opened(properties), "db.t", last="1")
    assert after.metadata_location.endswith(".gz.metadata.json")
    assert plain.load_table("db.t") == after


def test_two_creators_with_different_codecs_meet(properties: dict[str, str]) -> None:
    catalog = opened(properties)
    catalog.create_namespace("db")
    catalog._create(("db", "t"), new_metadata(catalog, "db.t", **{CODEC: "gzip"}))
    assert catalog.load_table("db.t").metadata_location.endswith("/v1.metadata.json")


def test_of_two_files_of_one_version_all_take_the_same(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    table = made_table(catalog)
    folder = tmp_path / "wh" / "db" / "t" / "metadata"
    (folder / "v1.gz.metadata.json").write_bytes(b"of another writer, without a lock")
    for hint in (True, False):
        if not hint:
            (folder / "version-hint.text").unlink()
        assert catalog.load_table("db.t") == table


def spellings(properties: dict[str, str], tmp_path: Path) -> list[dict[str, str]]:
    warehouse = properties["warehouse"]
    if warehouse.startswith("s3://"):
        return [{**properties, "warehouse": f"s3a{warehouse[2:]}/"}]
    link = tmp_path / "link"
    link.symlink_to(warehouse)
    relative = f"{tmp_path}/./x/../wh//"
    return [{**properties, "warehouse": other} for other in (str(link), f"file:{link}", relative)]


def test_other_spellings_of_the_warehouse(properties: dict[str, str], tmp_path: Path) -> None:
    first = opened(properties)
    made_table(first)
    for number, other in enumerate(spellings(properties, tmp_path)):
        catalog = opened(other)
        set_properties(catalog, "db.t", **{f"n{number}": "1"})
        assert first.load_table("db.t").metadata.properties[f"n{number}"] == "1"
        set_properties(first, "db.t", back=str(number))
    catalog.drop_table("db.t")
    assert not first.table_exists("db.t")


def test_a_copied_table_is_not_committed_to(tmp_path: Path) -> None:
    made_table(opened(properties_of("filesystem", tmp_path)))
    (tmp_path / "copy").mkdir()
    (tmp_path / "wh").rename(tmp_path / "copy" / "wh")
    moved = opened(properties_of("filesystem", tmp_path / "copy"))
    with pytest.raises(ValidationError, match="the folder is the name"):
        set_properties(moved, "db.t", a="1")


def test_a_failed_creation_leaves_no_folder(tmp_path: Path) -> None:
    catalog = opened(properties_of("filesystem", tmp_path))
    catalog.create_namespace("db")
    metadata = new_metadata(catalog, "db.t")

    def fail() -> None:
        raise StorageError("the disk is full")

    at_the_call(catalog.io, "create", fail)
    with pytest.raises(StorageError, match="full"):
        catalog.create_table("db.t", metadata)
    assert catalog.list_namespaces("db") == []


class TellingIO(FileIO):
    """A local disk that tells of several files at once."""

    def marks(self, path: str, names: Sequence[str]) -> Mapping[str, str]:
        found = {name: Path(path) / name for name in names}
        return {name: str(each.stat().st_size) for name, each in found.items() if each.exists()}


@pytest.mark.parametrize("later", [1, 2])
@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize("seen", EXTENSIONS)
def test_a_version_of_any_name_is_found(
    tmp_path: Path, seen: str, extension: str, later: int
) -> None:
    versions = VersionFolder(TellingIO(), str(tmp_path))
    (tmp_path / HINT).write_text("1")
    (tmp_path / f"v1{seen}").write_text("{}")
    known = SeenVersions()
    assert known.current(versions) == versions.find(1)
    assert known.mark_of(versions, str(tmp_path / f"v1{seen}")) == "2 1"
    assert known.mark_of(versions, str(tmp_path / "v2.metadata.json")) is None
    (tmp_path / f"v{later}{extension}").write_text("{}")
    assert known.current(versions) == versions.current()
