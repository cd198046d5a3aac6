"""What catalogs that have views do with them; the others refuse by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frazil.catalog.identifiers import Identifier
from frazil.errors import UnsupportedError
from frazil.format.schema import Schema
from frazil.format.views import ViewMetadata, ViewRequirement, ViewUpdate, ViewVersion


@dataclass(frozen=True, slots=True)
class LoadedView:
    """A view as it was when the catalog was asked.

    Attributes:
        identifier: namespace levels and the view's name.
        metadata: the content of the metadata file.
        metadata_location: that file's path.
        config: what the catalog says of this view alone; secrets stay in it, so never print it
            (repr does not).
    """

    identifier: Identifier
    metadata: ViewMetadata
    metadata_location: str
    config: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)


class ViewMethods(ABC):
    """The methods of a catalog that are about views.

    As they stand here they are those of a catalog without views.
    """

    @abstractmethod
    def default_table_location(self, identifier: str | Sequence[str]) -> str:
        """Where a new table lies unless its creator says otherwise."""

    @abstractmethod
    def _no_views(self) -> UnsupportedError:
        """The error of a catalog that has no views."""

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        """The views directly in a namespace, sorted.

        Raises:
            NoSuchNamespaceError: it does not exist.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        """Whether there is a view of that name; no where the catalog has no views."""
        return False

    def load_view(self, identifier: str | Sequence[str]) -> LoadedView:
        """The view as it is now.

        Raises:
            NoSuchViewError: there is no such view.
            InvalidMetadataError: its metadata file, or the catalog's own record, is broken.
            MissingFileError: its metadata file is gone.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def default_view_location(self, identifier: str | Sequence[str]) -> str:
        """Where a new view lies unless its creator says otherwise; as of a table."""
        return self.default_table_location(identifier)

    def create_view(
        self,
        identifier: str | Sequence[str],
        schema: Schema,
        version: ViewVersion,
        *,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedView:
        """Make a view; of concurrent creators exactly one succeeds.

        Args:
            identifier: its name.
            schema: the columns of its first version.
            version: that version; its schema id is replaced by the one that the schema gets.
            location: the folder of its metadata; `default_view_location` unless given.
            properties: such as ``comment``.

        Raises:
            ViewAlreadyExistsError: a view or a table has the name.
            NoSuchNamespaceError: the namespace does not exist.
            ValidationError: the version breaks the specification.
            CommitFailedError: no answer came, and the view was not made.
            CommitStateUnknownError: no answer came and none could be had; nothing was deleted.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def commit_view(
        self,
        identifier: str | Sequence[str],
        requirements: Sequence[ViewRequirement],
        updates: Sequence[ViewUpdate],
        *,
        base: LoadedView | None = None,
    ) -> LoadedView:
        """Check the requirements against the view as it is, and apply the updates, in one step.

        How it ends, and what `base` is for, is as in `commit_table`.

        Raises:
            NoSuchViewError: there is no such view.
            CommitFailedError: a requirement does not hold, another writer was first, or no
                answer came and the catalog shows that the swap did not take place.
            CommitStateUnknownError: no answer came and none could be had.
            ValidationError: the updates contradict the view or the specification.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def register_view(self, identifier: str | Sequence[str], metadata_location: str) -> LoadedView:
        """Make a view of an existing metadata file.

        Raises:
            ViewAlreadyExistsError: a view or a table has the name.
            NoSuchNamespaceError: the namespace does not exist.
            MissingFileError, InvalidMetadataError: the file is not a view's metadata.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        """Remove a view from the catalog.

        Raises:
            NoSuchViewError: there is no such view.
            CommitFailedError: no answer came, and the view is as it was.
            CommitStateUnknownError: no answer came and none could be had.
            UnsupportedError: the catalog has no views.
        """
        raise self._no_views()

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        """Give a view another name.

        Raises:
            NoSuchViewError: there is no such view.
            ViewAlreadyExistsError: a view or a table has the target's name.
            NoSuchNamespaceError: the target's namespace does not exist.
            UnsupportedError: the catalog has no views, or cannot rename.
        """
        raise self._no_views()
