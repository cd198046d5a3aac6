"""Puffin files and deletion vectors, as other engines write them."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil.errors import InvalidDataFileError, UnsupportedError, ValidationError
from frazil.format.puffin import (
    PuffinBuilder,
    blob_bytes,
    deletion_vector_from_bytes,
    deletion_vector_to_bytes,
    parse_puffin_footer,
    puffin_footer_size,
    read_puffin_footer,
)

VECTORS = "goldens/deletion-vectors"
PUFFIN = "goldens/puffin"
CODECS = {
    # An LZ4 frame states its size, so does the one zstd frame of a blob (rules 240, 242).
    "lz4": lambda data: pa.input_stream(pa.BufferReader(data), compression="lz4").read(),
    "zstd": lambda data: pa.input_stream(pa.BufferReader(data), compression="zstd").read(),
}


def spread(*ranges: range) -> list[int]:
    return sorted({position for one in ranges for position in one})


def framed(vector: bytes) -> bytes:
    """The blob of a bitmap: length, magic and checksum around it (rule 246)."""
    body = bytes.fromhex("d1d33964") + vector
    return struct.pack(">I", len(body)) + body + struct.pack(">I", zlib.crc32(body))


# Length and CRC-32 of the whole blob as BitmapPositionDeleteIndex of Java 1.12.0 serializes it.
JAVA_BLOBS = {
    "a tie of array and run": (spread(range(3)), 46, 0x32C3CA61),
    "a run": (spread(range(7, 11)), 39, 0x5E333670),
    "two runs of 5": (spread(range(3), range(10, 12)), 50, 0x07A14A91),
    "all containers and a tie": (
        spread(
            range(3),
            range(65536, 65540),
            range(131072, 131072 + 20000, 2),
            range(262144, 262144 + 65536),
        ),
        8271,
        0xAC023746,
    ),
    "2047 runs": (spread(*(range(k, 2047 * 32, 32) for k in range(3))), 8223, 0xE84C1D1F),
    "2048 runs": (spread(*(range(k, 2048 * 32, 32) for k in range(3))), 8232, 0x203DCBBC),
    "a million": (spread(range(0, 1000000, 7), range(500000, 600000)), 119698, 0x65C16943),
    "four runs": (spread(*(range(k << 16, (k << 16) + 9) for k in range(4))), 85, 0xF88DB8D7),
    "over 32 bits": (
        spread(range(4294967295, 4294967297), range(2147483647, 2147483650)),
        86,
        0x86295F68,
    ),
}
# A run and an array take the same bytes here; Java chooses the array.
TIES = ("a tie of array and run", "two runs of 5", "all containers and a tie")


@pytest.mark.parametrize("name", JAVA_BLOBS)
def test_the_bytes_that_java_writes(name: str) -> None:
    positions, size, checksum = JAVA_BLOBS[name]
    blob = deletion_vector_to_bytes(positions)
    assert len(blob) == size
    if name not in TIES:
        assert zlib.crc32(blob) == checksum
    assert list(deletion_vector_from_bytes(blob, cardinality=len(positions))) == positions


def test_java_skips_with_empty_bitmaps() -> None:
    """A blob of Java with empty bitmaps for the keys 0 to 2 of {5, 3*2^32, 3*2^32+1}."""
    blob = bytes.fromhex(
        "00000052d1d339640400000000000000000000003a30000001000000000000001000000005000100"
        "00003a30000000000000020000003a30000000000000030000003a30000001000000000001001000"
        "000000000100862b1e87"
    )
    positions = [5, 3 << 32, (3 << 32) + 1]
    assert list(deletion_vector_from_bytes(blob)) == positions
    assert list(deletion_vector_from_bytes(deletion_vector_to_bytes(positions))) == positions


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("empty-position-index", []),
        ("small-alternating-values-position-index", [1, 3, 5, 7, 9]),
        ("small-and-large-values-position-index", [100, 101, 2147483747, 2147483748]),
        (
            "all-container-types-position-index",
            # Java's test: in each of two keys an array, a run and a dense container.
            None,
        ),
    ],
)
def test_golden_blobs(fixtures_dir: Path, name: str, positions: list[int] | None) -> None:
    data = (fixtures_dir / VECTORS / f"{name}.bin").read_bytes()
    found = deletion_vector_from_bytes(data)
    if positions is not None:
        assert list(found) == positions
    assert deletion_vector_to_bytes(found) == data


@pytest.mark.parametrize(
    ("name", "count"), [("64mapempty", 0), ("64map32bitvals", 10), ("64mapspreadvals", 100)]
)
def test_golden_bitmaps(fixtures_dir: Path, name: str, count: int) -> None:
    """The vector alone, as Java's test of the portable format has it: 0-9 of each key."""
    data = (fixtures_dir / VECTORS / f"{name}.bin").read_bytes()
    positions = list(deletion_vector_from_bytes(framed(data)))
    assert positions == [key << 32 | low for key in range(count // 10) for low in range(10)]


def test_a_golden_bitmap_that_is_broken(fixtures_dir: Path) -> None:
    """A file that went through a text encoding: its first key is beyond 63 bits."""
    data = (fixtures_dir / VECTORS / "64maphighvals.bin").read_bytes()
    with pytest.raises(InvalidDataFileError, match=r"broken: .* \(file f\.puffin\)"):
        deletion_vector_from_bytes(framed(data), file="f.puffin")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            f"{VECTORS}/single-blob-dv.puffin",
            {"s3://warehouse/db/table/data/00000-0-abc.parquet": [1, 3, 5, 7, 9]},
        ),
        (
            f"{VECTORS}/multi-blob-dv.puffin",
            {
                "s3://warehouse/db/table/data/file-001.parquet": [0, 100, 200],
                "s3://warehouse/db/table/data/file-002.parquet": [50, 150],
            },
        ),
        (f"{PUFFIN}/deletion-vector-v1.puffin", {"data/test.parquet": [1, 3, 5, 7, 9]}),
    ],
)
def test_golden_puffin_files_of_vectors(
    fixtures_dir: Path, path: str, expected: dict[str, list[int]]
) -> None:
    data = (fixtures_dir / path).read_bytes()
    footer = read_puffin_footer(data)
    found = {}
    for blob in footer.blobs:
        assert (blob.type, blob.snapshot_id, blob.sequence_number) == ("deletion-vector-v1", -1, -1)
        vector = blob_bytes(data[blob.offset : blob.offset + blob.length], blob)
        cardinality = int(blob.properties["cardinality"])
        positions = deletion_vector_from_bytes(vector, cardinality=cardinality)
        found[blob.properties["referenced-data-file"]] = list(positions)
    assert found == expected


