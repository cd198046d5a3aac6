"""Manifests whose bytes are damaged or hostile: typed errors, at once, within bounded memory."""

from __future__ import annotations

import bz2
import contextlib
import dataclasses
import io as stdio
import json
import lzma
import random
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from manifest_samples import added, data_file, listed, read, written

from frazil.errors import InvalidManifestError, UnsupportedError
from frazil.format.manifests import ManifestFile
from frazil.storage import avro
from frazil.storage.avro.container import read_container
from frazil.storage.files import FileIO

BAD_SCHEMAS: list[Any] = [
    "null",
    {"type": "record", "name": "r", "fields": []},
    {"type": "record", "name": "r", "fields": [{"name": "status", "type": "r"}]},
    {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}],
    },
    {"type": "record", "name": "r", "fields": [{"name": "a", "type": "nosuch"}]},
    {
        "type": "record",
        "name": "r",
        "fields": [{"name": "a", "type": {"type": "fixed", "name": "f", "size": 1 << 60}}],
    },
    {"type": "record", "name": "r"},
    {"type": "record", "name": "r", "fields": [{"type": "int"}]},
    [],
    5,
    {"type": {"type": {"type": "int"}}},
]


def container(schema: Any, codec: str, blocks: list[tuple[int, bytes]]) -> bytes:
    """A container of blocks as they are: each a number of records, and bytes."""
    out = stdio.BytesIO()
    out.write(b"Obj\x01")
    header = {"avro.schema": json.dumps(schema).encode(), "avro.codec": codec.encode()}
    fastavro.schemaless_writer(out, {"type": "map", "values": "bytes"}, header)
    out.write(b"s" * 16)
    for count, packed in blocks:
        fastavro.schemaless_writer(out, "long", count)
        fastavro.schemaless_writer(out, "bytes", packed)
        out.write(b"s" * 16)
    return out.getvalue()


@pytest.mark.parametrize("schema", BAD_SCHEMAS, ids=range(len(BAD_SCHEMAS)))
def test_hostile_schemas(tmp_path: Path, schema: Any) -> None:
    """A few bytes must not stand for endless records."""
    path = tmp_path / "m"
    block = b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00\x00\x00"
    path.write_bytes(container(schema, "null", [(4, block)]))
    manifest = ManifestFile(manifest_path=str(path), manifest_length=1, partition_spec_id=3)
    started = time.monotonic()
    for call in (lambda: read(manifest), lambda: avro.read_manifest_list(FileIO(), str(path))):
        with pytest.raises(InvalidManifestError):
            call()
    assert time.monotonic() - started < 20


def test_damaged_bytes_never_surprise(tmp_path: Path) -> None:
    """Flipped, cut and inserted bytes: a typed error or an answer, at once."""
    for codec in ("none", "gzip", "snappy", "zstd"):
        manifest = listed(
            tmp_path / f"l{codec}",
            [
                written(
                    tmp_path / f"m{codec}",
                    [added(data_file(str(n))) for n in range(5)],
                    codec=codec,
                )
            ],
        )
        good = (tmp_path / f"m{codec}").read_bytes()
        good_list = (tmp_path / f"l{codec}").read_bytes()
        dice = random.Random(codec)
        for _ in range(250):
            for name, data in (("bad", good), ("badlist", good_list)):
                (tmp_path / name).write_bytes(damaged(data, dice))
            started = time.monotonic()
            broken = dataclasses.replace(manifest, manifest_path=str(tmp_path / "bad"))
            for call in (
                lambda broken=broken: read(broken),
                lambda: avro.read_manifest_list(FileIO(), str(tmp_path / "badlist")),
                lambda: avro.read_file_paths(FileIO(), str(tmp_path / "bad")),
            ):
                with contextlib.suppress(InvalidManifestError, UnsupportedError):
                    call()
            assert time.monotonic() - started < 30


def damaged(data: bytes, dice: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice([1, 1, 1, 2, 8])):
        position = dice.randrange(len(changed))
        match dice.randrange(4):
            case 0:
                changed[position] ^= 1 << dice.randrange(8)
            case 1:
                changed[position] = dice.choice([0, 0x7F, 0x80, 0xFF])
            case 2:
                del changed[position : position + dice.randrange(1, 40)]
            case 3:
                changed[position:position] = dice.randbytes(dice.randrange(1, 12))
    return bytes(changed)


def test_bombs_are_refused(tmp_path: Path) -> None:
    """A small file must not become gigabytes."""
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "bytes"}]}
    body = bytes(1 << 27)
    bombs = {
        "zstandard": bytes(pa.Codec("zstd").compress(body, asbytes=True)),
        "xz": lzma.compress(body, preset=0),
        "bzip2": bz2.compress(body),
        "snappy": b"\xff\xff\xff\xff\xff\xff\x0f" + bytes(60),
    }
    for codec, packed in bombs.items():
        data = container(schema, codec, [(1, packed)])
        assert len(data) < 100_000
        with pytest.raises(InvalidManifestError, match=r"damaged.*bomb"):
            read_container(data, file="bomb")


@pytest.mark.parametrize("codec", ["deflate", "zstandard"])
def test_a_bomb_of_many_blocks_is_refused_before_it_fills_the_memory(codec: str) -> None:
    """Two megabytes that unpack to two gigabytes, in blocks that are sane by themselves."""
    records = bytes(1 << 24)
    if codec == "deflate":
        packed = zlib.compress(records, wbits=-15)
    else:
        packed = bytes(pa.Codec("zstd").compress(records, asbytes=True))
    schema = {"type": "record", "name": "r", "fields": [{"name": "b", "type": "long"}]}
    data = container(schema, codec, [(len(records), packed)] * 128)
    tracemalloc.start()
    try:
        with pytest.raises(InvalidManifestError, match=r"unpack to more than \d+ bytes.*bomb"):
            read_container(data, file="bomb")
        assert tracemalloc.get_traced_memory()[1] < 400_000_000
    finally:
        tracemalloc.stop()
