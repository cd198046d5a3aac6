"""A lake's tables in a plan of Spark's: which they are, and the rows in their places."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from frazil.errors import NoSuchNamespaceError, NoSuchTableError, ValidationError
from frazil.spark.attached.dataframes.batch_reads import rows_of_choice
from frazil.spark.attached.dataframes.java_options import (
    Given,
    chosen_version,
    named_version,
    read_choice,
)
from frazil.spark.attached.names import AttachedContext, SessionNames, context_of
from frazil.spark.catalog.commands import is_query
from frazil.spark.catalog.machine import Machine
from frazil.spark.catalog.place import SessionPlace
from frazil.spark.catalog.relations import PlannedRelation, read_plan, relations_in, replaced
from frazil.spark.files.projection import METADATA_COLUMNS
from frazil.spark.sql.binding.bound_text import BoundText, QueriedView, queried_view
from frazil.spark.sql.binding.relations import QueriedTable
from frazil.spark.sql.binding.sub_queries import apart, has_sub_queries_as_values
from frazil.spark.sql.context import NamedTable, NamedView, TableVersion
from frazil.spark.sql.parameters import Args
from frazil.spark.sql.parsers.table_name import TableName
from frazil.spark.sql.query import row_or_rows
from frazil.spark.sql.table_uses import TableUse
from frazil.spark.words import Word, words_of

_IS_METADATA: Final = "__metadata_col"
"""How Spark marks a column that no star means."""

_HIDDEN: Final = frozenset(each.name for each in METADATA_COLUMNS)

_OF_SPARK: Final = frozenset({"versionasof", "timestampasof"})
"""Options of a read that Spark itself reads too."""

ROWS: Final = "FRAZIL ROWS "
"""How a text begins that only our parser reads: the name of a table follows, as JSON."""


@dataclass(frozen=True, slots=True)
class BoundPlan(BoundText):
    """A query as Spark's parser understood it, with the tables and views of lakes in it.

    Attributes:
        machine: where the plan is.
        session: of Spark, there.
        plan: the query.
        places: the relations of each name in `relations`.
    """

    machine: Machine = None  # type: ignore[assignment]
    session: Any = None
    plan: Any = None
    places: Mapping[str, PlannedRelation] = None  # type: ignore[assignment]

    def run(self, args: Args, rows: Mapping[str, DataFrame]) -> DataFrame:
        """Return the query over some rows in place of the tables, of those within views too."""
        return self.machine.frame(self.spark, self.session, self.with_rows(rows))

    def with_rows(self, rows: Mapping[str, DataFrame]) -> Any:
        """Return the plan with some rows in place of the tables, not analysed."""
        found = self.relation_rows(rows)
        if has_sub_queries_as_values(self.own_words):
            found = {name: apart(frame) for name, frame in found.items()}
        plans = [(self.places[name], self._named(name, frame)) for name, frame in found.items()]
        return replaced(self.machine, self.plan, plans)

    def _named(self, name: str, frame: Any) -> Any:
        """The plan of some rows, whose columns are found by the names of the table too."""
        plan = frame._jdf.queryExecution().analyzed()
        hidden = getattr(self.relations[name], "metadata_columns", ())
        return _named_plan(self.machine, plan, self.relations[name].whole_name, hidden)


def _named_plan(machine: Machine, plan: Any, name: Sequence[str], hidden: Collection[str]) -> Any:
    """A plan whose columns are found by the names of a table too, and some alone."""
    if hidden:
        plan = _with_hidden(machine, plan, hidden)
    *qualifier, last = name
    alias = machine.catalyst.AliasIdentifier(last, machine.sequence(qualifier))
    return machine.catalyst.plans.logical.SubqueryAlias(alias, plan)


def finds_hidden(machine: Machine, spark: Any) -> bool:
    """Return whether this Spark finds hidden columns below an alias, as 4.1 does not."""
    plan = _with_hidden(machine, spark.range(0)._jdf.queryExecution().analyzed(), ("id",))
    alias = machine.catalyst.AliasIdentifier("t", machine.sequence(()))
    named = machine.catalyst.plans.logical.SubqueryAlias(alias, plan)
    return bool(named.metadataOutput().size())


def _with_hidden(machine: Machine, plan: Any, hidden: Collection[str]) -> Any:
    """A plan whose output has some columns where they are named alone, as Spark's `_metadata`."""
    types, logical = machine.jvm.org.apache.spark.sql.types, machine.catalyst.plans.logical
    shown, tagged = [], []
    output = plan.output()
    for place in range(output.size()):
        each = output.apply(place)
        if str(each.name()) in hidden:
            marked = types.MetadataBuilder().withMetadata(each.metadata())
            tagged.append(each.withMetadata(marked.putBoolean(_IS_METADATA, True).build()))
        else:
            shown.append(each)
    made = logical.Project(machine.sequence(shown), plan)
    made.setTagValue(logical.Project.hiddenOutputTag(), machine.sequence(tagged))
    return made


