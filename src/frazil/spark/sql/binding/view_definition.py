"""Making views of the lake: what a query gives, as a new version of a view."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import types as S

from frazil.catalog.identifiers import Identifier, shown
from frazil.catalog.protocol import Capability, LoadedView
from frazil.errors import (
    CommitFailedError,
    NoSuchViewError,
    ValidationError,
    ViewAlreadyExistsError,
)
from frazil.format.changes import LAST_ADDED, RemoveProperties
from frazil.format.schema import Schema
from frazil.format.views import (
    AssertViewUUID,
    SqlRepresentation,
    ViewUpdate,
    ViewVersion,
    replacing_updates,
)
from frazil.spark.session.facts import is_case_sensitive
from frazil.spark.sql.binding.bind import DIALECT, bind_view_query
from frazil.spark.sql.binding.view_columns import ENGINE_VERSIONS, QUERY_COLUMN_NAMES
from frazil.spark.sql.context import SqlContext, ViewScope
from frazil.spark.types import query_schema_from_spark
from frazil.table.commit.retries import run_with_retries

_TRIES = 4


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column's name and comment, as the list before AS says."""

    name: str
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """What a statement says of a view.

    Attributes:
        sql: the query.
        columns: names and comments in place of the query's; none for the query's own.
        properties: the comment among them.
    """

    sql: str
    columns: Sequence[ViewColumn] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    def version(self, context: SqlContext, name: Identifier) -> NewVersion:
        """Return the version that it makes; the query is analysed and not run.

        Raises:
            AnalysisException, ParseException: of Spark, where the mistake is in the query.
            ValidationError: it reads a temporary view, a given DataFrame or itself, or the columns
                do not fit the query.
        """
        catalog, namespace = context.name, context.current.levels
        scope = ViewScope(catalog, namespace, ((catalog, *name),), is_new=True)
        bound = bind_view_query(context, self.sql, scope)
        given = bound.run(None, bound.no_rows()).schema
        names = [each.name for each in self.columns] or given.names
        if len(names) != len(given.names):
            raise ValidationError(
                f"{len(names)} columns are named for {shown(name)}, and its query gives "
                f"{len(given.names)}: {given.names}"
            )
        _refuse_same_names(context, names)
        # The query's own names may be twice there.
        named = [
            S.StructField(new, one.dataType, one.nullable, one.metadata)
            for one, new in zip(given.fields, names, strict=True)
        ]
        made = query_schema_from_spark(S.StructType(named))
        comments = {each.name: each.comment for each in self.columns}
        fields = [
            replace(one, doc=comments.get(one.name) if self.columns else one.doc)
            for one in made.fields
        ]
        summary = {"engine-name": "spark", "engine-version": context.spark.version}
        version = ViewVersion(
            version_id=1,
            schema_id=LAST_ADDED,
            timestamp_ms=int(time.time() * 1000),
            summary=summary,
            representations=(SqlRepresentation(self.sql, DIALECT),),
            default_namespace=namespace,
            # None is the view's own catalog, whatever a reader calls it.
            default_catalog=None,
        )
        engine = f"Spark {context.spark.version}"
        own = {QUERY_COLUMN_NAMES: ",".join(given.names), ENGINE_VERSIONS[1]: engine}
        return NewVersion(Schema(tuple(fields)), version, {**self.properties, **own})


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version of a view that is not there yet, with its columns and what is set beside it."""

    schema: Schema
    version: ViewVersion
    properties: Mapping[str, str]

    def create_view(self, context: SqlContext, name: Identifier) -> LoadedView:
        """Make a view of it."""
        made, changed = ENGINE_VERSIONS
        properties = {**self.properties, made: self.properties[changed]}
        return context.catalog.create_view(name, self.schema, self.version, properties=properties)


def create_view(context: SqlContext, name: Identifier, definition: ViewDefinition) -> LoadedView:
    """Make a view.

    Raises:
        ViewAlreadyExistsError: a view or a table has the name.
        UnsupportedError: the catalog has no views.
    """
    _require_views(context)
    new = definition.version(context, name)
    return new.create_view(context, name)


def create_or_replace_view(
    context: SqlContext, name: Identifier, definition: ViewDefinition
) -> LoadedView:
    """Make a view, or give it another query; its other properties and its history stay.

    Raises:
        ViewAlreadyExistsError: a table has the name.
        UnsupportedError: the catalog has no views.
    """
    _require_views(context)
    new = definition.version(context, name)

    def run() -> LoadedView:
        try:
            return _replace(context, name, new)
        except NoSuchViewError:
            try:
                return new.create_view(context, name)
            except ViewAlreadyExistsError as error:
                if context.catalog.view_exists(name):
                    raise CommitFailedError(str(error)) from None
                raise

    return run_with_retries(run, lambda _: _TRIES, after=(CommitFailedError,))


def replace_view(context: SqlContext, name: Identifier, definition: ViewDefinition) -> LoadedView:
    """Give a view another query.

    Raises:
        NoSuchViewError: there is no such view.
    """
    context.catalog.load_view(name)
    new = definition.version(context, name)
    return run_with_retries(
        lambda: _replace(context, name, new), lambda _: _TRIES, after=(CommitFailedError,)
    )


def change_view(context: SqlContext, name: Identifier, updates: Sequence[ViewUpdate]) -> None:
    """Set and remove properties of a view.

    Raises:
        NoSuchViewError: there is no such view.
    """
    run_with_retries(
        lambda: context.catalog.commit_view(name, (), updates),
        lambda _: _TRIES,
        after=(CommitFailedError,),
    )


def remove_view_properties(
    context: SqlContext, name: Identifier, keys: Sequence[str], *, if_exists: bool
) -> None:
    """Remove properties of a view.

    Raises:
        ValidationError: one is not set, unless `if_exists`.
    """
    known = context.catalog.load_view(name).metadata.properties
    missing = [key for key in keys if key not in known]
    if missing and not if_exists:
        raise ValidationError(
            f"the view {shown(name)} has no property {', '.join(missing)}: say IF EXISTS"
        )
    change_view(context, name, (RemoveProperties(tuple(keys)),))


def _replace(context: SqlContext, name: Identifier, new: NewVersion) -> LoadedView:
    before = context.catalog.load_view(name).metadata
    updates = replacing_updates(new.schema, new.version, properties=new.properties, base=before)
    requirements = (AssertViewUUID(before.view_uuid),)
    return context.catalog.commit_view(name, requirements, updates)


def _require_views(context: SqlContext) -> None:
    if not context.catalog.can(Capability.VIEWS):
        # The catalog's own error says why.
        context.catalog.list_views(("views",))


def _refuse_same_names(context: SqlContext, names: Sequence[str]) -> None:
    counted = names if is_case_sensitive(context.spark) else [name.lower() for name in names]
    twice = sorted({name for name in counted if counted.count(name) > 1})
    if twice:
        raise ValidationError(
            f"the view has two columns of the name {', '.join(twice)}: name the columns before AS"
        )
