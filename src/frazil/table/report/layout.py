"""What stands around every page: one style for light and dark, a policy, the plotting library."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Final

from frazil.errors import UnsupportedError
from frazil.format.html_text import html_text

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1d2733; --quiet: #56636f; --page: #f6f7f9;
  --box: #fff; --line: #dfe3e8; --link: #1c5f8a; --bad: #a3341c; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ec; --quiet: #a3aeb9; --page: #14181d; --box: #1d2329; --line: #343c45;
    --link: #7cc0ea; --bad: #ff9c85; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--page);
  margin: 0; }
main, header { max-width: 1080px; margin: 0 auto; padding: 24px; }
header { display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: center;
  justify-content: space-between; padding-bottom: 0; }
header form { margin: 0; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -9999px; }
.skip:focus { left: 8px; top: 8px; background: var(--box); padding: 8px; }
h1 { font-size: 26px; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 8px; }
p { margin: 4px 0 12px; color: var(--quiet); overflow-wrap: anywhere; }
section { background: var(--box); border: 1px solid var(--line); border-radius: 8px;
  padding: 16px; margin-top: 16px; overflow-x: auto; }
.cards { display: grid; gap: 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(200px, 45%), 1fr)); }
.card { color: var(--quiet); }
.card b { display: block; font-size: 24px; white-space: nowrap; color: var(--text); }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 4px 10px; border-bottom: 1px solid var(--line);
  vertical-align: top; max-width: 30em; overflow-wrap: break-word; }
[aria-labelledby=properties] td { overflow-wrap: anywhere; }
[role=img] { min-height: 320px; }
.pair { display: grid; gap: 0 16px;
  grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }
.pair section { min-width: 0; }
.bad { color: var(--bad); }
input, button { font: inherit; color: inherit; background: var(--box);
  border: 1px solid var(--quiet); border-radius: 6px; padding: 6px 12px; }
button { cursor: pointer; }
label { display: block; font-weight: 600; }
.search { display: flex; flex-wrap: wrap; gap: 8px; align-items: end; margin-bottom: 8px; }
.search div { flex: 1 1 200px; max-width: 420px; }
.search input { width: 100%; }
.lake td, .lake th { padding: 6px 10px; }
.lake th[scope=row] { font-weight: 600; overflow-wrap: anywhere; }
.lake small { display: block; font-weight: 400; color: var(--quiet); }
.lake .number { text-align: right; white-space: nowrap; }
.lake thead button { border: 0; background: none; padding: 0; font-weight: 600;
  text-decoration: underline dotted; }
[aria-sort=ascending] button::after { content: " ▲"; content: " ▲" / ""; }
[aria-sort=descending] button::after { content: " ▼"; content: " ▼" / ""; }
@media (max-width: 640px) {
  main, header { padding: 12px; }
  .lake, .lake tbody, .lake tr, .lake td, .lake th { display: block; max-width: none; }
  .lake thead tr { display: flex; flex-wrap: wrap; gap: 4px 16px; }
  .namespaces thead { display: none !important; }
  .lake thead th { padding: 2px 0; border: 0; }
  .lake tbody tr { border-bottom: 1px solid var(--line); padding: 8px 0; }
  .lake tbody td, .lake tbody th { border: 0; padding: 1px 0; }
  .lake tbody td { display: flex; gap: 12px; justify-content: space-between;
    text-align: right; overflow-wrap: anywhere; }
  .lake tbody td::before { content: attr(data-label); color: var(--quiet); flex: none; } }
.lake tr[hidden] { display: none; }
"""

_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True, slots=True)
class Library:
    """Where a page has the plotting library.

    Attributes:
        address: relative to the page; None where the library stands in the page.
        is_there: whether there is one; without it a page has no charts.
    """

    address: str | None = None
    is_there: bool = True


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a page about a table stands.

    Attributes:
        library: where it has its plotting library.
        home: the index's address, relative to the page; None for a page that stands alone.
        account: of who looks at it, as HTML.
    """

    library: Library = Library()
    home: str | None = None
    account: str = ""

    @property
    def header(self) -> str:
        """What stands above the page, as HTML."""
        if self.home is None:
            return ""
        home = f'<nav aria-label="Pages"><a href="{html_text(self.home)}">All tables</a></nav>'
        return f"<header>{home}{self.account}</header>"


ALONE: Final = Surroundings()


def whole_page(title: str, body: str, *, scripts: Sequence[str] = (), files: bool = False) -> str:
    """Return a page that loads nothing and runs its own scripts alone.

    `body` is HTML with the scripts in it: one that stands in the page otherwise does not run.
    `files`: whether it also runs scripts that lie beside it.
    """
    return _PAGE.format(
        policy=policy_of(scripts, files=files), title=html_text(title), style=_STYLE, body=body
    )


def policy_of(scripts: Sequence[str], *, files: bool) -> str:
    """Return a page's policy: what it shows is in it; the arguments are as of `whole_page`."""
    allowed = [f"'{_hash_of(each)}'" for each in scripts]
    # A page that is opened from a disk has no origin that its folder could share.
    allowed += ["'self'", "file:"] if files else []
    return (
        f"default-src 'none'; script-src {' '.join(allowed) or chr(39) + 'none' + chr(39)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; form-action 'self'; base-uri 'none'"
    )


def script_element(text: str) -> str:
    """Return a script as an element; its text must not hold the element's end."""
    return f"<script>{text}</script>"


@cache
def plotting_library() -> str:
    """Return the script that draws charts, fit to stand in a page."""
    try:
        offline = import_module("plotly.offline")
    except ImportError as error:
        raise UnsupportedError(
            "a report needs the plotting library plotly: pip install 'frazil[report]'"
        ) from error
    script: str = offline.get_plotlyjs()
    return script.replace("</script", "<\\/script")


def utc_text(milliseconds: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a moment as text; of one that no calendar has, its number."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(milliseconds)
    return moment.strftime(form)


def now_text() -> str:
    """Return this moment as text."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@cache
def _hash_of(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