def bound_plan(place: SessionPlace, plan: Any, text: str, *, whole: bool) -> BoundPlan | None:
    """Return a plan with the tables of lakes that it reads; None where it reads none.

    Args:
        text: that the plan was made of.
        whole: names without a lake are those of the session now.

    Raises:
        FrazilError: a table cannot be read.
    """
    words = words_of(text)
    hidden = tuple(sorted(_HIDDEN & {word.text.lower() for word in words}))
    found = _bound(place, plan, text, words, whole=whole)
    if found is None or not hidden or not is_query(words):
        return found
    try:
        # A name of a hidden column may be that of another one, and then it is.
        found.run(None, found.no_rows())
    except PySparkException:
        return _bound(place, plan, text, words, whole=whole, hidden=hidden)
    return found


def _bound(
    place: SessionPlace,
    plan: Any,
    text: str,
    words: Sequence[Word],
    *,
    whole: bool,
    hidden: Sequence[str] = (),
) -> BoundPlan | None:
    """A plan whose tables have some of the hidden columns."""
    machine, names = place.machine, place.names_now()
    reads = read_plan(plan)
    relations: dict[str, QueriedTable | QueriedView] = {}
    places: dict[str, PlannedRelation] = {}
    for number, each in enumerate(relations_in(machine, reads, str(reads.toString()))):
        found = queried(names, place.spark, each) if whole or each.parts[0] in names.lakes else None
        if isinstance(found, QueriedTable) and found.can_prune and hidden:
            own = set(found.scan.projection.names)
            taken = tuple(name for name in hidden if name not in own)
            found = replace(found, metadata_columns=taken)
        if found is not None:
            relations[f"relation {number}"], places[f"relation {number}"] = found, each
    if not relations:
        return None
    return BoundPlan(
        spark=place.spark,
        text=text,
        relations=relations,
        frames={},
        given=text,
        changes=(),
        own_words=words,
        has_other_tables=True,
        machine=machine,
        session=place.session,
        plan=plan,
        places=places,
    )


def plan_of_read(
    place: SessionPlace,
    parts: tuple[str, ...],
    named: NamedTable,
    given: Given,
    hidden: Sequence[str],
) -> Any:
    """Return the plan of the rows that a reader asks for.

    Args:
        parts: the table's name, as the reader says it.
        given: the reader's options.
        hidden: hidden columns that may be named.

    Raises:
        ConfigurationError: an option is unknown or malformed.
        NoSuchSnapshotError, NoSuchRefError: there is no such version.
        ValidationError: the options do not go together.
    """
    names = place.names_now()
    meant = names.of(parts)
    assert meant is not None
    context = context_of(names, place.spark, names.reading(meant[0].name))
    choice = read_choice(given, named.table.metadata)
    if choice.start is not None or named.metadata_table is not None:
        rows: Any = rows_of_choice(named, given)
        taken: tuple[str, ...] = ()
    else:
        version = asked_version(named, TableVersion(), given)
        found = _use_of(context, PlannedRelation(parts, None), replace(named, version=version))
        assert isinstance(found, QueriedTable)
        own = set(found.scan.projection.names)
        taken = tuple(name for name in hidden if name not in own)
        rows = replace(found, metadata_columns=taken).scan.to_df()
    plan = rows._jdf.queryExecution().analyzed()
    return _named_plan(place.machine, plan, context.whole_name(parts), taken)


def queried(
    names: SessionNames, spark: Any, relation: PlannedRelation
) -> QueriedTable | QueriedView | None:
    """Return what a relation reads of a lake; None where it reads nothing of one."""
    meant = names.of(relation.parts)
    if meant is None:
        return None
    context = context_of(names, spark, names.reading(meant[0].name))
    try:
        named = context.find(relation.parts)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    if isinstance(named, NamedTable) and relation.options:
        given = Given()
        for key, value in relation.options:
            given.note(key, value)
        # A clause of AS OF is told of the relation's use, where a name's version is refused.
        named = replace(named, version=asked_version(named, TableVersion(), given))
    return None if named is None else _use_of(context, relation, named)


