"""Pages about a whole lake: names of files, rows of the index, and what cannot be loaded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from lake_pages import SCHEMA, made

from browser import PROGRAM, browsing
from frazil.catalog.config import load_catalog
from frazil.catalog.protocol import Catalog
from frazil.cli import main
from frazil.errors import NoSuchNamespaceError, StorageError
from frazil.format.html_text import html_text
from frazil.format.partitions.partitioning import PartitionField, PartitionSpec
from frazil.format.partitions.transforms import IdentityTransform
from frazil.format.schema import Schema
from frazil.format.types import LongType, NestedField
from frazil.table.maintenance.optimizing.health import health_by_summary
from frazil.table.maintenance.optimizing.look import look
from frazil.table.report.write import page_file, write_lake_report
from html_parts import HOSTILE, Parts

pytest.importorskip("plotly", reason="frazil[report] is not installed")

MIB = 1 << 20
STRANGE = [
    "..", "a/b", "../../up", "CON", "con", "Con", "日本", "日语", "İ", "i̇", "a b", "a-b", "a_b",
    "x" * 300, "x" * 301, "<b>", "'\"", "%2e%2e", "c:\\d", "t.html", "-", "🦆",
]  # fmt: skip


@pytest.fixture
def lake(tmp_path: Path) -> Catalog:
    catalog = load_catalog("lake", warehouse=str(tmp_path / "lake"))
    catalog.create_namespace("db")
    return catalog


def test_files_of_pages_have_names_of_their_own() -> None:
    """For any table's name, also on a disk where case is nothing."""
    names = [("db", each) for each in STRANGE] + [("d", "b.t"), ("d.b", "t"), ("d", "b", "t")]
    files = [page_file(each) for each in names]
    assert len({each.casefold() for each in files}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_]([a-z0-9_-]*)\.html", each) for each in files)
    assert max(map(len, files)) < 100


def test_every_page_lies_in_the_folder(lake: Catalog, tmp_path: Path) -> None:
    for number, name in enumerate(STRANGE[:8]):
        made(lake, ("db", name), location=f"{tmp_path}/lake/{number}")
    (tmp_path / "out" / "tables").mkdir(parents=True)
    (tmp_path / "out" / "tables" / "notes.html").write_text("mine")
    done = write_lake_report(tmp_path / "out", lake)
    parts = Parts(done.index.read_text())
    pages = [each for each in parts.links if each.startswith("tables/")]
    assert len(pages) == done.tables == 8
    assert not done.problems
    there = {str(each.relative_to(tmp_path / "out")) for each in (tmp_path / "out").rglob("*.*")}
    assert there == {"index.html", "plotly.js", "tables/notes.html", *pages}
    assert {each.name for each in tmp_path.iterdir()} == {"lake", "out"}
    # A page of a table that is gone goes; what is not a page of this folder stays.
    lake.drop_table(("db", "日本"))
    write_lake_report(tmp_path / "out", lake)
    left = {each.name for each in (tmp_path / "out" / "tables").iterdir()}
    assert left == {each.removeprefix("tables/") for each in pages} - {
        page_file(("db", "日本"))
    } | {"notes.html"}


def test_a_table_that_cannot_be_loaded_is_a_row_that_says_so(lake: Catalog, tmp_path: Path) -> None:
    made(lake, ("db", "good"), sizes=[MIB] * 3, properties={"comment": HOSTILE, HOSTILE: HOSTILE})
    made(lake, ("db", "lost"))
    Path(lake.load_table("db.lost").metadata_location.removeprefix("file://")).unlink()
    broken = made(lake, ("db", "broken"), sizes=[1])
    for each in Path(broken.location.removeprefix("file://")).rglob("*.avro"):
        each.write_text("no manifest")
    said: list[str] = []
    done = write_lake_report(
        tmp_path / "out", lake, on_progress=lambda each: said.append(str(each))
    )
    assert set(done.problems) == {"db.lost", "db.broken"}
    assert said[-1] == "3 of 3 tables"
    parts = Parts(done.index.read_text())
    rows = {each[0].split("cannot")[0]: each for each in parts.rows}
    assert "cannot be loaded: " in rows["db.lost"][0]
    assert "cannot be loaded: " in rows["db.broken"][0]
    [good] = [each for name, each in rows.items() if name.startswith("db.good")]
    exact = look(lake.load_table("db.good").metadata, lake.io).health.score
    assert good[1:6] == ["table", "30", "3", "3.0 MiB", str(exact)]
    assert [each for each in parts.links if "tables/" in each] == [
        f"tables/{page_file(('db', 'good'))}"
    ]
    assert parts.tags.count("script") == 1
    assert not parts.handlers
    assert HOSTILE in parts.text


