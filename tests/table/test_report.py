"""The page about a table: self-contained, escaped, and drawn by a real browser."""

import re
import subprocess

import pytest

import frazil
from browser import PROGRAM as BROWSER
from frazil.errors import StorageError
from html_parts import HOSTILE as EVIL
from html_parts import Parts

pytest.importorskip("plotly", reason="frazil[report] is not installed")


@pytest.fixture(scope="module")
def page(spark, tmp_path_factory):
    """The report of a table whose every text is hostile."""
    folder = tmp_path_factory.mktemp("report")
    with frazil.connect(spark, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table(
            "db.t",
            f"id bigint comment '{EVIL}', `<script>alert(1)</script>` string, part string",
            partition_by=["part"],
            properties={
                "write.delete.mode": "merge-on-read",
                "self-optimizing.minor.trigger.interval": "0",
            },
        )
        for number in range(3):
            rows = [(number * 10 + i, "x", "<b>bold</b>" if i % 2 else "plain") for i in range(10)]
            table.append(
                spark.createDataFrame(rows, table.to_df().schema),
                snapshot_properties={"added-records": EVIL},
            )
        table.delete("id % 10 = 3")
        path = folder / "report.html"
        table.report(path)
        with pytest.raises(StorageError):
            table.report(folder / "nowhere" / "report.html")
        assert sorted(each.name for each in folder.iterdir()) == ["lake", "report.html"]
        yield path


def test_it_loads_nothing_and_runs_nothing_of_the_table(page):
    parts = Parts(page.read_text())
    assert parts.links == ["data:,"]
    assert parts.tags.count("script") == 3
    assert not {"img", "iframe"} & set(parts.tags)
    assert parts.handlers == []
    shown = parts.text
    assert "<script>alert(1)</script>" in shown
    assert EVIL in shown
    assert "part=%3Cb%3Ebold%3C%2Fb%3E" in shown
    assert "rewrite data files" in shown


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium")
def test_a_browser_draws_every_chart(page, tmp_path):
    """Without a network, and with scripts of the table doing nothing."""
    common = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/b",
        "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=8000",
        "--window-size=1200,1900", "--disable-dev-shm-usage",
    ]  # fmt: skip
    url = page.as_uri()
    ran = subprocess.run(
        [*common, "--dump-dom", url], capture_output=True, text=True, timeout=120, check=True
    )
    assert 'data-drawn="3"' in ran.stdout
    assert len(re.findall(r'class="main-svg"', ran.stdout)) >= 3
    assert "<title>db.t</title>" in ran.stdout
    assert "CONSOLE" not in ran.stderr
    picture = page.with_name("report.png")
    subprocess.run(
        [*common, f"--screenshot={picture}", url], capture_output=True, timeout=120, check=True
    )
    assert picture.stat().st_size > 20_000
