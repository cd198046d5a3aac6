"""Caches bounded in bytes; those of a lake are sized by properties and cleared at once."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from frazil.catalog.config import CatalogConfig, open_catalog
from frazil.errors import ConfigurationError
from frazil.storage.caches import BoundedCache, Caches, Sized
from frazil.storage.files import FileIO
from frazil.storage.moved import store_key


def test_the_least_recently_used_make_room() -> None:
    cache = BoundedCache[str](max_bytes=3)
    for key in "abc":
        cache.put(key, key.upper(), 1)
    assert cache.get("a") == "A"
    cache.put("d", "D", 2)
    assert [cache.get(key) for key in "abcd"] == ["A", None, None, "D"]
    assert (cache.statistics.hits, cache.statistics.misses) == (3, 2)
    cache.resize(1)
    assert cache.statistics.entries == 0, "what was used last is larger than the new bound"


def test_what_is_over_the_bound_is_not_kept_and_nothing_gives_way_to_it() -> None:
    cache = BoundedCache[str](max_bytes=3)
    cache.put("a", "A", 1)
    cache.put("b", "B", 4)
    assert (cache.get("a"), cache.get("b"), cache.size_in_bytes) == ("A", None, 1)


def test_what_values_share_counts_once_and_stays_one_object() -> None:
    cache = BoundedCache[frozenset[str]](max_bytes=100)
    for key in range(3):
        cache.change(
            key, lambda _: Sized(s := cache.shared_part(frozenset(["x"])), size=1, parts=((s, 10),))
        )
    assert cache.size_in_bytes == 13
    assert cache.get(0) is cache.get(2)
    for key in range(3):
        assert cache.size_in_bytes == 13 - key
        cache.put(key, frozenset(), 0)
    assert cache.size_in_bytes == 0


def test_what_is_removed_leaves_its_room() -> None:
    cache = BoundedCache[str](max_bytes=3)
    cache.put("a", "A", 3)
    cache.remove("a")
    cache.remove("a")
    assert (cache.get("a"), cache.size_in_bytes) == (None, 0)


def test_threads_leave_a_true_account() -> None:
    cache = BoundedCache[int](max_bytes=500)

    def work(number: int) -> None:
        for key in range(200):
            cache.put((number + key) % 97, key, key % 11)
            cache.get(key % 97)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))
    assert cache.size_in_bytes <= 500
    cache.resize(0)
    assert cache.size_in_bytes == 0


def test_sizes_come_from_properties_and_one_call_clears_all() -> None:
    properties = {"type": "hadoop", "warehouse": "/w", "cache.manifests-bytes": "7"}
    caches = open_catalog(CatalogConfig("c", properties)).io.caches
    assert caches["manifests"].max_bytes == 7
    with pytest.raises(ConfigurationError, match=r"cache\.footers-bytes is '1e3'"):
        caches.resize({"cache.manifests-bytes": "8", "cache.footers-bytes": "1e3"})
    assert caches["manifests"].max_bytes == 7
    caches["footers"].put("a", object(), 1)
    caches.clear()
    assert caches.statistics["footers"].entries == 0


def test_a_lake_does_not_see_what_another_one_keeps() -> None:
    ours, theirs = (
        open_catalog(CatalogConfig(name, {"type": "hadoop", "warehouse": "/w"})).io
        for name in ("ours", "theirs")
    )
    ours.caches["footers"].put("s3://bucket/a.parquet", object(), 1)
    assert theirs.caches["footers"].get("s3://bucket/a.parquet") is None
    assert pickle.loads(pickle.dumps(ours)).caches["footers"].statistics.entries == 0


@pytest.mark.parametrize(("text", "expected"), [("12345", 12345), ("many", None)])
def test_the_environment_states_sizes(
    text: str, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAZIL_CACHE_MANIFESTS_BYTES", text)
    if expected is None:
        with pytest.raises(ConfigurationError, match="many"):
            Caches()
    else:
        assert Caches()["manifests"].max_bytes == expected
        assert Caches({"cache.manifests-bytes": "5"})["manifests"].max_bytes == 5


@pytest.mark.parametrize(
    ("change", "is_same"),
    [
        ({"s3.access-key-id": "2", "s3.secret-access-key": "2", "s3.session-token": "2"}, True),
        ({"gcs.oauth2.token": "2"}, True),
        ({"adls.connection-string": "AccountName=a;AccountKey=2"}, True),
        ({"adls.sas-token.a": "2"}, True),
        ({"s3.endpoint": "http://other"}, False),
        ({"gcs.service.host": "http://other"}, False),
        ({"adls.account-name": "other"}, False),
        ({"adls.connection-string": "AccountName=other;AccountKey=1"}, False),
        ({"adls.sas-token.other": "1"}, False),
    ],
    ids=str,
)
def test_what_is_kept_goes_by_the_file_and_not_by_who_reads_it(
    change: dict[str, str], is_same: bool
) -> None:
    """Credentials come with a table and end; a path at another endpoint is another file."""
    before = {
        "s3.endpoint": "http://one",
        "s3.access-key-id": "1",
        "gcs.oauth2.token": "1",
        "adls.connection-string": "AccountName=a;AccountKey=1",
        "adls.sas-token.a": "1",
    }
    first, second = FileIO(before), FileIO({**before, **change})
    assert (store_key(first) == store_key(second)) is is_same
