"""Two serializable transactions beside each other, held against a model of one after the other.

A transaction looks at one table, and changes the other one. Most looks find no row. What both saw
and left has to be as if one had come before the other; one of them may be refused instead.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from transaction_cases import QUICK, frame, rows

from ci_share import examples, only_in_soak
from frazil.errors import ConflictError

IDS = (1, 2, 3, 4, 5)
TABLES = ("db.a", "db.b")
State = Mapping[str, tuple[int, ...]]
"""The ids of each table's rows, sorted."""


@dataclass(frozen=True)
class Command:
    """One command on a table, of rows of an id; `other` is another id or table that it names."""

    kind: str
    table: str
    id: int
    other: Any = None


def after(command: Command, state: State) -> tuple[State, int | None]:
    """What a command makes of the tables, and what its user sees; written by the book."""
    ids = list(state[command.table])
    there = ids.count(command.id)
    seen: int | None = there
    match command.kind:
        case "delete" | "merge delete":
            ids = [i for i in ids if i != command.id]
        case "update":
            ids = [command.other if i == command.id else i for i in ids]
        case "merge insert":
            seen = int(not there)
            ids += [command.id] * seen
        case "count":
            seen = len(ids)
        case "exists":
            pass
        case "insert":
            seen, ids = None, [*ids, command.id]
        case "insert where absent":
            seen = None
            ids += [command.id] * (command.id not in state[command.other])
    return {**state, command.table: tuple(sorted(ids))}, seen


def run(command: Command, tx: Any, spark: Any) -> int | None:
    """Run a command in a transaction; return what its user sees."""
    table, where = tx.table(command.table), f"id = {command.id}"
    found: int | None = None
    match command.kind:
        case "delete":
            found = table.delete(where).rows_deleted
        case "merge delete":
            found = merged(table, command, spark).when_matched_delete().execute().rows_deleted
        case "update":
            found = table.update({"id": str(command.other)}, where).rows_updated
        case "merge insert":
            merge = merged(table, command, spark).when_not_matched_insert_all()
            found = merge.execute().rows_inserted
        case "count":
            found = tx.sql(f"SELECT count(*) FROM {command.table}").collect()[0][0]
        case "exists":
            found = table.scan(where).count()
        case "insert":
            table.append(frame(spark, [(command.id,)], "id bigint"))
        case "insert where absent":
            absent = f"NOT EXISTS (SELECT * FROM {command.other} WHERE {where})"
            tx.sql(f"INSERT INTO {command.table} SELECT {command.id}L WHERE {absent}")
    return found


def merged(table: Any, command: Command, spark: Any) -> Any:
    return table.merge(frame(spark, [(command.id,)], "id bigint"), on=["id"])


LOOKS = ("delete", "merge delete", "update", "merge insert", "count", "exists")
ACTS = ("insert", "insert", "insert", "merge insert", "insert where absent", "delete")


def work(random_: random.Random, ids: Sequence[int], looks_at: str, changes: str) -> list[Command]:
    """The commands of one transaction."""
    made = []
    for kinds, table, other in ((LOOKS, looks_at, changes), (ACTS, changes, looks_at)):
        kind, chosen = random_.choice(kinds), random_.choice(ids)
        named = other if kind == "insert where absent" else chosen + 1
        made.append(Command(kind, table, chosen, named))
    return made


def serial_orders(state: State, works: Sequence[Sequence[Command]]) -> Iterator[tuple[Any, ...]]:
    """What is left and what each sees, for each order of transactions one after the other."""
    for order in permutations(range(len(works))):
        now, seen = state, {}
        for each in order:
            seen[each] = []
            for command in works[each]:
                now, found = after(command, now)
                seen[each].append(found)
        yield now, [seen[each] for each in range(len(works))]


def interleaved(random_: random.Random, lake: Any, works: Sequence[Sequence[Command]]) -> Any:
    """Run two transactions beside each other; return what those saw that were not refused."""
    steps = [each for each in range(2) for _ in range(len(works[each]) + 1)]
    random_.shuffle(steps)
    transactions = [lake.transaction() for _ in works]
    left = [list(each) for each in works]
    seen: dict[int, list[int | None]] = {0: [], 1: []}
    for each in steps:
        if left[each]:
            seen[each].append(run(left[each].pop(0), transactions[each], lake.spark))
            continue
        try:
            transactions[each].commit()
        except ConflictError:
            del seen[each]
    return seen


def check(seed: int, lake: Any, made: Callable[[], None], rounds: int) -> None:
    random_ = random.Random(seed)
    made()
    state: State = {name: tuple(i for (i,) in rows(lake, name)) for name in TABLES}
    for number in range(rounds):
        ways = [TABLES, TABLES[::-1]] if random_.random() < 0.8 else [TABLES, TABLES]
        # Both are mostly about one id, which few rounds before have used.
        ids = random_.choices(IDS, k=2 if random_.random() < 0.2 else 1)
        works = [work(random_, ids, *way) for way in ways]
        seen = interleaved(random_, lake, works)
        found = {name: tuple(i for (i,) in rows(lake, name)) for name in TABLES}
        committed = [works[each] for each in sorted(seen)]
        what = (found, [seen[each] for each in sorted(seen)])
        assert what in list(serial_orders(state, committed)), (seed, number, state, works, seen)
        state = found


@pytest.mark.check
@pytest.mark.parametrize("mode", ["merge-on-read", only_in_soak("copy-on-write")])
@pytest.mark.parametrize("seed", [10, *(only_in_soak(seed) for seed in range(10))])
def test_two_transactions_are_as_one_after_the_other(lake, spark, seed, mode):
    properties = {f"write.{name}.mode": mode for name in ("delete", "update", "merge")}

    def made():
        for name in TABLES:
            table = lake.create_table(name, "id bigint", properties={**QUICK, **properties})
            table.append(frame(spark, [(1,)], "id bigint"))

    check(seed, lake, made, rounds=examples(4))
