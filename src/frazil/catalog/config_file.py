"""The user's file of catalogs: where it is, and what it says (PyIceberg's form)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from frazil.errors import ConfigurationError
from frazil.later import later

if TYPE_CHECKING:
    import yaml
else:
    yaml = later("yaml")


_FILE_NAMES: Final = (".frazil.yaml", ".pyiceberg.yaml")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file of catalogs; its text may hold secrets, and so may its catalogs.

    Attributes:
        path: where it is.
        text: what stands in it.
        content: the same, as YAML has it.
    """

    path: Path
    text: str
    content: Mapping[Any, Any]

    def __repr__(self) -> str:
        return f"ConfigFile({str(self.path)!r})"

    @classmethod
    def from_text(cls, path: Path, text: str) -> ConfigFile:
        """Return what a text says."""
        try:
            content = yaml.safe_load(text) or {}
        except (yaml.YAMLError, RecursionError):
            # The parser's message quotes the file, which may hold secrets.
            raise ConfigurationError(f"{path} is not YAML") from None
        known = content.get("catalog") if isinstance(content, dict) else 0
        if known is not None and not isinstance(known, dict):
            raise shape_error(path)
        return cls(path, text, content)

    @property
    def catalogs(self) -> Mapping[Any, Any]:
        """The settings of each catalog by its name."""
        found: Mapping[Any, Any] = self.content.get("catalog") or {}
        return found


def config_files(variables: Mapping[str, str]) -> list[Path]:
    """Return where the file is looked for; the first that is there is read.

    `variables`: of the environment; $FRAZIL_HOME and $PYICEBERG_HOME name folders.
    """
    homes = [variables.get("FRAZIL_HOME"), variables.get("PYICEBERG_HOME")]
    folders = [Path(home) for home in homes if home] + [Path.home(), Path.cwd()]
    return [folder / name for name in _FILE_NAMES for folder in folders]


def new_config_file(variables: Mapping[str, str]) -> Path:
    """Return where the file is made if there is none."""
    home = variables.get("FRAZIL_HOME")
    return (Path(home) if home else Path.home()) / _FILE_NAMES[0]


def variable_of(name: str, key: str) -> str:
    """Return the variable of the environment that sets a property of a catalog."""
    words = key.upper().replace(".", "__").replace("-", "_")
    return f"FRAZIL_CATALOG__{name.upper().replace('-', '_')}__{words}"


def read_config_file(candidates: Iterable[Path]) -> ConfigFile | None:
    """Return the first file that is there; None where there is none."""
    for path in candidates:
        try:
            # Line ends stay as they are, for what is written back.
            text = path.read_bytes().decode("utf-8")
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read {path}: {type(error).__name__}") from None
        return ConfigFile.from_text(path, text)
    return None


def shape_error(path: Path) -> ConfigurationError:
    """Return the error of a file that has another shape."""
    return ConfigurationError(f"{path} is not of the form catalog: {{name: {{key: value}}}}")
