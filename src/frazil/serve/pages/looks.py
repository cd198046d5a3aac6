"""The pages themselves: the index that a client may see, and a page for each of its tables."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Final
from urllib.parse import quote

from frazil.catalog.identifiers import Identifier, shown
from frazil.errors import UnsupportedError
from frazil.format.html_text import html_text
from frazil.serve.answers import HttpAnswer, answer_of_error, bad_request, message_of
from frazil.serve.calls import SEPARATOR, Call, namespace_of, table_name_of
from frazil.serve.endpoints import Endpoint
from frazil.serve.rights.access import ANYBODY, Principal
from frazil.serve.service import ServedCatalog
from frazil.table.report.index import LakeIndex, index_page
from frazil.table.report.lake import LakeEntry, Told, entries_of, matching_names, names_of
from frazil.table.report.layout import Library, Surroundings, plotting_library, whole_page
from frazil.table.report.page import report_page

_HTML: Final = "text/html; charset=utf-8"
_NOT_FOUND: Final = frozenset({404})


def page_answer(html: str, status: int = 200, error: str | None = None) -> HttpAnswer:
    """Return the answer that sends a page."""
    return HttpAnswer(status, html.encode(), error=error, content_type=_HTML)


def show_index(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the tables and views that the client may read."""
    query, number = call.query.get("q", "").strip(), call.number("page") or 1
    told, who = _error_message(served), call.principal
    names = names_of(served.catalog, told=told, may_read=who.may_read, may_see=who.may_see)
    tables, views = (matching_names(each, query) for each in (names.tables, names.views))
    found = sorted([*((each, False) for each in tables), *((each, True) for each in views)])
    size = served.settings.page_rows
    pages = max(-(-len(found) // size), 1)
    number = min(number, pages)
    part = found[(number - 1) * size : number * size]
    lake = LakeIndex(
        title=f"The lake {served.catalog.name}",
        names=names,
        entries=entries_of(
            served.catalog,
            [each for each, is_view in part if not is_view],
            [each for each, is_view in part if is_view],
            told=told,
        ),
        found=len(found),
        query=query,
        page=number,
        pages=pages,
        account=_account(who),
    )
    return page_answer(index_page(lake, link=_link))


def show_table(served: ServedCatalog, call: Call) -> HttpAnswer:
    """Answer with the page about a table."""
    name = named_table(call.query.get("name", ""))
    served.require_read(call.principal, name[:-1])
    table = served.catalog.load_table(name)
    io = served.io_to_plan(call.principal, table)
    file = library_file()
    library = Library(is_there=False) if file is None else Library(file[0])
    around = Surroundings(library, home=".", account=_account(call.principal))
    return page_answer(report_page(shown(name), table.metadata, io, around=around).html)


INDEX: Final = Endpoint("GET", "", show_index, listed=False)
TABLE: Final = Endpoint("GET", "table", show_table, listed=False)


def named_table(text: str) -> Identifier:
    """Return the table of an address.

    Raises:
        HttpError: it names none.
    """
    namespace, separator, name = text.rpartition(SEPARATOR)
    if not separator:
        raise bad_request("the address names no table")
    return (*namespace_of(namespace), table_name_of(name))


def address_of(name: Identifier) -> str:
    """Return the address of a table's page, relative to the index.

    The name is in the query, since a browser and a proxy change what a path holds.
    """
    return f"table?name={quote(SEPARATOR.join(name), safe='')}"


@cache
def library_file() -> tuple[str, bytes] | None:
    """Return the name and the content of the plotting library; None where there is none."""
    try:
        content = plotting_library().encode()
    except UnsupportedError:
        return None
    return f"plotly-{hashlib.sha256(content).hexdigest()[:16]}.js", content


def login_page(problem: str = "", *, then: str = "") -> str:
    """Return the page on which a token is typed.

    Args:
        problem: why it is shown again.
        then: the table, as in an address, whose page is shown afterwards.
    """
    field = f'<input type="hidden" name="then" value="{html_text(then)}">' if then else ""
    said = f'<p class="bad" role="alert" id="problem">{html_text(problem)}</p>' if problem else ""
    described = ' aria-describedby="problem" aria-invalid="true"' if problem else ""
    body = (
        '<main><h1>Log in</h1><section><form method="post" action="login">'
        # Password managers keep a secret by a name.
        f'{said}{field}<input name="user" value="token" autocomplete="username" hidden>'
        '<label for="token">Token of this server</label>'
        '<p><input id="token" name="token" type="password" required autofocus '
        f'autocomplete="current-password"{described}></p>'
        "<button>Log in</button></form></section></main>"
    )
    return whole_page("Log in", body)


def error_page(answer: HttpAnswer) -> str:
    """Return the page of an error."""
    body = (
        '<header><nav aria-label="Pages"><a href=".">All tables</a></nav></header>'
        f"<main><h1>Error {answer.status}</h1>"
        f'<p role="alert">{html_text(message_of(answer))}</p></main>'
    )
    return whole_page(f"Error {answer.status}", body)


def _account(principal: Principal) -> str:
    """Who is logged in, and the way out, as HTML."""
    if principal is ANYBODY:
        return ""
    return (
        '<form method="post" action="logout">'
        f"<span>{html_text(principal.name)}</span> <button>Log out</button></form>"
    )


def _link(entry: LakeEntry) -> str | None:
    return None if entry.kind == "view" else address_of(entry.identifier)


def _error_message(served: ServedCatalog) -> Told:
    """What clients are told of errors, as by an answer of the protocol; the log has the rest."""
    secrets = served.catalog.properties

    def told_error(error: Exception) -> str:
        answer = answer_of_error(
            error, secrets=secrets, documented=_NOT_FOUND, may_have_taken_place=False
        )
        return message_of(answer)

    return told_error
