"""What new snapshots name: manifests and files of the client's places, or of the table already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from frazil.errors import MissingFileError, ValidationError
from frazil.format.metadata import TableMetadata
from frazil.format.snapshots import Snapshot
from frazil.planning.load import listed_manifests
from frazil.serve.rights.places import Places
from frazil.storage.avro import read_file_paths
from frazil.storage.files import FileIO
from frazil.storage.side_by_side import WAITING_THREADS, in_threads


def require_named_files(
    io: FileIO, places: Places, snapshots: Sequence[Snapshot], *, of: TableMetadata | None
) -> None:
    """Check the manifests that snapshots list, and the files that new ones of these name.

    Args:
        io: reads the client's places alone.
        places: where what is named must lie, unless the table has it already.
        snapshots: new ones.
        of: the table as it is; None for one that is new here.

    Raises:
        ValidationError: something lies elsewhere, or is not there.
        InvalidManifestError: a list or a manifest is none.
    """
    known = () if of is None else of.snapshots
    parents = {each.parent_snapshot_id for each in snapshots}
    nearest = [each for each in known if each.snapshot_id in parents]
    before = set(_manifests(io, nearest))
    new = [each for each in _manifests_of_client(io, snapshots) if each not in before]
    if any(not places.hold(each) for each in new) and len(nearest) < len(known):
        before |= set(_manifests(io, known))
        new = [each for each in new if each not in before]
    for each in new:
        places.require(each, "a manifest of the snapshot")
    outside = [each for each in _files_in(io, new) if not places.hold(each)]
    if outside:
        held = set(_files_in(io, sorted(before | set(_manifests(io, known)))))
        for path in outside:
            if path not in held:
                places.require(path, "a file of the snapshot")


def _manifests_of_client(io: FileIO, snapshots: Sequence[Snapshot]) -> list[str]:
    try:
        return _manifests(io, snapshots, may_be_missing=False)
    except MissingFileError as error:
        raise ValidationError(f"the snapshot cannot be added: {error}") from None


def _manifests(
    io: FileIO, snapshots: Sequence[Snapshot], *, may_be_missing: bool = True
) -> list[str]:
    """The manifests of snapshots, each once."""

    def listed_paths(snapshot: Snapshot) -> Iterable[str]:
        if snapshot.manifest_list is None:
            return snapshot.manifests or ()
        try:
            return [each.manifest_path for each in listed_manifests(io, snapshot)]
        except MissingFileError:
            if may_be_missing:
                return ()
            raise

    found = in_threads(listed_paths, snapshots, threads=WAITING_THREADS, name="frazil-lists")
    return list(dict.fromkeys(chain.from_iterable(found)))


def _files_in(io: FileIO, manifests: Sequence[str]) -> Iterable[str]:
    def read(path: str) -> tuple[str, ...]:
        try:
            return read_file_paths(io, path)
        except MissingFileError:
            return ()

    found = in_threads(read, manifests, threads=WAITING_THREADS, name="frazil-manifests")
    return dict.fromkeys(chain.from_iterable(found))
