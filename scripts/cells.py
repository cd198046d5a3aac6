"""What each circle of the tests covers, of what its cases really ran; a hole in it fails.

    cells.py                  print the tables of all circles that were recorded
    cells.py --check test     look for what `make test` must run and no case of it ran
    cells.py --faces          write the page of the statements that cases ran, by their faces

A run of a whole circle leaves its record in `.circles/CIRCLE`; `tests/recorder/required.txt` says
what must be there, and `tests/recorder/run_recorder.py` how it is recorded.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
RECORDS: Final = ROOT / ".circles"
REQUIRED: Final = ROOT / "tests" / "recorder" / "required.txt"

CIRCLES: Final = {"test": ("test",), "check": ("test", "check"), "soak": ("soak",)}
"""Of each circle those whose cases count for it: what guards main runs beside `make test`."""
DIMENSIONS: Final = (
    "kind",
    "name",
    "mode",
    "version",
    "face",
    "session",
    "store",
    "catalog",
    "types",
)
_FACES: Final = (
    "method",
    "lake.sql",
    "spark.sql",
    "DataFrame",
    "spark.catalog",
    "CALL",
    "command line",
    "server",
    "follower",
)


class RequiredError(ValueError):
    """A line of the list of what is required cannot be read."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One kind of call that a case made.

    Attributes:
        circle: the circle of the case.
        case: its id.
        facts: the value of each dimension; empty where there is none.
    """

    circle: str
    case: str
    facts: tuple[str, ...]

    def of(self, dimension: str) -> str:
        """The value of a dimension."""
        return self.facts[DIMENSIONS.index(dimension)]


def records(folder: Path) -> list[Ran]:
    """Return what was recorded below a folder; a last line that a kill has cut is passed over."""
    found: dict[Ran, None] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                circle, case, *facts = json.loads(line)
            except ValueError:
                continue
            found[Ran(circle, case, tuple(facts))] = None
    return list(found)


# -- what is required ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """What at least one case must have run.

    Attributes:
        circle: whose cases.
        wanted: by dimension the values of which one is enough.
        faces: through how many faces.
    """

    circle: str
    wanted: tuple[tuple[str, frozenset[str]], ...]
    faces: int = 1

    def __str__(self) -> str:
        wanted = (f"{name}={','.join(sorted(values))}" for name, values in self.wanted)
        return " ".join(wanted)

    def fits(self, ran: Ran) -> bool:
        """Whether a call is one of the cell's."""
        for dimension, values in self.wanted:
            found = ran.of(dimension)
            several = found.split(",") if dimension == "types" else [found]
            if values.isdisjoint(several):
                return False
        return True

    def hole(self, ran: Iterable[Ran]) -> str | None:
        """Say what is missing of it among calls; None where it is there."""
        found = [each for each in ran if self.fits(each)]
        if not found:
            return f"{self}: no case ran it"
        faces = sorted({each.of("face") for each in found})
        if len(faces) < self.faces:
            return f"{self}: through {' and '.join(faces)} alone, and not {self.faces} faces"
        return None


def required(path: Path) -> list[Cell]:
    """Read the list of what is required.

    Raises:
        RequiredError: a line names no circle, or no dimension.
    """
    found: list[Cell] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text:
            try:
                found += _cells(text)
            except ValueError as error:
                raise RequiredError(f"{path.name}, line {number}: {error}") from error
    return found


def _cells(text: str) -> Iterator[Cell]:
    """The cells of a line: each combination of the values with a bar between them."""
    circle, _, rest = text.partition(" ")
    if circle not in CIRCLES:
        raise ValueError(f"{circle!r} is no circle: it is one of {', '.join(CIRCLES)}")
    choices: list[list[tuple[str, frozenset[str]]]] = []
    faces = 1
    for part in filter(None, (each.strip() for each in rest.split(";"))):
        dimension, equals, values = part.partition("=")
        if dimension == "faces":
            faces = int(values)
            continue
        if dimension not in DIMENSIONS or not equals:
            raise ValueError(f"{part!r} is no dimension with its values")
        each = [frozenset(one.strip() for one in value.split(",")) for value in values.split("|")]
        choices.append([(dimension, one) for one in each])
    for wanted in itertools.product(*choices):
        yield Cell(circle, wanted, faces)


