"""Which columns a relation of the log is of, beside a model that knows them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pytest

from ci_share import examples
from frazil.cdc.pgoutput import Begin, Relation, RelationColumn
from frazil.cdc.source.history import ColumnHistory
from frazil.cdc.source.known import KnownSource
from frazil.cdc.source.tables import Attribute, SourcePart, SourceTable
from frazil.errors import EvolutionError

NAMES = "abcdef"


@dataclass
class Model:
    """A table whose columns change, each in a transaction of its own."""

    r: random.Random
    attributes: list[Attribute] = field(default_factory=list)
    xid: int = 100

    def add(self):
        free = [n for n in NAMES if n not in {a.name for a in self.alive}]
        if free:
            number = len(self.attributes) + 1
            name = self.r.choice(free)
            self.attributes.append(
                Attribute(number, name, 23, -1, self.next(), False, False, False, False)
            )

    def drop(self):
        if len(self.alive) > 1:
            self.change(self.r.choice(self.alive[1:]), name="", is_dropped=True)

    def rename(self):
        free = [n for n in NAMES if n not in {a.name for a in self.alive}]
        if free:
            self.change(self.r.choice(self.alive), name=self.r.choice(free))

    def change(self, attribute, **values):
        self.attributes[attribute.number - 1] = replace(attribute, changed_by=self.next(), **values)

    def next(self):
        self.xid += 1
        return str(self.xid)

    @property
    def alive(self):
        return [a for a in self.attributes if not a.is_dropped]

    @property
    def table(self):
        return SourceTable(
            oid=1,
            namespace="public",
            name="t",
            kind="r",
            identity="d",
            persistence="p",
            attributes=tuple(self.attributes),
            keys=(1,),
            key_id=9,
            parts=(SourcePart(1, "public", "t", True, 1, "", True),),
            published=None,
            publication="1/1",
            is_published_by_name=True,
        )

    @property
    def relation(self):
        columns = tuple(RelationColumn(a.name, a.number == 1, 23, -1) for a in self.alive)
        return Relation(1, "public", "t", "d", columns)


def history_of(r, steps):
    """A table before, what the log has of it, and what it is afterwards."""
    model = Model(r)
    for _ in range(3):
        model.add()
    before = KnownSource.of(model.table, {})
    seen = []
    for _ in range(steps):
        getattr(model, r.choice(["add", "add", "drop", "drop", "rename"]))()
        if r.random() < 0.5:
            xid = int(model.next())
            # A commit's record begins at ten times its id, and ends three behind that.
            seen.append((model.relation, Begin(10 * xid, 0, xid), [a.number for a in model.alive]))
    ends = {str(xid): 10 * xid + 3 for xid in range(101, model.xid + 1)}
    return before, seen, model.table, ends


@pytest.mark.parametrize("knows_order", [True, False])
def test_columns_are_those_of_the_model(knows_order):
    r, told, stops = random.Random(3), 0, 0
    for _ in range(examples(400)):
        before, seen, now, ends = history_of(r, r.randrange(1, 7))
        history = ColumnHistory(before, now, lambda ends=ends: ends if knows_order else {})
        for relation, begin, numbers in seen:
            try:
                found = history.numbers(relation, begin)
            except EvolutionError:
                stops += 1
                break
            assert list(found) == numbers
            told += 1
    assert told > 200
    # Never a guess; and with the order of the commits never a stop.
    assert knows_order == (stops == 0)


def test_columns_of_the_transaction_that_drops_one():
    model = Model(random.Random(1))
    for _ in range(3):
        model.add()
    before = KnownSource.of(model.table, {})
    relation, number = model.relation, model.attributes[2].number
    model.change(model.attributes[2], name="", is_dropped=True)
    model.attributes.append(Attribute(4, "z", 23, -1, str(model.xid), False, False, False, False))
    begin = Begin(10 * model.xid, 0, model.xid)
    ends = {str(model.xid): 10 * model.xid + 3}
    history = ColumnHistory(before, model.table, lambda: ends)
    with pytest.raises(EvolutionError, match="cannot be told"):
        history.numbers(relation, begin)
    assert number == 3


def test_a_column_that_nobody_changed_tells_at_each_relation_which_the_others_are():
    model = Model(random.Random(1))
    for number, name in enumerate("iab", 1):
        model.attributes.append(
            Attribute(number, name, 23, -1, model.next(), False, False, False, False)
        )
    before, first = KnownSource.of(model.table, {}), model.relation
    model.change(model.attributes[1], name="", is_dropped=True)
    model.attributes.append(Attribute(4, "c", 23, -1, model.next(), False, False, False, False))
    # Without the order of the commits the log's (i, b, c) may be the columns 1, 2 and 3 renamed.
    history = ColumnHistory(before, model.table, dict)
    begin = Begin(10 * model.xid, 0, model.xid)
    assert history.numbers(first, begin) == (1, 2, 3)
    assert history.numbers(model.relation, begin) == (1, 3, 4)
