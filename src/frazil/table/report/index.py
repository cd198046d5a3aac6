"""The index of a lake: namespaces, tables and views, with a search; a page that loads nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from frazil.catalog.identifiers import Identifier, shown
from frazil.format.html_text import html_text, size_text
from frazil.table.report.lake import LakeEntry, LakeNames, search_text
from frazil.table.report.layout import now_text, script_element, utc_text, whole_page

_UNKNOWN: Final = "–"
_LONGEST_COMMENT: Final = 200

_BODY: Final = """<a class="skip" href="#search">Skip to the search</a>
<header><span></span>{account}</header><main>
<h1>{title}</h1>
<p>{about}</p>
<section class="cards" aria-label="Figures">{cards}</section>
<section><h2 id="h-tables">Tables and views</h2>
<form class="search" role="search" method="get" action="{action}"{whole}>
<div><label for="search">Search by name</label>
<input id="search" name="q" type="search" value="{query}" autocomplete="off"></div>
<button>Search</button></form>
<p role="status" id="status">{status}</p>
{table}{pages}</section>
<section><h2 id="h-namespaces">Namespaces</h2>{namespaces}</section>
</main>
{script}"""

_SCRIPT: Final = """
const form = document.querySelector("form[role=search]");
const box = document.getElementById("search");
const said = document.getElementById("status");
const body = document.querySelector("table.tables tbody");
const rows = body ? [...body.rows] : [];
function filter() {
  const wanted = box.value.trim().toLowerCase();
  let count = 0;
  for (const row of rows) {
    row.hidden = !row.dataset.name.includes(wanted);
    if (!row.hidden) count += 1;
  }
  said.textContent = count.toLocaleString("en") + " of " + rows.length.toLocaleString("en");
}
if ("whole" in form.dataset) {
  box.addEventListener("input", filter);
  form.addEventListener("submit", event => { event.preventDefault(); filter(); });
  const asked = new URLSearchParams(location.search).get("q");
  if (asked) { box.value = asked; filter(); }
  for (const link of document.querySelectorAll("table.namespaces a")) {
    link.addEventListener("click", event => {
      event.preventDefault();
      box.value = new URLSearchParams(link.search).get("q");
      filter();
      box.focus();
    });
  }
}
for (const head of document.querySelectorAll("table.tables thead th")) {
  const place = head.cellIndex;
  const button = document.createElement("button");
  button.type = "button";
  button.append(...head.childNodes);
  head.append(button);
  const value = row => row.cells[place].dataset.value;
  const isNumber = head.classList.contains("number");
  button.addEventListener("click", () => {
    const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
    for (const each of head.parentElement.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((left, right) => {
      const one = value(left), other = value(right);
      if (isNumber) {
        // What is not known comes last, whichever way the others stand.
        if (!one || !other) return one ? -1 : other ? 1 : 0;
        return sign * (Number(one) - Number(other));
      }
      return sign * one.localeCompare(other);
    });
    body.append(...rows);
  });
}
document.body.dataset.ready = rows.length;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeIndex:
    """What an index shows.

    Attributes:
        title: of the lake.
        names: all of them.
        entries: those of this page.
        found: how many tables and views the query finds.
        query: what is searched for.
        page: of the pages that the entries are on, from 1 on.
        pages: how many there are.
        account: of who looks at it, as HTML.
        is_folder: whether the page lies in a folder, where nobody answers a search.
    """

    title: str
    names: LakeNames
    entries: Sequence[LakeEntry]
    found: int
    query: str = ""
    page: int = 1
    pages: int = 1
    account: str = ""
    is_folder: bool = False
    _counts: Mapping[str, Counter[Identifier]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        counts = {
            "tables": Counter(each[:-1] for each in self.names.tables),
            "views": Counter(each[:-1] for each in self.names.views),
        }
        object.__setattr__(self, "_counts", counts)

    @property
    def is_whole(self) -> bool:
        """Whether the page has every table and view."""
        return self.pages == 1 and not self.query

    def count(self, kind: str, namespace: Identifier) -> int | None:
        """Return how many tables or views a namespace has itself; None where that is not known."""
        is_known = namespace not in self.names.unread and namespace not in self.names.problems
        return self._counts[kind][namespace] if is_known else None


def index_page(lake: LakeIndex, *, link: Callable[[LakeEntry], str | None]) -> str:
    """Return the index of a lake.

    `link`: the address of a table's page, relative; None where there is none.
    """
    rows = "".join(_row(each, link(each)) for each in lake.entries)
    body = _BODY.format(
        account=lake.account,
        title=html_text(lake.title),
        about=html_text(f"As of {now_text()}. Rows are counted with deleted ones."),
        cards=_cards(lake),
        action="" if lake.is_folder else ".",
        whole=" data-whole" if lake.is_whole else "",
        query=html_text(lake.query),
        status=html_text(_status(lake)),
        table=_TABLE.format(rows=rows) if rows else "",
        pages=_pages(lake),
        namespaces=_namespaces(lake),
        script=script_element(_SCRIPT),
    )
    return whole_page(lake.title, body, scripts=[_SCRIPT])


# The roles hold where a narrow page shows a row as a card, which is no table to a browser.
_TABLE: Final = """<table class="lake tables" role="table" aria-labelledby="h-tables">
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Name</th>
<th role="columnheader" scope="col">Kind</th>
<th role="columnheader" scope="col" class="number">Rows</th>
<th role="columnheader" scope="col" class="number">Data files</th>
<th role="columnheader" scope="col" class="number">Size</th>
<th role="columnheader" scope="col" class="number">Health of 100</th>
<th role="columnheader" scope="col" class="number">Last change (UTC)</th></tr></thead>
<tbody role="rowgroup">{rows}</tbody></table>"""


def _row(entry: LakeEntry, address: str | None) -> str:
    name = shown(entry.identifier)
    text = html_text(name)
    label = text if address is None else f'<a href="{html_text(address)}">{text}</a>'
    note = ""
    if entry.problem is not None:
        note = f'<small class="bad">cannot be loaded: {html_text(entry.problem)}</small>'
    elif entry.comment:
        note = f"<small>{html_text(_short_text(entry.comment))}</small>"
    size = _UNKNOWN if entry.size_in_bytes is None else size_text(entry.size_in_bytes)
    changed = _UNKNOWN if entry.changed_ms is None else utc_text(entry.changed_ms)
    worst = None if entry.health is None else entry.health[0].score
    cells = (
        _cell("Rows", entry.rows, _number(entry.rows)),
        _cell("Data files", entry.files, _number(entry.files)),
        _cell("Size", entry.size_in_bytes, size),
        _cell("Health of 100", worst, _health(entry)),
        _cell("Last change (UTC)", entry.changed_ms, changed),
    )
    return (
        f'<tr role="row" data-name="{html_text(search_text(entry.identifier))}">'
        f'<th role="rowheader" scope="row" data-value="{text}">{label}{note}</th>'
        f'<td role="cell" data-label="Kind" data-value="{entry.kind}">{entry.kind}</td>'
        f"{''.join(cells)}</tr>\n"
    )


def _cell(label: str, value: int | None, text: str) -> str:
    held = "" if value is None else value
    return (
        f'<td role="cell" class="number" data-label="{label}" data-value="{held}">'
        f"{html_text(text)}</td>"
    )


def _number(value: int | None) -> str:
    return _UNKNOWN if value is None else f"{value:,}"


def _health(entry: LakeEntry) -> str:
    if entry.health is None:
        return _UNKNOWN
    worst, best = (each.score for each in entry.health)
    return f"{worst}" if worst == best else f"{worst} to {best}"


def _short_text(text: str) -> str:
    return text if len(text) <= _LONGEST_COMMENT else f"{text[:_LONGEST_COMMENT]}…"


def _cards(lake: LakeIndex) -> str:
    cards: dict[str, Any] = {
        "namespaces": len(lake.names.namespaces),
        "tables": len(lake.names.tables),
        "views": len(lake.names.views),
    }
    if lake.is_whole:
        told = [each for each in lake.entries if each.kind == "table"]
        cards["rows, deleted ones included"] = sum(each.rows or 0 for each in told)
        cards["size of the files"] = size_text(sum(each.size_in_bytes or 0 for each in told))
        lost = sum(each.problem is not None for each in lake.entries)
        if lost:
            cards["cannot be loaded"] = lost
    return "".join(
        f'<div class="card"><b>{html_text(f"{value:,}" if isinstance(value, int) else value)}</b>'
        f"{html_text(name)}</div>"
        for name, value in cards.items()
    )


def _status(lake: LakeIndex) -> str:
    total = len(lake.names.tables) + len(lake.names.views)
    if not total:
        return "There are no tables yet."
    found = f"{lake.found:,} of {total:,}"
    return found if lake.pages == 1 else f"{found}, page {lake.page:,} of {lake.pages:,}"


def _pages(lake: LakeIndex) -> str:
    if lake.pages == 1:
        return ""
    steps = {"Previous page": lake.page - 1, "Next page": lake.page + 1}
    links = [
        f'<a href="{html_text(_address(lake.query, number))}">{text}</a>'
        for text, number in steps.items()
        if 1 <= number <= lake.pages
    ]
    return f'<nav aria-label="More tables"><p>{" ".join(links)}</p></nav>'


def _address(query: str, page: int = 1) -> str:
    """The address of a search, relative to the index."""
    asked: dict[str, Any] = {"q": query} if query else {}
    if page > 1:
        asked["page"] = page
    return f"?{urlencode(asked)}"


def _namespaces(lake: LakeIndex) -> str:
    if not lake.names.namespaces:
        return "<p>There are no namespaces yet.</p>"
    return _NAMESPACES.format(
        rows="".join(_namespace_row(lake, each) for each in lake.names.namespaces)
    )


_NAMESPACES: Final = """<table class="lake namespaces" role="table" \
aria-labelledby="h-namespaces">
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Namespace</th>
<th role="columnheader" scope="col" class="number">Tables</th>
<th role="columnheader" scope="col" class="number">Views</th></tr></thead>
<tbody role="rowgroup">{rows}</tbody></table>"""


def _namespace_row(lake: LakeIndex, namespace: Identifier) -> str:
    name = shown(namespace)
    problem = lake.names.problems.get(namespace)
    note = (
        ""
        if problem is None
        else f'<small class="bad">cannot be listed: {html_text(problem)}</small>'
    )
    counts = "".join(
        _cell(label, lake.count(kind, namespace), _number(lake.count(kind, namespace)))
        for kind, label in (("tables", "Tables"), ("views", "Views"))
    )
    address = html_text(_address(f"{name}."))
    return (
        '<tr role="row"><th role="rowheader" scope="row">'
        f'<a href="{address}">{html_text(name)}</a>{note}</th>{counts}</tr>\n'
    )
