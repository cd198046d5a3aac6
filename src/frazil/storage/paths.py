"""Paths as text: schemes, equality, containment, and what must not be shown.

Iceberg paths are literal (SPEC rule 8): nothing in them is percent-encoded, so ``file:///a%20b``
is a file whose name holds a percent sign.  Only the scheme and the authority are parsed here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from frazil.errors import ConfigurationError, ValidationError

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*):(?=/)")
_USER_INFO = re.compile(r"(?<=://)[^/@\s'\"]*:[^/\s'\"]*@")
_ASSIGNED = re.compile(
    r"(?i)(?<![a-z0-9])((?:\w+[_-])?(?:password|passwd|pwd|secret|token|sig)"
    r"|accountkey|sharedaccesssignature|private_key)"
    r"(['\"]?\s*[=:]\s*['\"]?)([^\s,;&)'\"]+)"
)
_AUTHORIZATION = re.compile(
    r"(?i)\b(authorization['\"]?\s*[=:]\s*['\"]?)(?:[a-z][\w-]*\s+)?[^\s,;'\"]+"
)
_SECRET_WORDS = (
    "secret",
    "password",
    "passwd",
    "token",
    "credential",
    "access-key",
    "account-key",
    "private-key",
    "sas",
    "connection-string",
    "connection_string",
    "session-kwargs",
    "external-id",
    "authorization",
)
_HEADER = "header."
_DELEGATION = "header.x-iceberg-access-delegation"
REDACTED = "***"


def scheme_of(path: str) -> str:
    """The scheme in lower case, or ``""`` for a plain local path."""
    match = _SCHEME.match(path)
    return match.group(1).lower() if match else ""


def is_local(path: str) -> bool:
    """Whether the path lies on the local file system: no scheme, or ``file:``."""
    return scheme_of(path) in ("", "file")


def local_path(path: str) -> str | None:
    """The operating system's name of a local file, or None for another store.

    ``file:///a``, ``file:/a``, ``file://localhost/a`` and ``/a`` name the same file.
    """
    scheme = scheme_of(path)
    if scheme == "":
        return path
    if scheme != "file":
        return None
    rest = path[len("file:") :]
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        if host not in ("", "localhost"):
            raise ValidationError(
                f"the file URI {path!r} names the host {host!r}: a local file is file:///<path>"
            )
        rest = slash + tail
    return _squeeze_leading_slashes(rest)


def normalize_location(location: str | os.PathLike[str]) -> str:
    """The one spelling of a location, so that equal locations compare equal.

    A local path becomes ``file:///absolute`` with ``.``, ``..`` and doubled slashes resolved as
    text; other stores keep their text.  Trailing slashes go.
    """
    text = os.fspath(location)
    if not text.strip():
        raise ConfigurationError(
            "a location is empty: give a folder or a URI such as s3://bucket/path"
        )
    local = local_path(text)
    if local is None:
        stripped = text.rstrip("/")
        return text if stripped.endswith(":") else stripped
    return "file://" + _squeeze_leading_slashes(os.path.abspath(local))


def same_location(left: str, right: str) -> bool:
    """Whether two paths name the same place, whatever their spelling."""
    return left == right or normalize_location(left) == normalize_location(right)


def join(base: str, *parts: str) -> str:
    """Join with exactly one slash between base and each part (SPEC rules 305, 306)."""
    return "/".join([base.rstrip("/"), *parts]) if parts else base


def parent_of(path: str) -> str:
    """The folder that holds the path, in the path's own spelling."""
    return path.rstrip("/").rpartition("/")[0]


def name_of(path: str) -> str:
    """The last part of the path."""
    return path.rstrip("/").rpartition("/")[2]


def is_inside(base: str, path: str) -> bool:
    """Whether the path lies below the base folder, after both are normalized."""
    folder = normalize_location(base).rstrip("/") + "/"
    candidate = path if not is_local(path) else normalize_location(path)
    if not candidate.startswith(folder):
        return False
    return ".." not in candidate[len(folder) :].split("/")


def is_secret(key: str) -> bool:
    """Whether a property's name says that its value is a secret."""
    lowered = key.lower()
    if lowered.startswith(_HEADER):
        return lowered != _DELEGATION
    return any(word in lowered for word in _SECRET_WORDS)


def redact(text: str, properties: Mapping[str, str] | None = None) -> str:
    """The text without user info of URIs, ``password=…`` and the values of secret properties.

    Values go in every spelling that a URL can give them.
    """
    shown = text
    for key, value in (properties or {}).items():
        if is_secret(key):
            parts = (found[3] for found in _ASSIGNED.finditer(value))
            for secret in sorted((value, *parts), key=len, reverse=True):
                # A header may be no secret: a short word of it would go from every message.
                if len(secret) > (7 if key.lower().startswith(_HEADER) else 3):
                    shown = re.sub(_in_any_spelling(secret), REDACTED, shown)
    shown = _USER_INFO.sub(f"{REDACTED}@", shown)
    shown = _AUTHORIZATION.sub(rf"\1{REDACTED}", shown)
    return _ASSIGNED.sub(rf"\1\2{REDACTED}", shown)


def redact_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties as they may be shown."""
    return {key: REDACTED if is_secret(key) else redact(value) for key, value in properties.items()}


def _in_any_spelling(value: str) -> str:
    """A pattern of the value where each character may be percent-encoded, more than once too."""
    return "".join(
        each
        if each.isascii() and each.isalnum()
        else f"(?:{re.escape(each)}|{_encode_character(each)})"
        for each in unquote(value)
    )


def _encode_character(character: str) -> str:
    encoded = "".join(f"%(?:25)*{byte:02x}" for byte in character.encode(errors="replace"))
    return f"(?i:{encoded})" + (r"|\+" if character == " " else "")


def _squeeze_leading_slashes(path: str) -> str:
    return "/" + path.lstrip("/") if path.startswith("/") else path
