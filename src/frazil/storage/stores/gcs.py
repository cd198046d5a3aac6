"""Google Cloud Storage: logging in, and absence told from refusal."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import fsspec

from frazil.storage.stores.remote import RemoteStore
from frazil.storage.stores.remote_options import AccessToken


class GcsStore(RemoteStore):
    """A RemoteStore whose driver answers "no" to a question that the store refuses."""

    def exists(self, path: str) -> bool:
        """Whether an object or folder has this name."""
        return self._info(path) is not None

    def is_folder(self, path: str) -> bool:
        """Whether objects lie below this name."""
        info = self._info(path)
        if info is None or info["type"] == "directory":
            return info is not None
        return any(True for _ in self._direct_children(path))

    def _info(self, path: str) -> Mapping[str, Any] | None:
        self._forget(path)
        try:
            found: Mapping[str, Any] = self._fs.info(self._driver_path(path))
        except FileNotFoundError:
            return None
        return found


def gcs_file_system(options: Mapping[str, Any]) -> Any:
    """The driver's file system for the options of ``storage_options``."""
    given = dict(options)
    if isinstance(token := given.get("token"), AccessToken):
        given["token"] = _credentials(token)
    if "endpoint_url" in given:
        # The default class asks Google over gRPC what kind of bucket it is, whatever the host.
        made = importlib.import_module("gcsfs.core").GCSFileSystem
        return made(skip_instance_cache=True, **given)
    return fsspec.filesystem("gcs", skip_instance_cache=True, **given)


def _credentials(token: AccessToken) -> Any:
    """The token for the driver, which asks Google about a bare one in a URL that gets logged."""
    expiry = token.expires_ms
    # Google's library takes naive times for UTC.
    ends = None if expiry is None else datetime.fromtimestamp(expiry / 1000, UTC)
    module = importlib.import_module("google.oauth2.credentials")
    return module.Credentials(token.text, expiry=ends and ends.replace(tzinfo=None))
