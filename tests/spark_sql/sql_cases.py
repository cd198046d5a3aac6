"""Files of statements and what must come of them.

A case is a line ``ok``, ``rows`` or ``error <words>``, then a statement. After ``rows`` a line of
four dashes and the rows follow, values between bars; without ``ordered`` in any order. An empty
line ends a case, and ``--`` begins a comment.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"


@dataclass(frozen=True)
class Case:
    """One statement.

    Attributes:
        kind: ``ok``, ``rows`` or ``error``.
        said: what follows it in its line.
        statement: the text.
        rows: the rows expected, as text.
    """

    kind: str
    said: str
    statement: str
    rows: tuple[str, ...]
    line: int


def cases_of(name: str) -> list[Case]:
    """The cases of a file, in order: each builds on those before."""
    blocks: list[tuple[int, list[str]]] = [(1, [])]
    for number, line in enumerate((CASES / name).read_text().splitlines(), start=1):
        if line.startswith("--") and not line.startswith("----"):
            continue
        if line.strip():
            if not blocks[-1][1]:
                blocks[-1] = (number, [])
            blocks[-1][1].append(line)
        else:
            blocks.append((number, []))
    return [_case(number, block) for number, block in blocks if block]


def _case(number: int, block: list[str]) -> Case:
    kind, _, said = block[0].partition(" ")
    end = block.index("----") if "----" in block else len(block)
    rows = tuple(line.strip() for line in block[end + 1 :])
    return Case(kind, said.strip(), "\n".join(block[1:end]), rows, number)


def as_text(rows) -> list[str]:
    """Rows as the files have them."""
    return ["|".join(_value(value) for value in row) for row in rows]


def _value(value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(_value(each) for each in value) + "]"
    if isinstance(value, tuple):
        return "{" + ",".join(_value(each) for each in value) + "}"
    return str(value)
