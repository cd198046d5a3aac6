"""Rules of the specification: docstrings cite them, messages to users do not."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from trees import trees_of

ROOT = Path(__file__).resolve().parents[2]
CITED = re.compile(r"\b(?:SPEC )?rules?\s+(\d+(?:\s*(?:,|and|to|-|–)\s*\d+)*)")

CITED_BY_CHAPTER = re.compile(r"\b(?:SPEC|see) [0-9A-Z]{1,2}\.[0-9A-Z]")


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


def test_rules_are_cited_by_number_not_by_chapter() -> None:
    """The page has no chapters of such names."""
    citing = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder, kind in (("src", "*.py"), ("tests", "*.py"), ("docs", "*.md"))
        for path in (ROOT / folder).rglob(kind)
        for found in CITED_BY_CHAPTER.finditer(path.read_text())
    ]
    assert citing == []


def test_no_message_cites_a_rule_by_its_number() -> None:
    citing = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.value}"
        for path, tree in trees_of(ROOT / "src")
        for alone in [docstrings(tree)]
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in alone
        and CITED.search(node.value)
    ]
    assert citing == []
