"""Tables as a server answers with them: metadata, files with their credentials, and what is kept.

A table is kept with its ETag, so that one that has not changed is not sent again. What is kept is
in the lake's cache of metadata, bounded with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, cast

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import LoadedTable, StagedTable
from frazil.catalog.rest import routes
from frazil.catalog.rest.client import RestRequest
from frazil.catalog.rest.connection import Connection
from frazil.catalog.rest.exchange.answers import Answer, Refusals
from frazil.catalog.rest.files.credentials import (
    VendedFileIO,
    ends_of,
    storage_credentials,
    store_properties,
)
from frazil.catalog.rest.files.signing import SignedFileIO, SigningPlace, is_signed
from frazil.catalog.rest.login.base import can_be_sent
from frazil.catalog.rest.settings import SNAPSHOT_LOADING, TOKEN
from frazil.errors import NoSuchTableError, StorageError, UnsupportedError, ValidationError
from frazil.format.metadata import TableMetadata, metadata_from_json
from frazil.format.metadata.referenced_snapshots import ReferencedSnapshots
from frazil.format.new_table import creation_updates
from frazil.format.snapshots import Snapshot
from frazil.storage.caches import BoundedCache
from frazil.storage.files import FileIO
from frazil.storage.stores.remote_options import StorageCredential

CHOSEN_BY_SERVER: Final = "chosen-by-the-server:/"
"""What the location of a new table begins with whose place the server is to choose."""

_MEMORY_PER_BYTE: Final = 8
_PLANNING: Final = "scan-planning-mode"
_OWN_KEYS: Final = ("s3.access-key-id", "client.access-key-id", "s3.profile-name", "s3.anonymous")


@dataclass(frozen=True, slots=True)
class KeptTable:
    """A table as the server last answered with it.

    Attributes:
        loaded: the table.
        etag: what the server calls this state; None if it says nothing.
        token: for requests about this table alone.
    """

    loaded: LoadedTable
    etag: str | None = None
    token: str | None = field(default=None, repr=False)


class TableAnswers:
    """Makes tables of a server's answers, and keeps them by their names."""

    def __init__(self, connection: Connection, io: FileIO) -> None:
        self._connection = connection
        self._io = io
        self._key = object()
        self._is_partial = SNAPSHOT_LOADING.of(connection.properties) == "refs"

    def load(self, name: Identifier) -> LoadedTable:
        """Return a table; one that has not changed since it was kept is not sent again."""
        kept = self.kept_table(name)
        etag = None if kept is None or _is_due(kept.loaded) else kept.etag
        request = RestRequest(
            "GET",
            self._connection.routes.table(name),
            f"load the table {shown(name)}",
            params={"snapshots": "refs"} if self._is_partial else {},
            headers={} if etag is None else {"If-None-Match": etag},
            refusals=Refusals(missing=NoSuchTableError),
        )
        answer = self._connection.client.read(request, also=(304,))
        if answer.status == 304:
            if kept is None or etag is None:
                raise StorageError(
                    f"cannot load the table {shown(name)}: the server says that it has not "
                    f"changed, and was not asked that"
                )
            return kept.loaded
        loaded = self.keep(name, answer, is_partial=self._is_partial)
        if self._is_partial and _has_short_log(loaded.metadata):
            # A server that leaves snapshots out may leave out what else is about them.
            return self.load_whole(name)
        return loaded

    def load_whole(self, name: Identifier) -> LoadedTable:
        """Return a table with all snapshots that it has at one moment."""
        if not self._is_partial:
            return self.load(name)
        self.forget(name)
        return self.keep(name, self._whole_answer(name, f"load the table {shown(name)}"))

    def kept_table(self, name: Identifier) -> KeptTable | None:
        """Return a table as it was last seen."""
        return self._cache().get((self._key, name))

    def forget(self, name: Identifier) -> None:
        """Forget a table that is gone, or has another name."""
        self._cache().remove((self._key, name))

    def new_token(self, name: Identifier) -> str | None:
        """Return the token that the server now gives for requests about a table."""
        self.forget(name)
        self.load(name)
        kept = self.kept_table(name)
        return None if kept is None else kept.token

    def keep(
        self,
        name: Identifier,
        answer: Answer,
        before: LoadedTable | None = None,
        *,
        is_partial: bool = False,
    ) -> LoadedTable:
        """Return the table of an answer, which is kept.

        `before` is the table whose commit the answer is of; its files stay reachable as they were.
        `is_partial`: the server was asked for those snapshots alone that a branch or tag is at.
        Raises UnsupportedError where the server wants reads or writes in a way that this release
        has not.
        """
        body = answer.json()
        location = metadata_location_in(body, shown(name))
        metadata = self._metadata(name, body, location, is_partial=is_partial)
        if before is not None and "config" not in body and "storage-credentials" not in body:
            loaded = LoadedTable(name, metadata, location, before.io, before.config)
        else:
            config, io = self._files(name, body, metadata, answer.clock_ahead_ms)
            loaded = LoadedTable(name, metadata, location, io, config)
        entry = KeptTable(loaded, answer.headers.get("etag"), loaded.config.get(TOKEN))
        self._cache().put((self._key, name), entry, _size_of(answer))
        return loaded

    def staged_table(self, name: Identifier, answer: Answer) -> StagedTable:
        """Return the staged table of an answer; its making is a list of updates."""
        body = answer.json()
        metadata = metadata_from_json(body.get("metadata"))
        config, io = self._files(name, body, metadata, answer.clock_ahead_ms)
        return StagedTable(name, metadata, io, config, creation_updates(metadata))

    def _metadata(
        self, name: Identifier, body: Mapping[str, Any], location: str, *, is_partial: bool
    ) -> TableMetadata:
        """The metadata, not parsed again where it is of the file that is kept."""
        content = body.get("metadata")
        answered = content if isinstance(content, dict) else {}
        kept = self.kept_table(name)
        known = None if kept is None else kept.loaded.metadata
        if known is not None and answered.get("table-uuid") != known.table_uuid:
            known = None
        is_same_file = kept is not None and kept.loaded.metadata_location == location
        same_time = known is not None and answered.get("last-updated-ms") == known.last_updated_ms
        if known is not None and is_same_file and same_time:
            return known
        metadata = metadata_from_json(content, file=location, known=known)
        if not is_partial or _has_others_than_referenced(metadata):
            return metadata
        get_all = partial(self._all_snapshots, name, metadata, location)
        return replace(metadata, snapshots=ReferencedSnapshots(metadata.snapshots, get_all))

    def _all_snapshots(
        self, name: Identifier, partial_metadata: TableMetadata, location: str
    ) -> Sequence[Snapshot]:
        """Return all snapshots of a table that was loaded with some of them.

        The table may have changed since: newer snapshots are left out, and those that are at hand
        stay.
        Raises NoSuchTableError: the table is gone; ValidationError: the name now belongs to another
        table.
        """
        answer = self._whole_answer(name, f"load the snapshots of the table {shown(name)}")
        body = answer.json()
        newest_location = metadata_location_in(body, shown(name))
        newest = metadata_from_json(
            body.get("metadata"), file=newest_location, known=partial_metadata
        )
        if newest.table_uuid != partial_metadata.table_uuid:
            raise ValidationError(
                f"{shown(name)} is another table now: its uuid was {partial_metadata.table_uuid} "
                f"and is {newest.table_uuid}; load it again"
            )
        kept = self.kept_table(name)
        if kept is not None and kept.loaded.metadata_location == location:
            # It holds the others from now on.
            self._cache().put((self._key, name), kept, _size_of(answer))
        if newest_location == location:
            return newest.snapshots
        found = {
            snapshot.snapshot_id: snapshot
            for snapshot in newest.snapshots
            if _is_no_newer(snapshot, partial_metadata)
        }
        found |= partial_metadata.snapshots_at_hand
        return sorted(found.values(), key=lambda each: (each.sequence_number, each.timestamp_ms))

    def _whole_answer(self, name: Identifier, what: str) -> Answer:
        """The answer with all snapshots of a table."""
        request = RestRequest(
            "GET",
            self._connection.routes.table(name),
            what,
            params={"snapshots": "all"},
            refusals=Refusals(missing=NoSuchTableError),
        )
        return self._connection.client.read(request)

    def _files(
        self, name: Identifier, body: Mapping[str, Any], metadata: TableMetadata, ahead_ms: int
    ) -> tuple[dict[str, str], FileIO]:
        """What the server says of a table alone, and its files."""
        answered = body.get("config") or {}
        if not isinstance(answered, dict):
            raise StorageError(f"the server answered with a malformed config of {shown(name)}")
        config = {str(key): str(value) for key, value in answered.items() if value is not None}
        check_token(config.get(TOKEN), name)
        if self._io.stores is not None:
            # The session's own configuration reaches every file.
            return config, self._io
        vended = storage_credentials(body.get("storage-credentials") or (), ahead_ms=ahead_ms)
        if config.get(_PLANNING, "").lower() == "server":
            raise UnsupportedError(
                f"the server wants to plan scans of {shown(name)} itself "
                f"({_PLANNING}=server), which this release does not have"
            )
        own = {**store_properties(self._connection.properties), **store_properties(config)}
        alone = StorageCredential("", store_properties(config), ends_of(config, ahead_ms=ahead_ms))
        if not vended and (alone.holds_keys or alone.ends_ms is not None):
            vended = (alone,)
        if not vended and self._is_signed(body, config):
            place = SigningPlace.of(self._connection, name, body, config, config.get(TOKEN))
            return config, SignedFileIO(own, self._connection, place, caches=self._io.caches)
        if not vended:
            is_same = own == self._io.properties
            return config, self._io if is_same else FileIO(own, caches=self._io.caches)
        io = VendedFileIO(
            own,
            vended,
            location=metadata.location,
            renew=partial(self._new_credentials, name, config.get(TOKEN)),
            caches=self._io.caches,
        )
        return config, io

    def _is_signed(self, body: Mapping[str, Any], config: Mapping[str, str]) -> bool:
        """Whether the server signs the requests for files, of which nobody has keys."""
        properties = self._connection.properties
        has_keys = any(key in properties for key in _OWN_KEYS)
        return not has_keys and is_signed(body, {**properties, **config})

    def _new_credentials(self, name: Identifier, token: str | None) -> Sequence[StorageCredential]:
        """New credentials of a table: alone where the server has such a request, or with it."""
        connection = self._connection
        below = ("credentials",) if connection.has_endpoint(routes.LOAD_CREDENTIALS) else ()
        request = RestRequest(
            "GET",
            connection.routes.table(name, *below),
            f"renew the credentials of the table {shown(name)}",
            token=token,
            refusals=Refusals(missing=NoSuchTableError),
        )
        answer = connection.client.read(request)
        body, ahead_ms = answer.json(), answer.clock_ahead_ms
        vended = storage_credentials(body.get("storage-credentials") or (), ahead_ms=ahead_ms)
        config = body.get("config")
        if not vended and not config:
            raise StorageError(f"the server gave no credentials of the table {shown(name)}")
        if vended or not isinstance(config, dict):
            return vended
        texts = {str(key): str(value) for key, value in config.items()}
        return (StorageCredential("", store_properties(texts), ends_of(texts, ahead_ms=ahead_ms)),)

    def _cache(self) -> BoundedCache[KeptTable]:
        return cast("BoundedCache[KeptTable]", self._io.caches["metadata"])


