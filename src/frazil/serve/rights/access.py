"""Who may do what: bearer tokens of a file, with the namespaces that each may read and write."""

from __future__ import annotations

import hashlib
import hmac
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from frazil.catalog.identifiers import Identifier, parse_named_namespace
from frazil.errors import ConfigurationError, ValidationError

WHOLE_CATALOG: Final[Identifier] = ()
_EVERYTHING: Final = "*"
_KEYS: Final = frozenset({"name", "token", "sha256", "read", "write"})
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_SHORTEST_TOKEN: Final = 16


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks, and what they may do.

    A namespace stands for what is in it and in all namespaces below; `WHOLE_CATALOG` for all.

    Attributes:
        name: for the log.
        reads: namespaces that may be read.
        writes: namespaces that may be read and changed.
    """

    name: str
    reads: frozenset[Identifier]
    writes: frozenset[Identifier]

    @property
    def reads_everything(self) -> bool:
        """Whether the whole catalog may be read."""
        return WHOLE_CATALOG in self.reads | self.writes

    @property
    def writes_everything(self) -> bool:
        """Whether the whole catalog may be changed."""
        return WHOLE_CATALOG in self.writes

    def may_read(self, namespace: Identifier) -> bool:
        """Whether the namespace and its tables may be read."""
        return _covers(self.reads | self.writes, namespace)

    def may_write(self, namespace: Identifier) -> bool:
        """Whether the namespace and its tables may be changed."""
        return _covers(self.writes, namespace)

    def may_see(self, namespace: Identifier) -> bool:
        """Whether the namespace is shown: it may be read, or one below it may."""
        return self.may_read(namespace) or any(
            granted[: len(namespace)] == namespace for granted in self.reads | self.writes
        )


ANYBODY: Final = Principal("-", frozenset(), frozenset({WHOLE_CATALOG}))
"""Who asks a server that has no tokens."""


class Tokens:
    """The tokens of a server; it knows their hashes alone."""

    def __init__(self, principals: Iterable[tuple[bytes, Principal]]) -> None:
        self._principals = tuple(principals)

    def principal(self, token: str) -> Principal | None:
        """Return whose token it is; how long it takes says nothing of the tokens that there are."""
        digest = _digest(token)
        found = None
        for held, principal in self._principals:
            if hmac.compare_digest(held, digest):
                found = principal
        return found

    def mark(self, token: str, key: bytes) -> bytes | None:
        """Return what stands for a token where it must not be itself; None if it is none.

        Nothing but the key makes it, and it tells nothing of the token.
        """
        return None if self.principal(token) is None else _mark(_digest(token), key)

    def principal_of_mark(self, mark: bytes, key: bytes) -> Principal | None:
        """Return whose token a mark stands for, as long as it is one."""
        found = None
        for held, principal in self._principals:
            if hmac.compare_digest(_mark(held, key), mark):
                found = principal
        return found


def read_tokens(path: Path) -> Tokens:
    """Return the tokens of a file of YAML, or of TOML where its name ends so.

    It holds a list ``tokens`` of entries with ``name``, either ``token`` or ``sha256`` (of the
    token, in hex), and the lists ``read`` and ``write`` of namespaces; ``"*"`` is the whole
    catalog.

    Raises:
        ConfigurationError: the file cannot be read or is of another form; no token is shown.
    """
    content = _content(path)
    entries = content.get("tokens") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise ConfigurationError(f"{path} has no list of tokens")
    found = [_entry(path, number, entry) for number, entry in enumerate(entries, 1)]
    if len({digest for digest, _ in found}) < len(found):
        raise ConfigurationError(f"{path} holds one token twice")
    return Tokens(found)


def _content(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"cannot read {path}: {type(error).__name__}") from None
    is_toml = path.suffix == ".toml"
    try:
        return tomllib.loads(text) if is_toml else yaml.safe_load(text)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, RecursionError, ValueError):
        # The parser's message quotes the file, which holds secrets.
        raise ConfigurationError(f"{path} is not {'TOML' if is_toml else 'YAML'}") from None


def _entry(path: Path, number: int, entry: Any) -> tuple[bytes, Principal]:
    where = f"token {number} of {path}"
    if not isinstance(entry, dict) or not entry.keys() <= _KEYS:
        raise ConfigurationError(f"{where} may have only {', '.join(sorted(_KEYS))}")
    name = entry.get("name", f"token-{number}")
    if not isinstance(name, str) or not name.isprintable() or not name.strip():
        raise ConfigurationError(f"the name of {where} must be text of one line")
    reads, writes = (_namespaces(where, key, entry.get(key, [])) for key in ("read", "write"))
    if not reads | writes:
        raise ConfigurationError(f"{where} may neither read nor write: name its namespaces")
    return _hash_of(where, entry), Principal(name, reads, writes)


def _hash_of(where: str, entry: dict[str, Any]) -> bytes:
    token, sha256 = entry.get("token"), entry.get("sha256")
    if (token is None) == (sha256 is None):
        raise ConfigurationError(f"{where} needs either token or sha256")
    if token is not None:
        if not isinstance(token, str) or len(token) < _SHORTEST_TOKEN:
            raise ConfigurationError(
                f"the token of {where} must be text of {_SHORTEST_TOKEN} characters or more"
            )
        return _digest(token)
    if not isinstance(sha256, str) or not _HASH.fullmatch(sha256):
        raise ConfigurationError(f"the sha256 of {where} must be 64 hex digits")
    return bytes.fromhex(sha256)


def _namespaces(where: str, key: str, listed: Any) -> frozenset[Identifier]:
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ConfigurationError(f"{key} of {where} must be a list of namespaces")
    try:
        return frozenset(
            WHOLE_CATALOG if each == _EVERYTHING else parse_named_namespace(each) for each in listed
        )
    except ValidationError as error:
        raise ConfigurationError(f"{key} of {where}: {error}") from None


def _covers(granted: Iterable[Identifier], namespace: Identifier) -> bool:
    return any(namespace[: len(each)] == each for each in granted)


def _mark(digest: bytes, key: bytes) -> bytes:
    return hmac.digest(key, b"token" + digest, "sha256")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
