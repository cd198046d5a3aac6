"""A real Chromium at the server's pages, below a prefix: login, keyboard, names, and logout."""

from __future__ import annotations

from pathlib import Path

import pytest
from lake_pages import made
from prefix_proxy import below
from serve_cases import running, sql_catalog, tokens_of

from browser import PROGRAM, Page, browsing
from html_parts import HOSTILE

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium"),
]
TOKEN = "a-token-of-sales-only"
TOKENS = f"tokens: [{{name: sales, token: {TOKEN}, read: [sales]}}]"
DRAWN = (
    "[...document.querySelectorAll('.main-svg')]"
    ".every(e => e.clientWidth == e.closest('[role=img]').clientWidth)"
)
NAMES = "[...document.querySelectorAll('table.tables tbody a')].map(each => each.textContent)"


def log_in(page: Page, token: str) -> None:
    page.wait_until("document.activeElement.id === 'token'")
    page.type(token)
    page.press("Enter")


def fits(page: Page, width: int) -> bool:
    """Whether nothing is wider than the window."""
    page.size(width)
    return bool(page.run("document.documentElement.scrollWidth") <= width)


def test_a_browser_logs_in_looks_and_leaves(tmp_path: Path) -> None:
    catalog = sql_catalog(tmp_path / "lake")
    for name in ("sales", "hr"):
        catalog.create_namespace(name)
    comment = {"comment": HOSTILE}
    made(catalog, ("sales", "big"), sizes=[1 << 20] * 3, properties=comment, summary={"x": HOSTILE})
    made(catalog, ("sales", f"t{HOSTILE}"), location=f"{tmp_path}/lake/t")
    made(catalog, ("hr", "people"))
    with (
        running(catalog, tokens=tokens_of(tmp_path, TOKENS)) as server,
        below("/data/lake", server.uri) as address,
        browsing(tmp_path) as page,
    ):
        page.open(f"{address}/table?name=sales%1Fbig")
        assert page.run("document.title") == "Log in"
        # A password's field has no role of its own to a screen reader but that of text.
        assert {("textbox", "Token of this server"), ("button", "Log in")} <= page.names()
        assert fits(page, 390)
        page.picture(tmp_path / "login-390.png")
        log_in(page, "wrong")
        page.wait_until("document.querySelector('[role=alert]') !== null")
        assert "no such token" in page.run("document.querySelector('[role=alert]').textContent")
        assert ("alert", "") in page.names()
        log_in(page, TOKEN)
        page.wait_until("document.body.dataset.drawn == 3")
        assert page.run("location.href") == f"{address}/table?name=sales%1Fbig"
        assert page.run("document.title") == "sales.big"
        assert {("image", "Snapshots over time"), ("button", "Log out")} <= page.names()
        for width, scheme in ((1280, "light"), (390, "dark")):
            page.prefer(scheme)
            assert fits(page, width)
            # Charts follow the window's width a moment later.
            page.wait_until(DRAWN)
            page.picture(tmp_path / f"table-{width}.png")
        page.press("Tab")
        assert page.focused() == "A:All tables"
        page.press("Enter")
        page.wait_until("document.body.dataset.ready == 2")
        assert page.run(NAMES) == ["sales.big", f"sales.`t{HOSTILE}`"]
        assert page.run("document.title") == "The lake lake"
        assert {("searchbox", "Search by name"), ("table", "Tables and views")} <= page.names()
        for width, scheme in ((1280, "light"), (390, "dark")):
            page.prefer(scheme)
            assert fits(page, width)
            page.picture(tmp_path / f"index-{width}.png")
        # No script reads the cookie, and it opens no door of the protocol.
        assert page.run("document.cookie") == ""
        # Refused logins alone are told of: no policy was broken, and nothing raised.
        assert all("status of 40" in each for each in page.complaints)
        page.open(f"{address}/v1/config")
        assert "NotAuthorizedException" in page.run("document.body.textContent")
        page.open(f"{address}/")
        page.run("document.querySelector('header button').click()")
        page.wait_until("document.title == 'Log in'")
        assert page.run("location.href") == f"{address}/"
        # A browser asks for an icon beside what is no page.
        asked = [each for each in page.requests if not each.endswith("/favicon.ico")]
        assert [each for each in asked if not each.startswith((address, "data:"))] == []
