"""Which catalog is meant: keywords, then environment variables, then a file (PyIceberg's names).

``FRAZIL_CATALOG__PROD__S3__ACCESS_KEY_ID`` sets ``s3.access-key-id`` of the catalog ``prod``; the
file ``~/.frazil.yaml`` (or ``.pyiceberg.yaml``) holds ``catalog: {prod: {uri: …}}``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frazil.catalog.config_file import config_files, read_config_file, shape_error
from frazil.catalog.keyring_secrets import IN_KEYRING, with_secrets
from frazil.catalog.kinds import (
    IMPLEMENTATION,
    catalog_class,
    class_by_path,
    property_names,
    property_prefixes,
)
from frazil.catalog.protocol import Catalog
from frazil.errors import ConfigurationError
from frazil.format.properties.table import (
    STATUS_CHECKS,
    STATUS_MAX_WAIT,
    STATUS_MIN_WAIT,
    STATUS_TIMEOUT,
)
from frazil.later import later
from frazil.storage.caches import CACHE_SIZES
from frazil.storage.files import FileIO
from frazil.storage.paths import is_local, join, local_path, normalize_location, redact_properties
from frazil.storage.stores.remote_options import is_storage_property, storage_property_names
from frazil.storage.stores.store import Stores

if TYPE_CHECKING:
    from frazil.catalog.pointer.sql.engine import sqlite_uri
else:
    sqlite_uri = later("frazil.catalog.pointer.sql.engine", "sqlite_uri")


DEFAULT_NAME = "default"
DATABASE_NAME = "catalog.db"
_ENVIRONMENT_PREFIXES = ("PYICEBERG_CATALOG__", "FRAZIL_CATALOG__")
_COMMON_PROPERTIES = frozenset(
    {
        "type",
        IMPLEMENTATION,
        "uri",
        "warehouse",
        IN_KEYRING,
        *(size.name for size in CACHE_SIZES.values()),
        *(each.name for each in (STATUS_CHECKS, STATUS_MIN_WAIT, STATUS_MAX_WAIT, STATUS_TIMEOUT)),
    }
)


@dataclass(frozen=True, slots=True)
class CatalogConfig:
    """A catalog's name and properties; secrets do not show in its repr."""

    name: str
    properties: Mapping[str, str]

    def __repr__(self) -> str:
        return f"CatalogConfig({self.name!r}, {redact_properties(self.properties)})"


def load_catalog(name: str | None = None, **properties: Any) -> Catalog:
    """The configured catalog.

    Keyword names may be written with underscores for hyphens and dots only where they are so in
    the property; give the others as ``**{"s3.endpoint": …}``.
    """
    return open_catalog(resolve(name, properties))


def resolve(
    name: str | None = None,
    properties: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    files: Iterable[Path] | None = None,
) -> CatalogConfig:
    """Merge what keywords, environment and file say; the earlier of these wins.

    What the property ``keyring`` names comes from the system's keyring, unless one of them has it.
    `name` is ``default`` and `environment` ``os.environ`` unless given. Of `files` the first that
    exists is read; unless given, ``.frazil.yaml`` and ``.pyiceberg.yaml`` in $FRAZIL_HOME,
    $PYICEBERG_HOME, the home and the current folder. Environment and file are shared with other
    engines, so names that mean nothing here are left to them; the caller's are refused.
    """
    found = configured_catalog(name, properties, environment=environment, files=files)
    return CatalogConfig(found.name, with_secrets(found.name, found.properties))


def configured_catalog(
    name: str | None = None,
    properties: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    files: Iterable[Path] | None = None,
) -> CatalogConfig:
    """Merge as `resolve` does, and leave the keyring alone: its part stays a reference."""
    given = _flat_properties(properties or {})
    refuse_unknown(given)
    chosen = name or DEFAULT_NAME
    variables = os.environ if environment is None else environment
    candidates = config_files(variables) if files is None else files
    merged = {
        **_from_file(chosen, candidates),
        **_from_environment(chosen, variables),
        **_texts(given, f"the catalog {chosen}"),
    }
    return CatalogConfig(chosen, merged)


def configured_names(
    *, environment: Mapping[str, str] | None = None, files: Iterable[Path] | None = None
) -> list[str]:
    """Return the names of the catalogs that environment and file know, in order.

    A name of a variable is in small letters.
    """
    variables = os.environ if environment is None else environment
    file = read_config_file(config_files(variables) if files is None else files)
    names = set() if file is None else {str(name) for name in file.catalogs}
    known = {name.upper().replace("-", "_") for name in names}
    for variable in variables:
        for prefix in _ENVIRONMENT_PREFIXES:
            name, between, _ = variable.upper().removeprefix(prefix).partition("__")
            if variable.upper().startswith(prefix) and between and name not in known:
                names.add(name.lower())
    return sorted(names)