def _size_of(answer: Answer) -> int:
    """How much memory the table of an answer takes, with all that the answer tells."""
    return len(answer.content) * _MEMORY_PER_BYTE


def is_chosen(location: str) -> bool:
    """Whether the server is to choose the place."""
    return location.startswith(CHOSEN_BY_SERVER)


def check_token(token: str | None, name: Identifier) -> None:
    """Raise StorageError if the server gave a token of a table or view that cannot be sent."""
    if token is not None and not can_be_sent(token):
        raise StorageError(f"the server answered with a token of {shown(name)} that is none")


def identifier_json(name: Identifier) -> dict[str, object]:
    """Return the protocol's object of a table's or a view's name."""
    return {"namespace": list(name[:-1]), "name": name[-1]}


def creation_request(
    name: Identifier, metadata: TableMetadata, *, location: str | None
) -> dict[str, Any]:
    """Return what asks a server for a new table of such metadata.

    `location`: where it is to lie; None lets the server choose.
    """
    request: dict[str, Any] = {
        "name": name[-1],
        "schema": metadata.schema.to_json(),
        "properties": {**metadata.properties, "format-version": str(metadata.format_version)},
    }
    if metadata.spec.fields:
        request["partition-spec"] = metadata.spec.to_json()
    if metadata.sort_order.fields:
        request["write-order"] = metadata.sort_order.to_json()
    if location is not None:
        request["location"] = location
    return request


