"""What a reader looks for is found: pages by the index, words by search, columns by headings."""

from __future__ import annotations

import re

import pytest
from pages import DOCUMENTS, ROOT

DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
HEADING_OF_A_TABLE = re.compile(r"^ *(\|.*\|)\n *\|[-:| ]+\|$", re.MULTILINE)

LOOKED_FOR = {
    "airflow": "howto/jobs.md",
    "conda": "howto/install.md",
    "cron": "howto/jobs.md",
    "databricks": "howto/managed-spark.md",
    "dataproc": "howto/managed-spark.md",
    "dbt": "howto/dbt.md",
    "docker": "howto/compose.md",
    "emr": "howto/managed-spark.md",
    "gdpr": "howto/erase.md",
    "glue": "howto/glue.md",
    "kubernetes": "howto/install.md",
    "jupyter": "howto/notebooks.md",
    "minio": "howto/compose.md",
    "vacuum": "howto/migrate.md",
}
"""Words that people look for, and a page that says them."""


def test_the_index_and_the_navigation_list_every_page() -> None:
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
    linked = {link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", INDEX.read_text())}
    assert pages - linked == set()
    navigation = (ROOT / "mkdocs.yml").read_text().split("\nnav:\n")[1]
    assert pages - set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)) == set()


@pytest.mark.parametrize("word", LOOKED_FOR)
def test_a_word_that_people_look_for_is_on_its_page(word: str) -> None:
    assert re.search(rf"\b{word}\b", (DOCS / LOOKED_FOR[word]).read_text(), re.IGNORECASE)


def test_every_column_of_a_table_has_a_heading() -> None:
    found = [
        f"{page.relative_to(ROOT)}: {heading}"
        for page in DOCUMENTS
        for heading in HEADING_OF_A_TABLE.findall(page.read_text())
        if any(not cell.strip() for cell in re.split(r"(?<!\\)\|", heading)[1:-1])
    ]
    assert found == []