def _use_of(
    context: AttachedContext, relation: PlannedRelation, named: NamedTable | NamedView
) -> QueriedTable | QueriedView:
    version = None if relation.version is None else _literal(relation.version)
    name = TableName(relation.parts, 0, 0, is_aliased=True)
    use = TableUse(name, 0, version, relation.timestamp, None, 0)
    if isinstance(named, NamedView):
        return queried_view(context, use, named)
    return QueriedTable(context, use, named, ())


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def pruned_plan(bound: BoundPlan) -> Any:
    """Return the plan over the rows that the query can need.

    A statement that is no query reads all files, since it is run once.
    """
    try:
        rows = row_or_rows(bound) if is_query(bound.own_words) else bound.all_rows()
    except PySparkException:
        # The mistake is told of the user's own words, by Spark.
        rows = bound.all_rows()
    if isinstance(rows, dict):
        return bound.with_rows(rows)
    answer: Any = rows
    return answer._jdf.queryExecution().analyzed()


@dataclass(frozen=True, slots=True)
class NamedRows:
    """A table of a lake with all that says which rows are meant, as a text says it.

    Attributes:
        parts: of the name, the lake's first.
        version: the one that is read.
    """

    parts: tuple[str, ...]
    version: TableVersion = field(default_factory=TableVersion)

    @property
    def text(self) -> str:
        """The text, which is that of a view."""
        return ROWS + json.dumps({"name": self.parts, **self.version.arguments})

    @classmethod
    def of(cls, text: str) -> NamedRows:
        """Return what a text says."""
        said = json.loads(text[len(ROWS) :])
        return cls(tuple(said.pop("name")), TableVersion(**said))

    def frame(self, names: SessionNames, spark: Any) -> DataFrame:
        """Return the rows of all files."""
        found = self.queried(names, spark)
        if isinstance(found, QueriedView):
            return found.rows(found.bound.all_rows())
        return found.scan.to_df() if found.can_prune else found.no_rows()

    def queried(self, names: SessionNames, spark: Any) -> QueriedTable | QueriedView:
        """Return what is read.

        Raises:
            NoSuchTableError: there is no such table.
        """
        context, named = self._found(names, spark)
        if isinstance(named, NamedTable) and self.version.arguments:
            named = replace(named, version=self.version)
        return _use_of(context, PlannedRelation(self.parts, None), named)

    def at(
        self, names: SessionNames, spark: Any, asked: TableVersion | str, given: Given
    ) -> NamedRows:
        """Return the rows of a version, which a reader's options may say too.

        Raises:
            NoSuchTableError: there is no such table.
            ConfigurationError: an option is malformed.
            ValidationError: two of them, or one and the name, say which version; or it is a view.
        """
        if asked == TableVersion() and not given.values:
            return self
        named = self._found(names, spark)[1]
        if isinstance(named, NamedView):
            raise ValidationError(f"{'.'.join(self.parts)} is a view, which has no versions")
        return replace(self, version=asked_version(named, asked, given))

    def _found(
        self, names: SessionNames, spark: Any
    ) -> tuple[AttachedContext, NamedTable | NamedView]:
        lake = names.of(self.parts)
        named = None
        if lake is not None:
            context = context_of(names, spark, names.reading(lake[0].name))
            named = context.find(self.parts)
        if named is None:
            raise NoSuchTableError(f"there is no table {'.'.join(self.parts)}")
        return context, named


def asked_version(named: NamedTable, asked: TableVersion | str, given: Given) -> TableVersion:
    """Return the version of a table that a clause or Spark itself, and a reader's options, say.

    Args:
        asked: a version; a text is a snapshot's id or a reference's name.
        given: the options; those that Spark reads itself may be among them.

    Raises:
        ConfigurationError: an option is malformed.
        UnsupportedError: they ask for what was appended between two snapshots.
        ValidationError: two of them, or one and the name, say which version.
    """
    metadata = named.table.metadata
    chosen = chosen_version(given, metadata)
    version = named_version(asked, metadata) if isinstance(asked, str) else asked
    if version.arguments and chosen.arguments and not given.values.keys() & _OF_SPARK:
        raise ValidationError("AS OF says a version, and the options another one")
    version = version if version.arguments else chosen
    if version.arguments and named.version.arguments:
        raise ValidationError("the name says a version, and the options another one")
    return version if version.arguments else named.version
