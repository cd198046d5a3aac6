"""Secrets of catalogs in the system's keyring: the file says which are there, not what they are.

The reference is a property of its own, since another engine that reads the file would send what
stands behind `token` as the token, whatever it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final, TypeVar

from frazil.catalog.config_file import variable_of
from frazil.errors import ConfigurationError
from frazil.storage.paths import redact

T = TypeVar("T")

IN_KEYRING: Final = "keyring"
"""The property that names other properties, whose values the keyring holds."""


def names_in_keyring(properties: Mapping[str, str]) -> list[str]:
    """Return which properties of a catalog the keyring holds."""
    words = (each.strip() for each in properties.get(IN_KEYRING, "").split(","))
    return list(dict.fromkeys(each for each in words if each))


def with_names(properties: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the properties with the reference to further ones that the keyring holds."""
    known = list(dict.fromkeys([*names_in_keyring(properties), *names]))
    return {**properties, IN_KEYRING: ",".join(known)} if known else dict(properties)


def with_secrets(name: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with those that the keyring holds, in place of the reference.

    One that has a value already is not looked up.
    """
    full = {key: value for key, value in properties.items() if key != IN_KEYRING}
    for key in names_in_keyring(properties):
        if key not in full:
            full[key] = _read(name, key)
    return full


def keep_secret(name: str, key: str, value: str) -> None:
    """Put a property of a catalog into the keyring, in place of the one that is there."""
    _ask_keyring(
        name, key, lambda keyring: keyring.set_password(_service(name), key, value), secret=value
    )


def forget_secret(name: str, key: str) -> None:
    """Take a property of a catalog out of the keyring, where it is there."""
    service = _service(name)
    if _ask_keyring(name, key, lambda keyring: keyring.get_password(service, key)) is not None:
        _ask_keyring(name, key, lambda keyring: keyring.delete_password(service, key))


def _read(name: str, key: str) -> str:
    found: str | None = _ask_keyring(
        name, key, lambda keyring: keyring.get_password(_service(name), key)
    )
    if not found:
        raise ConfigurationError(
            f"{key} of the catalog {name} is not in the keyring: put it there with "
            f"keyring set {_service(name)} {key}, or set the variable {variable_of(name, key)}"
        )
    return found


def _service(name: str) -> str:
    return f"frazil/{name}"


def _library(name: str, key: str) -> ModuleType:
    try:
        return importlib.import_module("keyring")
    except ImportError as error:
        raise ConfigurationError(
            f"{key} of the catalog {name} is meant to be in the keyring, which needs a library: "
            f"pip install 'frazil[keyring]', or set the variable {variable_of(name, key)}"
        ) from error


def _ask_keyring(name: str, key: str, work: Callable[[Any], T], *, secret: str = "") -> T:
    library = _library(name, key)
    try:
        return work(library)
    except Exception as error:
        # A backend raises what its system does, beside the errors of the library.
        said = (
            " ".join(redact(str(error), {"secret": secret}).split()).rstrip(".")
            or type(error).__name__
        )
        raise ConfigurationError(
            f"the keyring does not serve {key} of the catalog {name}: {said}; unlock or choose one "
            f"(keyring diagnose shows it), or set the variable {variable_of(name, key)}"
        ) from None
