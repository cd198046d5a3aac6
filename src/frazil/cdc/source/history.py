"""Which columns a relation of the log is of.

The log names columns, in the order of their numbers, and does not say the numbers. Two things are
known: which columns there were at the position that the table is at, and which there are now, those
that were dropped among them. Between them columns came at the end, went and were renamed. Names are
no proof. Where more than one choice of columns fits, the order of the commits that dropped them
decides, which a copy of the slot tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from frazil.cdc.pgoutput import Begin, Relation
from frazil.cdc.source.known import KnownSource
from frazil.cdc.source.tables import KnownColumn, SourceTable
from frazil.errors import EvolutionError

MOST_UNCERTAIN: Final = 10
"""Of so many columns every choice is tried."""

Commits = Callable[[], Mapping[str, int]]
"""Returns where the commits of transactions end, by their ids."""


@dataclass(slots=True)
class ColumnHistory:
    """The columns of a table from a position of the log on.

    Attributes:
        known: as of the last relation that was read.
        now: the table as it is now, or later than what is read of the log.
        commits: asked where columns alone do not decide.
    """

    known: KnownSource
    now: SourceTable
    commits: Commits

    def numbers(self, relation: Relation, begin: Begin) -> tuple[int, ...]:
        """Return the numbers of a relation's columns, and take it as the last one.

        Args:
            begin: of the transaction that it precedes changes of.

        Raises:
            EvolutionError: several choices fit, or none.
        """
        uncertain = self._uncertain_columns()
        found = self._choices(relation, uncertain, frozenset())
        if len(found) != 1 and uncertain:
            gone, unsure = self._order(uncertain, begin)
            found = self._choices(relation, unsure, gone)
        if len(found) != 1:
            were = ", ".join(each.name for each in self.known.columns.values())
            raise EvolutionError(
                f"the columns of {self.now} were ({were}), the log then has "
                f"({', '.join(each.name for each in relation.columns)}), and which column is which "
                "cannot be told: load the table again, with --load-again"
            )
        [numbers] = found
        self._take(relation, numbers)
        return numbers

    # -- choices ---------------------------------------------------------------------------------

    def _pool(self) -> list[int]:
        """The columns that may be there: those of before, and those that came since."""
        allowed = self.now.published
        pool = set(self.known.columns)
        for attribute in self.now.attributes:
            is_new = attribute.number > self.known.count and not attribute.is_generated
            is_listed = allowed is None or attribute.number in allowed or attribute.is_dropped
            if is_new and is_listed:
                pool.add(attribute.number)
        return sorted(pool | {each.number for each in self.known.shown_later(self.now)})

    def _uncertain_columns(self) -> list[int]:
        """Those of the pool that were not there, or not in the log, for some of the time."""
        listed = {each.number for each in self.now.columns}
        later = {each.number for each in self.known.shown_later(self.now)}
        return [each for each in self._pool() if each not in listed or each in later]

    def _choices(
        self, relation: Relation, uncertain: Sequence[int], gone: frozenset[int]
    ) -> set[tuple[int, ...]]:
        pool = [each for each in self._pool() if each not in gone]
        if len(uncertain) > MOST_UNCERTAIN:
            return set()
        found = set()
        for size in range(len(uncertain) + 1):
            for left_out in combinations(uncertain, size):
                numbers = tuple(each for each in pool if each not in left_out)
                numbers = numbers[: len(relation.columns)]
                if self._fits(relation, numbers, uncertain, gone):
                    found.add(numbers)
        return found

    def _fits(
        self,
        relation: Relation,
        numbers: tuple[int, ...],
        uncertain: Sequence[int],
        gone: frozenset[int],
    ) -> bool:
        must = self.known.columns.keys() - gone - set(uncertain)
        if len(numbers) != len(relation.columns) or not must <= set(numbers):
            return False
        return all(
            self._constant_name(number) in (None, column.name)
            for number, column in zip(numbers, relation.columns, strict=True)
        )

    def _constant_name(self, number: int) -> str | None:
        """The name of a column that did not change since; None where it may have."""
        known, now = self.known.columns.get(number), self.now.attribute(number)
        if known is None or now is None or known.changed_by != now.changed_by:
            return None
        return known.name

    def _order(
        self, uncertain: Sequence[int], begin: Begin
    ) -> tuple[frozenset[int], tuple[int, ...]]:
        """The columns that went before a transaction, and those of which that is not known."""
        ends = self.commits()
        gone, unsure = set(), []
        for number in uncertain:
            attribute = self.now.attribute(number)
            dropped_by = attribute.changed_by if attribute and attribute.is_dropped else ""
            end = ends.get(dropped_by)
            if end is None or dropped_by == str(begin.xid):
                unsure.append(number)
            elif end <= begin.commit_lsn:
                gone.add(number)
        return frozenset(gone), tuple(unsure)

    # -- what follows ----------------------------------------------------------------------------

    def _take(self, relation: Relation, numbers: tuple[int, ...]) -> None:
        columns = {}
        for number, column in zip(numbers, relation.columns, strict=True):
            before = self.known.columns.get(number)
            now = KnownColumn(number, column.name, column.type_oid, column.modifier, "")
            is_same = before is not None and replace(before, changed_by="") == now
            columns[number] = before if is_same and before is not None else now
        count = max(self.known.count, *numbers) if numbers else self.known.count
        self.known = replace(self.known, columns=columns, count=count)
