"""Changes of the user's file of catalogs: all else in it stays as it is written, comments too.

Lines are put in and taken out at the places that PyYAML tells. Libraries that write a whole
document again lay it out anew, and lose or move some comments.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from frazil.catalog.config_file import ConfigFile, variable_of
from frazil.errors import ConfigurationError
from frazil.storage.paths import is_secret, redact

_KEY: Final = "catalog"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w-]*", re.ASCII)
_INDENT: Final = 2


def add_catalog(file: ConfigFile, name: str, properties: Mapping[str, str]) -> None:
    """Write a catalog into the file, which is made where it is not there."""
    check_name(name)
    check_no_secret(name, properties)
    check_absent(file, name)
    entry = dict(properties)
    block = yaml.safe_dump(
        {name: entry}, default_flow_style=False, sort_keys=False, allow_unicode=True, width=10**6
    )
    text = _text_with_catalog(file, block)
    _save(file, text, {**file.catalogs, name: entry})


def remove_catalog(file: ConfigFile, name: str) -> None:
    """Take a catalog out of the file; its tables stay as they are."""
    if name not in file.catalogs:
        known = ", ".join(sorted(map(str, file.catalogs))) or "none"
        raise ConfigurationError(f"{file.path} has no catalog {name}; it has: {known}")
    others = {key: value for key, value in file.catalogs.items() if key != name}
    _save(file, _text_without_catalog(file, name), others)


def check_absent(file: ConfigFile, name: str) -> None:
    """Check that the file does not have a catalog."""
    if name in file.catalogs:
        raise ConfigurationError(
            f"{file.path} has a catalog {name} already: frazil catalog remove {name}"
        )


def check_name(name: str) -> None:
    """Check that variables of the environment can name a catalog."""
    if not _NAME.fullmatch(name) or "__" in name:
        raise ConfigurationError(
            f"{name!r} cannot be a catalog's name here: use letters, digits, hyphens and single "
            "underscores"
        )


def check_no_secret(name: str, properties: Mapping[str, str]) -> None:
    """Check that no property is a secret.

    The message names the variable for one.
    """
    for key, value in properties.items():
        if is_secret(key) or redact(value) != value:
            what = "is a secret" if is_secret(key) else "holds a secret"
            raise ConfigurationError(
                f"{key} {what}; give --secret-in-keyring {key}, or set {variable_of(name, key)}"
            )


def _text_with_catalog(file: ConfigFile, block: str) -> str:
    """The text with lines of one more catalog."""
    text = file.text
    found = _node_of(file)
    if found is None:
        before = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{before}{_KEY}:\n{_indented_block(block, _INDENT)}"
    if isinstance(found.value, yaml.MappingNode) and found.value.value:
        if found.value.flow_style:
            raise _by_hand(file.path)
        first, last = found.value.value[0], found.value.value[-1]
        return _text_with_lines(
            text, _end_of(text, last), _indented_block(block, first[0].start_mark.column)
        )
    # There is nothing, or {} or null, behind the key.
    start, end = found.value.start_mark.index, found.value.end_mark.index
    bare = text[:start].rstrip(" ") + text[end:] if end > start else text
    offset = _line_end(bare, found.key.end_mark.index)
    return _text_with_lines(
        bare, offset, _indented_block(block, found.key.start_mark.column + _INDENT)
    )


def _text_without_catalog(file: ConfigFile, name: str) -> str:
    """The text without the lines of a catalog."""
    text = file.text
    found = _node_of(file)
    if found is None or not isinstance(found.value, yaml.MappingNode) or found.value.flow_style:
        raise _by_hand(file.path)
    entry = next(each for each in found.value.value if each[0].value == name)
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    left = text[:start] + text[_end_of(text, entry) :]
    if len(found.value.value) > 1:
        return left
    # A key with nothing behind it would be null.
    colon = text.index(":", found.key.end_mark.index)
    return f"{left[: colon + 1]} {{}}{left[colon + 1 :]}"


@dataclass(frozen=True, slots=True)
class _Pair:
    key: yaml.Node
    value: yaml.Node


def _node_of(file: ConfigFile) -> _Pair | None:
    """The place of the catalogs in the text; None where it has none."""
    root = yaml.compose(file.text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        return None
    if root.flow_style:
        raise _by_hand(file.path)
    return next((_Pair(*pair) for pair in root.value if pair[0].value == _KEY), None)


def _end_of(text: str, pair: tuple[yaml.Node, yaml.Node]) -> int:
    """Where the lines of a key and its value end; comments that follow are not of them."""
    key, value = pair
    if isinstance(value, yaml.CollectionNode) and not value.flow_style and value.value:
        last = value.value[-1]
        return _end_of(text, last if isinstance(last, tuple) else (last, last))
    return _line_end(text, max(key.end_mark.index, value.end_mark.index))


def _line_end(text: str, index: int) -> int:
    if index and text[index - 1] == "\n":
        return index
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def _text_with_lines(text: str, offset: int, lines: str) -> str:
    before = text[:offset]
    return f"{before}{'' if before.endswith(chr(10)) else chr(10)}{lines}{text[offset:]}"


def _indented_block(block: str, columns: int) -> str:
    return "".join(f"{' ' * columns}{line}\n" for line in block.splitlines())


def _save(file: ConfigFile, text: str, catalogs: Mapping[Any, Any]) -> None:
    """Write the text if it says what it is to say, and all that the file said beside it."""
    if "\r\n" in file.text:
        text = re.sub(r"\r?\n", "\r\n", text)
    try:
        content = ConfigFile.from_text(file.path, text).content
    except ConfigurationError:
        raise _by_hand(file.path) from None
    if content != {**file.content, _KEY: dict(catalogs)}:
        raise _by_hand(file.path)
    try:
        _replace(Path(os.path.realpath(file.path)), text.encode())
    except OSError as error:
        raise ConfigurationError(f"cannot write {file.path}: {error.strerror}") from None


def _replace(path: Path, data: bytes) -> None:
    """Put a file that only its owner can read in the place of the one that is there."""
    descriptor, temporary = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _by_hand(path: Path) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is laid out in a way that cannot be changed safely: change it by hand"
    )