def holes(cells: Collection[Cell], ran: Collection[Ran], circle: str) -> list[str]:
    """What a circle must run and no case of it ran."""
    # Many cases make the same calls.
    one_of_each = {each.facts: each for each in ran if each.circle in CIRCLES[circle]}
    by_kind: dict[str, list[Ran]] = defaultdict(list)
    for each in one_of_each.values():
        by_kind[each.of("kind")].append(each)
    found = []
    for cell in cells:
        if cell.circle == circle:
            kinds = dict(cell.wanted).get("kind", frozenset(by_kind))
            found.append(cell.hole(itertools.chain(*(by_kind[kind] for kind in kinds))))
    return [each for each in found if each is not None]


# -- tables ----------------------------------------------------------------------------------------

Name = Callable[[Ran], Sequence[str]]
"""Returns the rows or the columns that a call counts in."""


@dataclass(frozen=True, slots=True)
class Table:
    """How many cases ran each of something.

    Attributes:
        title: what it is about, and what its first column holds.
        kinds: the kinds of calls that it counts.
        rows, columns: of a call.
        order: of the columns, as far as it is not by their names.
    """

    title: str
    kinds: tuple[str, ...]
    rows: Name
    columns: Name
    order: tuple[str, ...] = ()

    def lines(self, ran: Iterable[Ran]) -> list[str]:
        """The table in Markdown, as wide as its widest cell; nothing where it has no rows."""
        cells: dict[tuple[str, str], set[str]] = defaultdict(set)
        for each in ran:
            if each.of("kind") in self.kinds:
                for row, column in itertools.product(self.rows(each), ("", *self.columns(each))):
                    cells[row, column].add(each.case)
        rows = sorted({row for row, _ in cells})
        if not rows:
            return []
        listed = {column for _, column in cells} - {""}
        known = [each for each in self.order if each in listed]
        columns = ["", *known, *sorted(listed - set(known))]
        shown = [[self.title, "cases", *columns[1:]]]
        shown += [[row, *(_count(cells.get((row, each))) for each in columns)] for row in rows]
        widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
        first, *others = [_row(each, widths) for each in shown]
        rule = "|".join(["", "-" * (widths[0] + 2), *("-" * (w + 1) + ":" for w in widths[1:]), ""])
        return [first, rule, *others, ""]


def _count(cases: Collection[str] | None) -> str:
    return str(len(cases)) if cases else ""


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    listed = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return f"| {' | '.join(listed)} |"


def _name(ran: Ran) -> list[str]:
    name, mode = ran.of("name"), ran.of("mode")
    return [f"{name}, {mode}" if mode else name]


def _values(*dimensions: str) -> Name:
    return lambda ran: [value for each in dimensions if (value := _value(ran, each))]


def _value(ran: Ran, dimension: str) -> str:
    value = ran.of(dimension)
    return f"v{value}" if dimension == "version" and value else value


_VERSIONS: Final = ("v1", "v2", "v3")
_SESSIONS: Final = ("classic", "Connect")

TABLES: Final = (
    Table(
        "command",
        ("command",),
        _name,
        _values("version", "face", "session", "store"),
        (*_VERSIONS, *_FACES, *_SESSIONS),
    ),
    Table("statement", ("statement",), _name, _values("face", "session"), (*_FACES, *_SESSIONS)),
    Table("procedure", ("procedure",), _name, _values("face", "session"), (*_FACES, *_SESSIONS)),
    Table("update", ("update",), _name, _values("version", "catalog"), _VERSIONS),
    Table("of a catalog", ("catalog",), _name, _values("catalog")),
    Table("catalog × store", ("catalog", "update"), _values("catalog"), _values("store")),
    Table(
        "type", ("command",), lambda ran: ran.of("types").split(","), _values("version"), _VERSIONS
    ),
    Table("command line", ("command line",), _name, lambda ran: []),
    Table("endpoint", ("endpoint",), _name, _values("catalog")),
    Table("event", ("event",), _name, lambda ran: []),
    Table("folder", ("case",), _name, lambda ran: []),
)