def sources_of(
    name: str,
    *,
    environment: Mapping[str, str] | None = None,
    files: Iterable[Path] | None = None,
) -> list[str]:
    """Return where a catalog's settings are: the path of the file, "environment", or both."""
    variables = os.environ if environment is None else environment
    file = read_config_file(config_files(variables) if files is None else files)
    found = [] if file is None or name not in file.catalogs else [str(file.path)]
    return found + (["environment"] if _from_environment(name, variables) else [])


def refuse_unknown(properties: Mapping[str, Any]) -> None:
    """Check that a caller's properties have names that mean something."""
    common = _COMMON_PROPERTIES | storage_property_names()
    special = [n for n in properties if n not in common and not is_storage_property(n)]
    own = property_names(properties) if special else None
    if own is None:
        return
    known, prefixes = common | own, property_prefixes(properties)
    for name in special:
        if name in known or name.startswith(prefixes):
            continue
        near = get_close_matches(name.lower().replace("_", "-"), known, n=1)
        advice = f"is {near[0]} meant?" if near else "docs/reference/properties.md lists them"
        raise ConfigurationError(f"there is no catalog property {name!r}: {advice}")


def open_catalog(config: CatalogConfig, *, stores: Stores | None = None) -> Catalog:
    """The catalog of a configuration.

    Without ``type`` a database URI means sql, and one of a web server rest.  Without ``type`` and
    ``uri`` a local warehouse gets a SQLite database in its folder.  ``py-catalog-impl`` names a
    class in place of a type.
    `stores`: opens the stores of its files; as of `FileIO`.
    """
    properties = dict(config.properties)
    implementation = implementation_of(config)
    if implementation.kind == "sql" and "uri" not in properties:
        properties["uri"] = _default_database(config.name, properties)
    io = None if stores is None else FileIO(properties, stores=stores)
    return implementation(config.name, properties, io=io)


def implementation_of(config: CatalogConfig) -> type[Catalog]:
    """Return the class that a configuration means; nothing is opened."""
    name, properties = config.name, config.properties
    path, kind = properties.get(IMPLEMENTATION), properties.get("type", "").lower()
    if path is None:
        return catalog_class(name, kind or _guess_kind(name, properties))
    if kind:
        raise ConfigurationError(
            f"the catalog {name} has both type={kind} and {IMPLEMENTATION}={path}: give one of them"
        )
    return class_by_path(name, path)


def _guess_kind(name: str, properties: Mapping[str, str]) -> str:
    uri = properties.get("uri", "")
    if uri.startswith(("http://", "https://")):
        return "rest"
    if uri.startswith("thrift://"):
        return "hive"
    if uri or "warehouse" in properties:
        return "sql"
    raise ConfigurationError(
        f"nothing is known of the catalog {name}: give warehouse=… or uri=… (of the command: "
        f"--warehouse or --uri), set FRAZIL_CATALOG__{name.upper()}__URI, or write ~/.frazil.yaml"
    )


def _default_database(name: str, properties: Mapping[str, str]) -> str:
    warehouse = properties.get("warehouse")
    if not warehouse:
        raise ConfigurationError(f"the sql catalog {name} needs the property uri or warehouse")
    location = normalize_location(warehouse)
    if not is_local(location):
        raise ConfigurationError(
            f"the warehouse {location} is not on a local disk, so no SQLite catalog can lie in "
            f"it: give uri=… of a database, or type='filesystem'"
        )
    return sqlite_uri(local_path(join(location, DATABASE_NAME)) or DATABASE_NAME)


def _from_environment(name: str, variables: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for prefix in _ENVIRONMENT_PREFIXES:
        own = f"{prefix}{name.upper().replace('-', '_')}__"
        for variable, value in variables.items():
            if variable.upper().startswith(own):
                key = variable[len(own) :].lower().replace("__", ".").replace("_", "-")
                found[_UNDERSCORED.get(key, key)] = value
    return found


_UNDERSCORED = {name.replace("_", "-"): name for name in ("init_catalog_tables", "schema_version")}


def _from_file(name: str, candidates: Iterable[Path]) -> dict[str, str]:
    file = read_config_file(candidates)
    if file is None:
        return {}
    entry = file.catalogs.get(name, {})
    if not isinstance(entry, dict):
        raise shape_error(file.path)
    return _texts(_flat_properties(entry), str(file.path))


def _flat_properties(entry: Mapping[Any, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, dict):
            flat |= _flat_properties(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _texts(properties: Mapping[str, Any], where: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for key, value in properties.items():
        if isinstance(value, bool):
            texts[key] = "true" if value else "false"
        elif isinstance(value, str | int | float | os.PathLike):
            texts[key] = str(value)
        elif value is not None:
            raise ConfigurationError(
                f"the property {key} of {where} must be text, not {type(value).__name__}"
            )
    return texts
