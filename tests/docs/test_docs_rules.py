"""Rules of the specification: docstrings cite them, messages to users do not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"\b(?:SPEC )?rules?\s+(\d+(?:\s*(?:,|and|to|-|–)\s*\d+)*)")


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "src").rglob("*.py")):
        yield path, ast.parse(path.read_text())


def docstrings(tree: ast.Module) -> set[int]:
    """The places of strings that stand alone."""
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


def test_every_cited_rule_is_on_the_page() -> None:
    page = (ROOT / "docs" / "specification.md").read_text()
    anchors = set(re.findall(r'<a id="rule-(\d+)"></a>', page))
    cited = {
        number
        for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"))
        for found in CITED.findall(path.read_text())
        for number in re.findall(r"\d+", found)
    }
    assert len(cited) > 100
    assert cited <= anchors


def test_no_message_cites_a_rule_by_its_number() -> None:
    citing = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path, tree in modules()
        for alone in [docstrings(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in alone
        and CITED.search(node.value)
    ]
    assert citing == []