def tables(ran: Collection[Ran]) -> Iterator[str]:
    """The lines of all tables, circle by circle."""
    for circle in CIRCLES:
        own = [each for each in ran if each.circle == circle]
        if not own:
            continue
        cases = len({each.case for each in own if each.of("kind") == "case"})
        yield f"## `make {circle}`: {cases:,} cases"
        yield ""
        for table in TABLES:
            yield from table.lines(own)


PAGE: Final = ROOT / "docs" / "reference" / "faces.md"
_RULES: Final = """# Statements by face

Which kinds of [statements](../howto/sql.md) cases ran, by the face that they came in by.
`make faces` runs these cases, and writes this page from their record.

- lake.sql: the method.
- spark.sql: of an [attached session](../howto/attach.md). Four columns say more of it: after
  `USE lake`, after `USE lake.db`, with two lakes attached of which the other one is in use, and
  each statement in a transaction of its own. `EXECUTE IMMEDIATE` names the lake.
- Connect: the same session over Spark Connect, where the server has no Frazil.
- client of Connect, JDBC: clients of [`frazil spark-server`](../howto/spark-server.md).
- command line: `frazil sql`.

Each of these runs the same statements, one of each kind, and is asked for what the Java runtime
answers. Where a cell says `refused`, the statement has ended in an error, which
[the page of SQL](../howto/sql.md#what-a-face-cannot-do) tells.

"""
_SHOWN: Final = (
    "lake.sql",
    "spark.sql",
    "USE lake",
    "USE lake.db",
    "two lakes",
    "transaction",
    "EXECUTE IMMEDIATE",
    "Connect",
    "client of Connect",
    "JDBC",
    "command line",
)


def faces_page(ran: Iterable[Ran]) -> str:
    """The page of the statements that cases ran, by their faces."""
    kinds: dict[str, dict[str, str]] = defaultdict(dict)
    for each in ran:
        if each.of("kind") == "statement":
            cells = kinds[each.of("name")]
            for face in (each.of("face"), each.of("session")):
                if cells.get(face) != "refused":
                    cells[face] = each.of("mode") or "yes"
    shown = [["statement", *_SHOWN]]
    shown += [
        [name, *(found.get(face, "") for face in _SHOWN)] for name, found in sorted(kinds.items())
    ]
    rows = [f"| {' | '.join(row)} |".replace("|  |", "| |").replace("|  |", "| |") for row in shown]
    return "\n".join([_RULES + rows[0], "|---" * len(shown[0]) + "|", *rows[1:], ""])


# -- the command -----------------------------------------------------------------------------------


def check(circle: str, records_in: Path, required_by: Path) -> int:
    """Print the holes of a circle; return the code to end with."""
    ran = records(records_in)
    recorded = {each.circle for each in ran}
    missing = [each for each in CIRCLES[circle] if each not in recorded]
    if missing:
        names = " and ".join(f"`make {each}`" for each in missing)
        print(f"cells: {names} left no record, so that `make {circle}` is not checked for holes")
        return 0
    cells = required(required_by)
    found = holes(cells, ran, circle)
    for hole in found:
        print(f"hole in `make {circle}`: {hole}")
    count = sum(cell.circle == circle for cell in cells)
    print(f"cells: of {count} things that `make {circle}` must run {len(found)} are missing")
    absent = sorted({each.of("name") for each in ran if each.of("kind") == "absent"})
    if found and absent and not os.environ.get("FRAZIL_REQUIRE_ALL"):
        print(f"cells: that is no failure, since cases were skipped: {'; '.join(absent)}")
        return 0
    return 1 if found else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the code to end with."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", choices=CIRCLES, help="look for holes of this circle")
    parser.add_argument("--faces", action="store_true", help="write the page of statements")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--required", type=Path, default=REQUIRED)
    given = parser.parse_args(arguments)
    if given.check is not None:
        return check(given.check, given.records, given.required)
    ran = records(given.records)
    if not ran:
        print("cells: there is no record yet; `make test` makes one")
        return 0
    if given.faces:
        PAGE.write_text(faces_page(ran), encoding="utf-8")
        return 0
    for line in tables(ran):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
