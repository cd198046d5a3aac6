"""Which files a table reaches, read by hand from its metadata as the specification has it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import fastavro


def local(path: str) -> Path:
    """The file of a path or of a URI of this disk."""
    return Path("/" + path.removeprefix("file:").lstrip("/"))


def metadata_of(path: str) -> dict[str, Any]:
    """What a metadata file says."""
    data = local(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def reached(metadata_location: str) -> set[Path]:
    """Metadata files, statistics, manifest lists, manifests and the files that they have."""
    found = {local(metadata_location)}
    metadata = metadata_of(metadata_location)
    found |= {local(entry["metadata-file"]) for entry in metadata.get("metadata-log", ())}
    for kind in ("statistics", "partition-statistics"):
        found |= {local(file["statistics-path"]) for file in metadata.get(kind, ())}
    for snapshot in metadata.get("snapshots", ()):
        found |= of_snapshot(snapshot)
    return found


def of_snapshot(snapshot: dict[str, Any]) -> set[Path]:
    """The files of one snapshot, with its metadata."""
    found = {local(snapshot["manifest-list"])}
    with local(snapshot["manifest-list"]).open("rb") as listed:
        manifests = [row["manifest_path"] for row in fastavro.reader(listed)]
    for manifest in manifests:
        found.add(local(manifest))
        with local(manifest).open("rb") as entries:
            # Status 2: the file was removed.
            found |= {
                local(entry["data_file"]["file_path"])
                for entry in fastavro.reader(entries)
                if entry["status"] != 2
            }
    return found


def lying(folder: str) -> set[Path]:
    """Every file below a folder."""
    return {path for path in local(folder).rglob("*") if path.is_file()}
