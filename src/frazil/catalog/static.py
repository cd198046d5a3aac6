"""One table without a catalog: a metadata file, or a folder and its newest metadata; read only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, NoReturn

from frazil.catalog.identifiers import Identifier, parse_namespace, parse_table_identifier
from frazil.catalog.metadata_files import read_metadata
from frazil.catalog.pointer.versions import EXTENSIONS, VersionFolder
from frazil.catalog.protocol import Catalog, LoadedTable, StagedTable
from frazil.errors import InvalidMetadataError, NoSuchTableError, UnsupportedError
from frazil.format.changes import Requirement, Update
from frazil.format.metadata import TableMetadata
from frazil.storage.files import FileIO
from frazil.storage.locations import metadata_version
from frazil.storage.paths import join, name_of, normalize_location, parent_of

_FILE = re.compile(r".*\.json(\.gz)?")


class StaticCatalog(Catalog):
    """The catalog of one table, whose every change is refused.

    ``load_table`` returns that table whatever the identifier, as its folder is now.
    """

    kind: ClassVar[str] = "static"

    def __init__(
        self,
        location: str,
        properties: Mapping[str, str] | None = None,
        *,
        io: FileIO | None = None,
    ) -> None:
        super().__init__("static", properties or {}, io=io)
        self.location = normalize_location(location)

    @property
    def identifier(self) -> Identifier:
        """``("static", <folder name>)``."""
        place = parent_of(self.location) if _FILE.fullmatch(self.location) else self.location
        if name_of(place) == "metadata":
            place = parent_of(place)
        return ("static", name_of(place) or "table")

    def list_tables(self, namespace: str | Sequence[str]) -> list[Identifier]:
        return [self.identifier]

    def list_namespaces(self, parent: str | Sequence[str] = ()) -> list[Identifier]:
        return []

    def namespace_exists(self, namespace: str | Sequence[str]) -> bool:
        return parse_namespace(namespace) == self.identifier[:-1]

    def load_namespace_properties(self, namespace: str | Sequence[str]) -> dict[str, str]:
        return {}

    def create_namespace(
        self, namespace: str | Sequence[str], properties: Mapping[str, str] | None = None
    ) -> None:
        self._refuse()

    def drop_namespace(self, namespace: str | Sequence[str]) -> None:
        self._refuse()

    def update_namespace_properties(
        self,
        namespace: str | Sequence[str],
        *,
        updates: Mapping[str, str] | None = None,
        removals: Sequence[str] = (),
    ) -> None:
        self._refuse()

    def rename_table(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        self._refuse()

    def drop_table(self, identifier: str | Sequence[str]) -> None:
        self._refuse()

    def purge_table(self, identifier: str | Sequence[str]) -> NoReturn:
        self._refuse()

    def register_table(
        self, identifier: str | Sequence[str], metadata_location: str
    ) -> LoadedTable:
        self._refuse()

    def table_exists(self, identifier: str | Sequence[str]) -> bool:
        try:
            newest_metadata_file(self.io, self.location)
        except NoSuchTableError:
            return False
        return True

    def load_table(self, identifier: str | Sequence[str]) -> LoadedTable:
        path = newest_metadata_file(self.io, self.location)
        return LoadedTable(
            parse_table_identifier(identifier), read_metadata(self.io, path), path, self.io
        )

    def stage_table(self, identifier: str | Sequence[str], metadata: TableMetadata) -> StagedTable:
        self._refuse()

    def create_staged_table(self, staged: StagedTable) -> LoadedTable:
        self._refuse()

    def commit_table(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[Requirement],
        updates: Sequence[Update],
        *,
        base: LoadedTable | None = None,
    ) -> LoadedTable:
        self._refuse()

    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            f"the table {self.location} is opened without a catalog and cannot be changed: "
            f"register it in a catalog first"
        )


def open_table(location: str, properties: Mapping[str, str] | None = None) -> LoadedTable:
    """The table of a metadata file, or the newest of a table's folder."""
    catalog = StaticCatalog(location, properties)
    return catalog.load_table(catalog.identifier)


def is_metadata_file(location: str) -> bool:
    """Whether a path names a metadata file, and not a table's folder."""
    return _FILE.fullmatch(location) is not None


def newest_metadata_file(io: FileIO, location: str) -> str:
    """The metadata file itself, or the newest one in a table's folder or its ``metadata`` folder.

    ``version-hint.text`` is followed where it names a file that is there; otherwise the newest
    content wins among the files of the highest version and those without one in their name.
    """
    if is_metadata_file(location):
        return location
    for folder in (join(location, "metadata"), location):
        found = _hinted_file(VersionFolder(io, folder)) or _newest_listed(io, folder)
        if found is not None:
            return found
    raise NoSuchTableError(f"there is no metadata file in {location}/metadata or {location}")


def _hinted_file(versions: VersionFolder) -> str | None:
    text = versions.hint_text()
    if text is None or not re.fullmatch(r"[\w.\-]{1,200}", text):
        return None
    if versions.hint() is not None:
        found = versions.current()
        return None if found is None else found.path
    names = [text] if text.endswith(EXTENSIONS) else [text + extension for extension in EXTENSIONS]
    paths = (join(versions.folder, name) for name in names)
    return next((path for path in paths if versions.io.exists(path)), None)


def _newest_listed(io: FileIO, folder: str) -> str | None:
    if not io.is_folder(folder):
        return None
    highest = -1
    numbered: list[str] = []
    other: list[str] = []
    for name, is_folder in io.list_folder(folder):
        version = None if is_folder else metadata_version(name)
        if version is not None and version >= highest:
            numbered = [*numbered, name] if version == highest else [name]
            highest = version
        elif version is None and not is_folder and name.endswith(EXTENSIONS):
            other.append(name)
    paths = [join(folder, name) for name in (*other, *numbered)]
    if len(paths) <= 1:
        return paths[0] if paths else None
    # Two writers may have tried the same version, and names may say nothing: the content decides.
    order = {path: position for position, path in enumerate(paths)}
    return max(paths, key=lambda path: (_updated_ms(io, path), order[path]))


def _updated_ms(io: FileIO, path: str) -> int:
    try:
        return read_metadata(io, path).last_updated_ms
    except InvalidMetadataError:
        return -1