def test_a_file_of_vectors_is_written_byte_for_byte(fixtures_dir: Path) -> None:
    """Rules 237-249: as iceberg-go's cross-client fixture."""
    golden = (fixtures_dir / VECTORS / "multi-blob-dv.puffin").read_bytes()
    file = PuffinBuilder(properties=read_puffin_footer(golden).properties)
    for name, positions in (("file-001", [0, 100, 200]), ("file-002", [50, 150])):
        blob = file.add_deletion_vector(
            deletion_vector_to_bytes(positions),
            referenced_data_file=f"s3://warehouse/db/table/data/{name}.parquet",
            cardinality=len(positions),
        )
        assert golden[blob.offset : blob.offset + 4] == struct.pack(">I", blob.length - 8)
    assert file.to_bytes() == golden


def puffin_files(fixtures: Path) -> list[Path]:
    return [
        *(fixtures / "goldens/java/core").rglob("puffin/v1/*.bin"),
        *(fixtures / PUFFIN).glob("*.puffin"),
        *(fixtures / "goldens/puffin-stats").rglob("*.stats"),
    ]


def test_files_of_java_and_impala_are_written_again_byte_for_byte(fixtures_dir: Path) -> None:
    broken = []
    for path in puffin_files(fixtures_dir):
        data = path.read_bytes()
        try:
            footer = read_puffin_footer(data, file=str(path))
        except InvalidDataFileError:
            broken.append(path.name)
            continue
        file = PuffinBuilder(properties=footer.properties)
        for blob in footer.blobs:
            file.add(
                blob.type,
                data[blob.offset : blob.offset + blob.length],
                fields=blob.fields,
                snapshot_id=blob.snapshot_id,
                sequence_number=blob.sequence_number,
                compression_codec=blob.compression_codec,
                properties=blob.properties,
            )
        assert file.to_bytes() == data, path
    assert sorted(broken) == ["corrupt_file.stats", "corrupt_file1.stats", "corrupt_file2.stats"]


@pytest.mark.parametrize("kind", ["uncompressed", "compressed-zstd"])
def test_javas_sample_blobs(fixtures_dir: Path, kind: str) -> None:
    """The content that Java's own test expects."""
    data = (fixtures_dir / PUFFIN / f"sample-metric-data-{kind}.bin").read_bytes()
    footer = read_puffin_footer(data)
    assert footer.properties == {"created-by": "Test 1234"}
    first, second = footer.blobs
    assert (first.type, first.fields, first.snapshot_id) == ("some-blob", (1,), 2)
    plain = [
        blob_bytes(data[blob.offset : blob.offset + blob.length], blob, codecs=CODECS)
        for blob in (first, second)
    ]
    assert plain[0] == b"abcdefghi"
    assert plain[1].startswith(b"some blob \x00 binary data")
    if kind != "uncompressed":
        with pytest.raises(UnsupportedError, match="zstd"):
            blob_bytes(data[first.offset : first.offset + first.length], first)
        with pytest.raises(InvalidDataFileError, match="decompressed"):
            blob_bytes(b"x" * first.length, first, codecs=CODECS)