def is_alike(made: TableMetadata, wanted: TableMetadata) -> bool:
    """Whether a table is empty and has the definition that was asked for."""
    return (
        not made.snapshots
        and made.schema.to_json() == wanted.schema.to_json()
        and made.spec.fields == wanted.spec.fields
        and made.sort_order.fields == wanted.sort_order.fields
        and wanted.properties.items() <= made.properties.items()
    )


def metadata_location_in(body: Mapping[str, Any], what: str) -> str:
    """Return where an answer says that the metadata file of a table or view lies.

    Raises StorageError: it says nothing.
    """
    location = body.get("metadata-location")
    if not isinstance(location, str) or not location:
        raise StorageError(
            f"the REST catalog's server answered without the metadata-location of {what}"
        )
    return location


def _has_others_than_referenced(metadata: TableMetadata) -> bool:
    """Whether there are snapshots that no branch or tag is at: then all of them were sent."""
    referenced = {ref.snapshot_id for ref in metadata.refs.values()}
    return not metadata.snapshots_by_id.keys() <= referenced


def _has_short_log(metadata: TableMetadata) -> bool:
    """Whether the log of snapshots begins with the current one, which has a parent."""
    current, log = metadata.current_snapshot, metadata.snapshot_log
    if current is None or current.parent_snapshot_id is None:
        return False
    return not log or log[0].snapshot_id == current.snapshot_id


def _is_no_newer(snapshot: Snapshot, metadata: TableMetadata) -> bool:
    """Whether a snapshot is no newer than a state of its table."""
    if metadata.format_version == 1:
        return snapshot.timestamp_ms <= metadata.last_updated_ms
    return snapshot.sequence_number <= metadata.last_sequence_number


def _is_due(table: LoadedTable) -> bool:
    """Whether the credentials of a table are to be renewed, which a whole answer does."""
    return isinstance(table.io, VendedFileIO) and table.io.is_due
