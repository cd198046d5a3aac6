"""The rows of snapshots, read without Frazil: manifests by fastavro, files by PyArrow."""

from __future__ import annotations

from collections import Counter, defaultdict

import fastavro
import pyarrow.parquet as pq
from pyroaring import BitMap64

from maintenance.independent_walk import local

DATA, POSITIONS, KEYS = 0, 1, 2
REMOVED = 2


class RowsByHand:
    """Reads each manifest, data file and delete file once, whichever snapshots have it.

    The table has one partition spec, and equality deletes name their columns.
    """

    def __init__(self, columns):
        self.columns = columns
        self.entries = {}
        self.rows = {}
        self.places = {}
        self.keys = {}

    def of(self, manifest_list):
        """How often a snapshot has each row, by the path of its manifest list."""
        data, deletes, by_key = {}, [], []
        with local(manifest_list).open("rb") as listed:
            for manifest in fastavro.reader(listed):
                for content, sequence, file in self.live(manifest):
                    if content == DATA:
                        assert file["file_path"] not in data, "a file is in a snapshot twice"
                        data[file["file_path"]] = sequence, file["partition"]
                    elif content == KEYS:
                        by_key.append((sequence, file["partition"], *self.keys_of(file)))
                    else:
                        deletes.append((sequence, file))
        gone = defaultdict(set)
        for sequence, file in deletes:
            for path, positions in self.deleted(file).items():
                # A delete is about files that are not newer than it.
                if path in data and data[path][0] <= sequence:
                    gone[path] |= positions
        found = Counter()
        for path, (written, partition) in data.items():
            deleted = gone.get(path, ())
            # An equality delete is about older files of its partition.
            apply = [
                (places, keys)
                for sequence, where, places, keys in by_key
                if written < sequence and where == partition
            ]
            found.update(
                row
                for n, row in enumerate(self.of_file(path))
                if n not in deleted
                and not any(tuple(row[at] for at in places) in keys for places, keys in apply)
            )
        return found

    def keys_of(self, file):
        """Which columns an equality delete file compares, by their places, and its keys."""
        path = file["file_path"]
        if path not in self.keys:
            with local(path).open("rb") as stored:
                table = pq.read_table(stored)
            assert table.num_rows == file["record_count"]
            places = [self.columns.index(name) for name in table.column_names]
            self.keys[path] = places, set(zip(*table.to_pydict().values(), strict=True))
        return self.keys[path]

    def live(self, manifest):
        """What each live entry of a manifest holds, its data sequence number, and its file."""
        path = manifest["manifest_path"]
        if path not in self.entries:
            with local(path).open("rb") as stored:
                entries = [each for each in fastavro.reader(stored) if each["status"] != REMOVED]
            self.entries[path] = [
                (
                    each["data_file"]["content"],
                    # Not stated, it is that of the commit that added the manifest.
                    manifest["sequence_number"]
                    if each["sequence_number"] is None
                    else each["sequence_number"],
                    each["data_file"],
                )
                for each in entries
            ]
        return self.entries[path]

    def of_file(self, path):
        """The rows of a data file in their order."""
        if path not in self.rows:
            with local(path).open("rb") as stored:
                table = pq.read_table(stored, columns=self.columns)
            self.rows[path] = list(zip(*table.to_pydict().values(), strict=True))
        return self.rows[path]

    def deleted(self, file):
        """The positions that a delete file or a vector holds, by data file."""
        assert file["content"] == POSITIONS
        key = file["file_path"], file.get("content_offset")
        if key not in self.places:
            read = _vector if file["file_format"].lower() == "puffin" else _positions
            self.places[key] = read(file)
            assert sum(map(len, self.places[key].values())) == file["record_count"]
        return self.places[key]


def _positions(file):
    found = defaultdict(set)
    with local(file["file_path"]).open("rb") as stored:
        table = pq.read_table(stored)
    for path, position in zip(*(table[c].to_pylist() for c in ("file_path", "pos")), strict=True):
        found[path].add(position)
    return found


def _vector(file):
    with local(file["file_path"]).open("rb") as stored:
        stored.seek(file["content_offset"])
        blob = stored.read(file["content_size_in_bytes"])
    # A length and a magic number before the bitmap, a checksum after it.
    return {file["referenced_data_file"]: set(BitMap64.deserialize(blob[8:-4]))}
