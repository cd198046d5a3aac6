"""Each production of Spark's grammar that a statement can be has a line on the page of SQL."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyspark

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "sql.md"
KINDS = ("StatementContext", "DmlStatementNoWithContext", "InsertIntoContext")
"""What a statement is, one of the changes of rows, and one of the INSERTs."""
DEEP = 5
"""So far below a statement stands which of them it is."""


def productions(jvm) -> set[str]:
    """What the grammar of this Spark has of those kinds."""
    (jar,) = Path(pyspark.__file__).parent.glob("jars/spark-sql-api_*.jar")
    classes = [
        name.removesuffix(".class").replace("/", ".")
        for name in zipfile.ZipFile(jar).namelist()
        if "SqlBaseParser$" in name and name.endswith("Context.class")
    ]
    kinds = {name: jvm.java.lang.Class.forName(name).getSuperclass().getName() for name in classes}
    return {_short(name) for name, kind in kinds.items() if kind.rpartition("$")[2] in KINDS}


def _short(name: str) -> str:
    return name.rpartition("$")[2].removesuffix("Context")


def read(jvm, text: str) -> set[str]:
    """The productions that a text is read by; none where Spark cannot read it."""
    package, antlr = jvm.org.apache.spark.sql.catalyst.parser, jvm.org.antlr.v4.runtime
    letters = package.UpperCaseCharStream(antlr.CharStreams.fromString(text))
    lexer = package.SqlBaseLexer(letters)
    lexer.removeErrorListeners()
    parser = package.SqlBaseParser(antlr.CommonTokenStream(lexer))
    parser.removeErrorListeners()
    tree = parser.singleStatement()
    return set() if parser.getNumberOfSyntaxErrors() else set(_names(tree, DEEP))


def _names(node, deep: int) -> Iterator[str]:
    yield _short("$" + node.getClass().getSimpleName())
    for place in range(min(node.getChildCount(), 3) if deep else 0):
        yield from _names(node.getChild(place), deep - 1)


def statements_of_the_page() -> set[str]:
    """The examples of the page, and what stands in its text as code."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    examples = {part.strip().rstrip(";") for block in blocks for part in block.split(";\n")}
    in_lines = {
        code for line in text.splitlines() for code in re.findall(r"`([A-Z][^`]* [^`]*)`", line)
    }
    return {each for each in examples | in_lines if each}


def test_each_production_of_the_grammar_is_on_the_page(spark):
    jvm = spark.sparkContext._jvm
    wanted = productions(jvm)
    assert len(wanted) > 80
    found = {name for text in statements_of_the_page() for name in read(jvm, text)}
    assert sorted(wanted - found) == []
