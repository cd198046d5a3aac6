"""ViewCommands: views of a lake, as methods of the lake."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from frazil.catalog.identifiers import Identifier, parse_table_identifier, shown
from frazil.catalog.protocol import Catalog, LoadedView
from frazil.later import later

if TYPE_CHECKING:
    from frazil.format.schema import Schema
    from frazil.format.views import ViewVersion
    from frazil.spark.sql.binding import view_definition
    from frazil.spark.sql.binding.view_definition import ViewDefinition
    from frazil.spark.sql.context import CurrentNamespace, SqlContext
else:
    view_definition = later("frazil.spark.sql.binding.view_definition")
    ViewDefinition = later("frazil.spark.sql.binding.view_definition", "ViewDefinition")
    SqlContext = later("frazil.spark.sql.context", "SqlContext")


@dataclass(frozen=True, slots=True)
class View:
    """A view as it was when the catalog was asked.

    Attributes:
        identifier: namespace levels and the view's name.
        sql: the query in Spark's SQL; None where only other engines' is there.
        schema: its columns.
        properties: such as ``comment``.
        versions: the versions that are kept, oldest first.
        current_version_id: the one that is read.
    """

    identifier: Identifier
    sql: str | None
    schema: Schema
    properties: Mapping[str, str]
    versions: tuple[ViewVersion, ...]
    current_version_id: int

    @property
    def name(self) -> str:
        """The identifier as text."""
        return shown(self.identifier)


class ViewCommands(ABC):
    """Views of one catalog.

    Attributes:
        spark: the session, whose SQL the views are in.
        catalog: has the views.
    """

    spark: SparkSession
    catalog: Catalog
    _current: CurrentNamespace

    def create_view(
        self,
        identifier: str | Sequence[str],
        sql: str,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Make a view of a query, which is kept as text; names in it mean what they mean now.

        Args:
            identifier: its name.
            sql: the query, in Spark's SQL.
            properties: such as ``comment``.

        Raises:
            ViewAlreadyExistsError: a view or a table has the name.
            NoSuchNamespaceError, NoSuchTableError: the namespace, or what it reads, is not there.
            AnalysisException, ParseException: of Spark, where the mistake is in the query.
            UnsupportedError: the catalog has no views.

        Examples:
            >>> lake.create_view("db.dear", "SELECT id, city FROM db.trips WHERE fare > 100")
        """
        return self._make(view_definition.create_view, identifier, sql, properties)

    def create_or_replace_view(
        self,
        identifier: str | Sequence[str],
        sql: str,
        *,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Make a view, or give it another query; its other properties and its history stay.

        Raises:
            ViewAlreadyExistsError: a table has the name; and the errors of `create_view`.

        Examples:
            >>> lake.create_or_replace_view("db.late", "SELECT id FROM db.trips WHERE fare > 9")
        """
        return self._make(view_definition.create_or_replace_view, identifier, sql, properties)

    def load_view(self, identifier: str | Sequence[str]) -> View:
        """Return what a view is; ``SELECT * FROM`` its name in `Lake.sql` reads its rows.

        Raises:
            NoSuchViewError: there is none.
            UnsupportedError: the catalog has no views.

        Examples:
            >>> lake.load_view("db.dear").sql
        """
        return _view(self.catalog.load_view(identifier))

    def view_exists(self, identifier: str | Sequence[str]) -> bool:
        """Return whether there is a view of that name."""
        return self.catalog.view_exists(identifier)

    def list_views(self, namespace: str | Sequence[str]) -> list[Identifier]:
        """Return the views directly in a namespace.

        Raises:
            NoSuchNamespaceError: there is no such namespace.
            UnsupportedError: the catalog has no views.
        """
        return self.catalog.list_views(namespace)

    def drop_view(self, identifier: str | Sequence[str]) -> None:
        """Remove a view; NoSuchViewError if there is none."""
        self.catalog.drop_view(identifier)

    def rename_view(self, source: str | Sequence[str], target: str | Sequence[str]) -> None:
        """Give a view another name."""
        self.catalog.rename_view(source, target)

    def _make(
        self,
        make: Callable[[SqlContext, Identifier, ViewDefinition], LoadedView],
        identifier: str | Sequence[str],
        sql: str,
        properties: Mapping[str, str] | None,
    ) -> View:
        context = SqlContext(self.spark, self.catalog, self._current)
        definition = ViewDefinition(sql, properties=properties or {})
        return _view(make(context, parse_table_identifier(identifier), definition))


def _view(loaded: LoadedView) -> View:
    metadata = loaded.metadata
    return View(
        identifier=loaded.identifier,
        sql=metadata.current_version.sql_for("spark"),
        schema=metadata.schema,
        properties=dict(metadata.properties),
        versions=metadata.versions,
        current_version_id=metadata.current_version_id,
    )
