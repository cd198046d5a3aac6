"""The page of statements by face: each kind that there is a case of, by each face."""

from __future__ import annotations

from pathlib import Path

from sql_cases import KINDS, RECORDED, cases_of

from run_seams import kind_of_statement

DOCS = Path(__file__).parents[2] / "docs"
PAGE, SQL = DOCS / "reference" / "faces.md", DOCS / "howto" / "sql.md"
CELLS = {"yes", "refused"}


def table() -> dict[str, dict[str, str]]:
    """What the page says of each kind, by face."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    head, *others = rows
    return {name: dict(zip(head[1:], cells, strict=True)) for name, *cells in others}


def test_each_kind_of_statement_has_a_row() -> None:
    """Of those that every face runs, and no others: `make faces` writes the page."""
    kinds = {kind_of_statement(case.statement) for case in cases_of(KINDS, RECORDED)}
    assert kinds ^ set(table()) == set()


def test_each_face_says_what_it_does() -> None:
    """It has run the statement or refused it; what refuses is told on the page of SQL."""
    found = table()
    unknown = [
        (name, face)
        for name, cells in found.items()
        for face, cell in cells.items()
        if cell not in CELLS
    ]
    assert unknown == []
    refusing = {face for cells in found.values() for face, cell in cells.items() if cell != "yes"}
    told = SQL.read_text(encoding="utf-8").partition("## What a face cannot do")[2]
    assert [face for face in refusing if face not in told] == []
