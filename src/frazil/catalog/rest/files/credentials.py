"""Credentials that a server gives with a table: kept with it, renewed before they end.

They are for places: of several the one with the longest prefix of a path is taken. They are in no
message, and whoever gets the files of a table in another process gets them as they are then.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from frazil.errors import FrazilError, StorageError
from frazil.storage.caches import Caches
from frazil.storage.files import FileInfo, FileIO
from frazil.storage.paths import is_secret
from frazil.storage.stores.remote_options import (
    StorageCredential,
    is_below,
    is_storage_property,
)
from frazil.storage.stores.store import Store

_LOG = logging.getLogger(__name__)
_LARGEST_MARGIN_MS: Final = 300_000
_PAUSE_MS: Final = 10_000
_ENDS: Final = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at")
_ADLS_ENDS: Final = "adls.sas-token-expires-at-ms"
_TIME: Final = re.compile(r"\d{1,18}", re.ASCII)

T = TypeVar("T")


def storage_credentials(
    answered: Sequence[Any], *, ahead_ms: int = 0
) -> tuple[StorageCredential, ...]:
    """Return the ``storage-credentials`` of an answer, those of the longest prefixes first.

    `ahead_ms`: how far this machine's clock is ahead of the server's. Raises StorageError where
    they are malformed; the message does not hold them.
    """
    found = []
    for each in answered:
        prefix = each.get("prefix") if isinstance(each, dict) else None
        config = each.get("config") if isinstance(each, dict) else None
        if not isinstance(prefix, str) or not isinstance(config, dict):
            raise StorageError("the REST catalog's server answered with malformed credentials")
        texts = {str(key): str(value) for key, value in config.items() if value is not None}
        found.append(StorageCredential(prefix, texts, ends_of(texts, ahead_ms=ahead_ms)))
    return tuple(sorted(found, key=lambda each: -len(each.prefix)))


def ends_of(config: Mapping[str, str], *, ahead_ms: int = 0) -> int | None:
    """Return when the first of some credentials ends by this machine's clock, in milliseconds.

    `config` has the time by the server's clock; `ahead_ms`: how far this machine's clock is ahead
    of it.
    """
    times = [
        int(value) + ahead_ms
        for name, value in config.items()
        if (name in _ENDS or name.startswith(_ADLS_ENDS)) and _TIME.fullmatch(value)
    ]
    return min(times, default=None)


class VendedFileIO(FileIO):
    """Files of a table, by the credentials that the server gave for them.

    Args:
        properties: of stores, for paths that no credential is for.
        credentials: of the longest prefixes first.
        location: of the table; `properties` shows what reaches it.
        renew: asks the server for new credentials; None where nobody can.
        caches: those of the catalog.
    """

    has_credentials = True

    def __init__(
        self,
        properties: Mapping[str, str],
        credentials: Sequence[StorageCredential],
        *,
        location: str,
        renew: Callable[[], Sequence[StorageCredential]] | None = None,
        caches: Caches | None = None,
    ) -> None:
        super().__init__(properties, caches=caches)
        self._base = dict(properties)
        self._location = location
        self._renew = renew
        self._renewing = threading.Lock()
        self._again_ms = 0
        self._take(credentials)

    def __getstate__(self) -> dict[str, Any]:
        self._renew_if_due()
        return {
            "properties": self._base,
            "credentials": [(each.prefix, dict(each.config)) for each in self._credentials],
            "location": self._location,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(  # type: ignore[misc]
            state["properties"],
            [StorageCredential(prefix, config) for prefix, config in state["credentials"]],
            location=state["location"],
        )

    @property
    def ends_ms(self) -> int | None:
        """When the first of the credentials ends, milliseconds since the epoch."""
        times = [each.ends_ms for each in self._credentials if each.ends_ms is not None]
        return min(times, default=None)

    @property
    def is_due(self) -> bool:
        """Whether the credentials end soon, or have ended."""
        return self._end_soon()

    @property
    def tag(self) -> str:
        """Text that changes with the credentials and says nothing of them."""
        self._renew_if_due()
        return "-".join(each.tag for each in self._credentials)

    def credentials(self) -> tuple[StorageCredential, ...]:
        """Return them, with the catalog's addresses of stores below; renewed if they end soon."""
        self._renew_if_due()
        addresses = {name: text for name, text in self._base.items() if not is_secret(name)}
        return tuple(
            replace(each, config={**addresses, **each.config}) for each in self._credentials
        )

    def list(self, prefix: str) -> Iterator[FileInfo]:
        return self._io_for(prefix).list(prefix)

    def _run(
        self,
        verb: str,
        path: str,
        on_disk: Callable[[str], T],
        on_store: Callable[[Store, str], T],
    ) -> T:
        return self._io_for(path)._run(verb, path, on_disk, on_store)

    def _io_for(self, path: str) -> FileIO:
        """The files that credentials of the longest prefix reach."""
        self._renew_if_due()
        for prefix, files in self._by_prefix:
            if is_below(prefix, path):
                return files
        return self._others

    def _take(self, credentials: Sequence[StorageCredential]) -> None:
        now = _now_ms()
        self._credentials = tuple(credentials)
        ends = self.ends_ms
        margin = 0 if ends is None else min(_LARGEST_MARGIN_MS, max(0, ends - now) // 4)
        self._due_ms = None if ends is None else ends - margin
        if ends is not None and ends <= now:
            # New ones that have ended: this clock is fast, and newer ones would have ended too.
            self._again_ms = now + _PAUSE_MS
        self._others = FileIO(store_properties(self._base), caches=self.caches)
        self._by_prefix = [
            (
                each.prefix,
                FileIO(store_properties({**self._base, **each.config}), caches=self.caches),
            )
            for each in credentials
        ]
        own = next((f for prefix, f in self._by_prefix if is_below(prefix, self._location)), None)
        shown = self._others if own is None else own
        self.properties = MappingProxyType(dict(shown.properties))

    def _end_soon(self) -> bool:
        return self._due_ms is not None and _now_ms() >= max(self._due_ms, self._again_ms)

    def _renew_if_due(self) -> None:
        """Renew the credentials shortly before they end."""
        if self._renew is None or not self.is_due:
            return
        with self._renewing:
            if not self._end_soon():
                return
            try:
                self._take(tuple(self._renew()))
            except FrazilError as error:
                # The old ones may live on for a while; the store says when they do not.
                _LOG.warning("credentials of %s were not renewed: %s", self._location, error)
                self._again_ms = _now_ms() + _PAUSE_MS


def store_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those properties that say how stores are reached."""
    return {name: text for name, text in properties.items() if is_storage_property(name)}


def _now_ms() -> int:
    return int(time.time() * 1000)