def test_an_empty_lake(lake: Catalog, tmp_path: Path) -> None:
    done = write_lake_report(tmp_path / "out", lake)
    assert "There are no tables yet." in done.index.read_text()
    with pytest.raises(NoSuchNamespaceError):
        write_lake_report(tmp_path / "out", lake, namespace="nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        write_lake_report(tmp_path / "file", lake)


PARTITIONED = PartitionSpec(0, (PartitionField((1,), 1000, IdentityTransform(), "id"),))


@pytest.mark.parametrize(
    ("sizes", "spec"),
    [([], None), ([MIB] * 9, None), ([MIB, 300 * MIB], None), ([MIB] * 9, PARTITIONED)],
)
def test_health_by_the_summary_is_that_of_the_files(
    lake: Catalog, sizes: list[int], spec: PartitionSpec | None
) -> None:
    more = {} if spec is None else {"spec": spec}
    metadata = made(lake, ("db", "t"), sizes=sizes, **more).metadata
    told = health_by_summary(metadata)
    assert told is not None
    worst, best = (each.score for each in told)
    exact = look(metadata, lake.io).health.score
    assert worst <= exact <= best
    assert (worst == best) == (spec is None)


def test_the_command_writes_pages_of_a_lake(lake: Catalog, tmp_path: Path) -> None:
    lake.create_namespace("other")
    made(lake, ("db", "t"))
    made(lake, ("other", "u"))
    before = ["--catalog", "lake", "--warehouse", str(tmp_path / "lake"), "report"]
    out = str(tmp_path / "out")

    def run(*words: str) -> str:
        ran = CliRunner().invoke(main, [*before, *words])
        return ran.stdout if ran.exit_code == 0 else f"{ran.exit_code}: {ran.stderr}"

    assert run("--out", out) == f"wrote {out}/index.html: 2 tables\n"
    facts = json.loads(run("--out", out, "--namespace", "db", "--json"))
    assert facts == {
        "report": f"{out}/index.html", "tables": 1, "views": 0, "problems": {}
    }  # fmt: skip
    assert "not both" in run("db.t", "--namespace", "db")
    assert run("db.t", "--out", f"{out}/one.html") == f"wrote {out}/one.html\n"


@pytest.mark.check
@pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium")
def test_a_browser_shows_the_lake_from_a_disk(lake: Catalog, tmp_path: Path) -> None:
    """By the keyboard, at 390 pixels, light and dark, without a network."""
    fields = [NestedField(1, "id", LongType(), doc=HOSTILE), NestedField(2, HOSTILE, LongType())]
    hostile = f"a{html_text('<')}<script>alert(1)"
    for number, name in enumerate((hostile, "big", "small")):
        made(
            lake, ("db", name), sizes=[number * MIB] * number, location=f"{tmp_path}/lake/{number}",
            properties={"comment": HOSTILE}, summary={"added-records": HOSTILE},
            schema=Schema(tuple(fields)) if number == 1 else SCHEMA,
        )  # fmt: skip
    done = write_lake_report(tmp_path / "out", lake)
    names = "[...document.querySelectorAll('table.tables tbody tr')].filter(r => !r.hidden)"
    names += ".map(r => r.querySelector('a').textContent)"
    with browsing(tmp_path) as page:
        page.open(done.index.as_uri())
        page.wait_until("document.body.dataset.ready == 3")
        assert page.run(names) == [f"db.{hostile}", "db.big", "db.small"]
        # The keyboard: past the heading to the search, then to a column that sorts.
        page.press("Tab")
        assert page.focused() == "A:Skip to the search"
        page.press("Enter")
        assert page.focused() == "INPUT:q"
        page.type("DB.S")
        page.wait_until("document.getElementById('status').textContent == '1 of 3'")
        assert page.run(names) == ["db.small"]
        page.run("document.getElementById('search').value = ''")
        page.type(" ")
        page.press("Tab", 4)
        assert page.focused() == "BUTTON:Rows"
        page.press("Enter")
        page.press("Space")
        assert page.run(names) == ["db.small", "db.big", f"db.{hostile}"]
        told = page.names()
        assert {
            ("searchbox", "Search by name"), ("table", "Tables and views"), ("button", "Rows"),
            ("link", "db.small"), ("table", "Namespaces"), ("heading", "The lake lake"),
        } <= told  # fmt: skip
        for width, scheme in ((1280, "light"), (390, "dark")):
            page.size(width)
            page.prefer(scheme)
            assert page.run("document.documentElement.scrollWidth") <= width
            assert len(page.picture(tmp_path / f"index-{width}.png")) > 10_000
        assert ("table", "Tables and views") in page.names()
        page.run("document.querySelector('table.tables tbody tr:nth-child(2) a').click()")
        page.wait_until("document.body.dataset.drawn == 3")
        assert page.run("document.title") == "db.big"
        assert page.run("document.documentElement.scrollWidth") <= 390
        assert {("image", "File sizes"), ("region", "Columns"), ("link", "All tables")} <= (
            page.names()
        )
        page.picture(tmp_path / "table-390.png")
        assert page.complaints == []
        assert all(each.startswith(("file:", "data:")) for each in page.requests)