def test_a_compressed_footer() -> None:
    """Rule 239-240: flag 1, an LZ4 frame."""
    payload = b'{"blobs":[],"properties":{"a":"b"}}'
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(payload)
    packed = sink.getvalue().to_pybytes()
    footer = b"PFA1" + packed + struct.pack("<iI", len(packed), 1) + b"PFA1"
    assert parse_puffin_footer(footer, codecs=CODECS).properties == {"a": "b"}
    with pytest.raises(UnsupportedError, match="lz4"):
        parse_puffin_footer(footer)


def test_a_footer_from_the_end_of_a_file(fixtures_dir: Path) -> None:
    data = (fixtures_dir / VECTORS / "single-blob-dv.puffin").read_bytes()
    size = puffin_footer_size(data[-12:])
    assert parse_puffin_footer(data[-size:]) == read_puffin_footer(data)


def test_puffin_bytes_that_are_broken(fixtures_dir: Path) -> None:
    """Cut anywhere or changed anywhere in the footer: a typed error with the file, or read."""
    data = (fixtures_dir / VECTORS / "multi-blob-dv.puffin").read_bytes()
    for end in range(len(data)):
        with pytest.raises(InvalidDataFileError, match=r"f\.puffin"):
            read_puffin_footer(data[:end], file="f.puffin")
    footer_start = len(data) - puffin_footer_size(data)
    for position in range(footer_start, len(data)):
        for bit in (1, 128):
            changed = bytearray(data)
            changed[position] ^= bit
            try:
                footer = read_puffin_footer(bytes(changed), file="f.puffin")
            except (InvalidDataFileError, UnsupportedError) as error:
                assert "f.puffin" in str(error)  # noqa: PT017
            else:
                assert all(b.offset >= 4 and b.offset + b.length <= len(data) for b in footer.blobs)


def test_a_vector_changed_in_any_bit_is_refused() -> None:
    """Rule 250: length, magic and checksum."""
    blob = deletion_vector_to_bytes(JAVA_BLOBS["four runs"][0])
    for position in range(len(blob)):
        for bit in range(8):
            changed = bytearray(blob)
            changed[position] ^= 1 << bit
            with pytest.raises(InvalidDataFileError, match=r"f\.puffin"):
                deletion_vector_from_bytes(bytes(changed), file="f.puffin")
    for end in range(len(blob)):
        with pytest.raises(InvalidDataFileError):
            deletion_vector_from_bytes(blob[:end])
    with pytest.raises(InvalidDataFileError, match="manifest states 7"):
        deletion_vector_from_bytes(blob, cardinality=7)


@pytest.mark.parametrize("name", ["all containers and a tie", "two runs of 5", "over 32 bits"])
def test_a_bitmap_changed_under_a_right_checksum_is_an_error_or_a_set(name: str) -> None:
    """A bad writer, not a bad disk: no crash, and never another number of positions unseen."""
    vector = deletion_vector_to_bytes(JAVA_BLOBS[name][0])[8:-4]
    for position in range(min(len(vector), 90)):
        for bit in (0, 3, 7):
            changed = bytearray(vector)
            changed[position] ^= 1 << bit
            try:
                found = deletion_vector_from_bytes(framed(bytes(changed)))
            except InvalidDataFileError:
                continue
            assert list(found) == sorted(set(found))


@pytest.mark.parametrize("position", [-1, 2**63, 2**64])
def test_positions_out_of_range(position: int) -> None:
    """Rule 248."""
    with pytest.raises(ValidationError, match="2\\^63-1"):
        deletion_vector_to_bytes([1, position])


@given(
    st.sets(st.integers(0, 2**40) | st.integers(0, 200_000), max_size=60),
    st.lists(st.tuples(st.integers(0, 2**34), st.integers(1, 9000)), max_size=4),
)
def test_round_trip(single: set[int], runs: list[tuple[int, int]]) -> None:
    positions = single.union(*(range(start, start + length) for start, length in runs))
    blob = deletion_vector_to_bytes(positions)
    assert list(deletion_vector_from_bytes(blob)) == sorted(positions)
    assert deletion_vector_to_bytes(sorted(positions, reverse=True)) == blob
