"""Pages of the server for browsers: who sees what, how they log in, and what is no markup."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from lake_pages import made
from serve_cases import Running, running, sql_catalog, started, tokens_of, view

from ci_share import in_circles
from frazil.catalog.config import load_catalog
from frazil.catalog.protocol import Catalog
from frazil.serve.settings import ServeSettings
from html_parts import HOSTILE, Parts

OWNER, SALES = (f"{name}-0123456789abcdef" for name in ("own", "sales"))
BOTH = f"""
tokens:
  - {{name: owner, token: {OWNER}, write: ["*"]}}
  - {{name: sales <b>, token: {SALES}, read: [sales, deep.er]}}
"""
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HERE = {"Sec-Fetch-Site": "same-origin"}
KEY = b"k" * 32
PLAIN: dict[str, Any] = {"verify": False}
"""A client that reads no authorities, which takes longer than a request."""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake whose every text is hostile; no test changes it."""
    folder = tmp_path_factory.mktemp("pages")
    catalog = sql_catalog(folder / "lake")
    for name in ("sales", "hr", "deep", "empty"):
        catalog.create_namespace(name)
    catalog.create_namespace(("deep", "er"))
    comment = {"comment": HOSTILE, HOSTILE: HOSTILE, "api-token": "hush-hush"}
    made(catalog, ("sales", "orders"), sizes=[10, 20], properties=comment, summary={"k": HOSTILE})
    made(catalog, ("sales", f"t{HOSTILE}"), location=f"{folder}/lake/strange")
    made(catalog, ("sales", ".."), location=f"{folder}/lake/dots", sizes=[5])
    made(catalog, ("hr", "people"))
    made(catalog, ("deep", "top"))
    made(catalog, ("deep", "er", "a/b"), location=f"{folder}/lake/slash")
    file = Path(catalog.metadata_location(("sales", "..")).removeprefix("file://"))
    text = file.read_text()
    assert '"total-records":"10"' in text.replace(" ", "")
    file.write_text(re.sub(r'"total-records" ?: ?"10"', '"total-records":"<script>"', text))
    catalog.close()
    return folder


@contextmanager
def serving(
    lake: Path, tokens: str | None = BOTH, *, catalog: Catalog | None = None, **more: Any
) -> Iterator[Running]:
    held = None if tokens is None else tokens_of(lake, tokens)
    with running(catalog or sql_catalog(lake / "lake"), tokens=held, **more) as server:
        yield server


@pytest.fixture(scope="module")
def server(lake: Path) -> Iterator[Running]:
    with serving(lake) as server:
        yield server


def log_in(client: httpx.Client, token: str, **fields: str) -> httpx.Response:
    return client.post("/login", data={"token": token, **fields}, headers={**HTML, **HERE})


@contextmanager
def browser(server: Running, token: str | None = None) -> Iterator[httpx.Client]:
    """A client that asks as browsers do, logged in with a token."""
    with httpx.Client(**PLAIN, base_url=server.uri, headers=HTML) as client:
        if token is not None:
            assert log_in(client, token).status_code == 303
        yield client


def rows_of(page: str) -> dict[str, list[str]]:
    """The rows of the index by names, without headings."""
    return {row[0]: row[1:] for row in Parts(page).rows if len(row) == 7 and row[1] != "Kind"}


def address(*name: str) -> str:
    return f"/table?name={quote(chr(31).join(name), safe='')}"


def path_of(*name: str) -> str:
    *levels, last = (quote(each, safe="") for each in name)
    return f"/v1/namespaces/{'%1F'.join(levels)}/tables/{last}"


NAMES = [
    ("sales", ".."), ("hr", "people"), ("sales", "nothing"), ("deep", "er", "a/b"),
    ("sales", "orders"), ("hr", "nothing"), ("deep", "top"), ("nowhere", "t"),
]  # fmt: skip


@pytest.mark.parametrize("method", in_circles(["GET", "HEAD"], test=1))
@pytest.mark.parametrize("name", in_circles(map(pytest.param, NAMES), test=4))
def test_a_table_is_shown_to_whom_the_protocol_gives_it(
    server: Running, name: tuple[str, ...], method: str
) -> None:
    for token in (OWNER, SALES):
        with server.client(token, **PLAIN) as client, browser(server, token) as page:
            asked = client.get(path_of(*name))
            shown = page.request(method, address(*name))
            assert shown.status_code == asked.status_code
            assert (shown.content == b"") == (method == "HEAD")
            assert shown.headers["content-type"] == "text/html; charset=utf-8"
            if asked.status_code != 200 and method == "GET":
                assert asked.json()["error"]["message"] in Parts(shown.text).text
    with browser(server) as nobody:
        assert nobody.request(method, address(*name)).status_code == 401


def test_the_index_has_what_may_be_read(server: Running) -> None:
    with browser(server, SALES) as client:
        page = client.get("/").text
        head = client.head("/")
        assert (head.status_code, head.content) == (200, b"")
    rows = rows_of(page)
    names = [each.split("<")[0].strip() for each in rows]
    assert names == ["deep.er.a/b", "sales.`..`", "sales.orders", "sales.`t"]
    text = Parts(page).text
    assert "people" not in text
    assert "deep.top" not in text
    assert "hr" not in {row[0] for row in Parts(page).rows}
    [orders] = [row for name, row in rows.items() if name.startswith("sales.orders")]
    assert orders[:5] == ["table", "20", "2", "30 B", "80"]
    # A total that is no number is not known.
    assert rows["sales.`..`"][:3] == ["table", "–", "1"]
    with browser(server, OWNER) as client:
        everything = client.get("/").text
    assert len(rows_of(everything)) == 6
    assert "empty" in {row[0] for row in Parts(everything).rows}


def test_nothing_that_a_table_holds_is_markup(server: Running) -> None:
    allowed = {"script", "style", "meta", "link", "html", "head", "body", "title"}
    with browser(server, SALES) as client:
        for at, scripts in (("/", 1), (address("sales", "orders"), 3)):
            page = client.get(at)
            parts = Parts(page.text)
            assert parts.tags.count("script") == scripts
            assert not {"img", "iframe", "object"} & set(parts.tags) - allowed
            assert parts.handlers == []
            assert HOSTILE in parts.text
            assert "sales <b>" in parts.text
            assert "hush-hush" not in page.text
            # What stands in no page by these scripts does not run, were it in one.
            policy = re.search(r"script-src ([^;]*);", page.text)
            assert policy is not None
            assert "unsafe-inline" not in policy[1]
            assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
            assert page.headers["cache-control"] == "no-store"
            # Behind any prefix: nothing names the root of the host, or another one.
            links = [each for each in parts.links if each != "data:,"]
            assert not [each for each in links if each.startswith("/") or ":" in each]
        for link in parts.links:
            if link.startswith("plotly-"):
                script = client.get(f"/{link}", headers={"Accept": "*/*"})
                assert (script.status_code, "immutable" in script.headers["cache-control"]) == (
                    200, True
                )  # fmt: skip
    with httpx.Client(**PLAIN, base_url=server.uri) as client:
        assert client.get("/plotly-other.js").status_code == 404


ACCEPTS = {
    "browsers": (HTML["Accept"], True),
    "html alone": ("text/html", True),
    "curl and httpx": ("*/*", False),
    "json": ("application/json", False),
    "json before html": ("application/json, text/html;q=0.5", False),
    "no html": ("text/html;q=0, */*", False),
    "malformed": ("text/html;q=x", False),
    "nothing": ("", False),
}


@pytest.mark.parametrize("case", in_circles(ACCEPTS, test=4))
def test_who_asks_for_no_page_gets_the_answer_of_the_protocol(server: Running, case: str) -> None:
    accept, is_page = ACCEPTS[case]
    for token, status in ((None, 401), (OWNER, 200 if is_page else 404)):
        with server.client(token, **PLAIN) as client:
            answer = client.get("/", headers={"Accept": accept})
            assert answer.status_code == status
            assert ("<html" in answer.text) == is_page
            if not is_page:
                assert answer.json()["error"]["code"] == status
            # The protocol's own paths know no pages.
            config = client.get("/v1/config", headers={"Accept": accept})
            assert config.headers["content-type"] == "application/json"
            assert client.post("/", headers={"Accept": accept}).status_code == min(status, 404) or (
                is_page and token
            )


def test_the_cookie_is_no_token_and_holds_none(server: Running) -> None:
    with browser(server) as client:
        answer = log_in(client, SALES)
        cookie = answer.headers["set-cookie"]
        assert answer.headers["location"] == "./"
        assert re.fullmatch(
            r"frazil-session-[0-9a-f]{8}=[\w=-]+; HttpOnly; SameSite=Strict; Max-Age=43200", cookie
        )
        name, value = cookie.split(";")[0].split("=", 1)
        for each in (SALES, hashlib.sha256(SALES.encode()).hexdigest()):
            raw = base64.urlsafe_b64decode(value)
            assert each not in cookie
            assert each.encode() not in raw
            assert hashlib.sha256(SALES.encode()).digest() not in raw
        path = path_of("sales", "orders")
        for at in ("/v1/config", path, "/v1/namespaces"):
            assert client.get(at).status_code == 401
        for headers in ({"Authorization": f"Bearer {value}"}, {"Authorization": "Bearer"}):
            assert client.get("/v1/config", headers=headers).status_code == 401
            # A token of the request counts, and not the cookie beside it.
            assert client.get("/", headers=headers).status_code == 401
        with server.client(OWNER, **PLAIN, cookies={name: value}) as both:
            assert both.get(path_of("hr", "people")).status_code == 200
        assert client.get("/").status_code == 200
        out = client.post("/logout", headers=HERE, data={})
        assert "Max-Age=0" in out.headers["set-cookie"]
        assert client.get("/").status_code == 401


def test_a_cookie_that_is_changed_logs_nobody_in(server: Running) -> None:
    with browser(server) as client:
        cookie = log_in(client, SALES).headers["set-cookie"].split(";")[0]
        client.cookies.clear()
        name, value = cookie.split("=", 1)
        raw = bytearray(base64.urlsafe_b64decode(value))
        changed = ["", "x", "=", "é".encode().decode("latin-1"), value[:-8], value + "AAAA"]
        for place in range(0, len(raw), 7):
            other = bytearray(raw)
            other[place] ^= 1
            changed.append(base64.urlsafe_b64encode(bytes(other)).decode())
        for each in changed:
            sent = {"Cookie": f"{name}={each}".encode("latin-1")}
            assert client.get("/", headers=sent).status_code == 401
        assert client.get("/", headers={"Cookie": f"{name}=x; {cookie}"}).status_code == 200


FOREIGN: dict[str, Mapping[str, str]] = {
    "nothing": {},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "another port": {"Sec-Fetch-Site": "same-site"},
    "typed": {"Sec-Fetch-Site": "none"},
    "another origin": {"Origin": "https://evil.example"},
    "no origin": {"Origin": "null"},
    "malformed": {"Origin": "http://[x"},
    "its own name before": {"Origin": "http://127.0.0.1.evil.example"},
}


@pytest.mark.parametrize("case", in_circles(FOREIGN, test=5))
@pytest.mark.parametrize("path", in_circles(["/login", "/logout"], test=1))
def test_a_form_of_another_site_is_refused(server: Running, path: str, case: str) -> None:
    with browser(server) as client:
        answer = client.post(path, data={"token": SALES}, headers=FOREIGN[case])
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


def test_a_form_by_its_origin_alone(server: Running) -> None:
    """As browsers send it to a host that has no TLS; a proxy has another name for the server."""
    with browser(server) as client:
        for headers in (
            {"Origin": server.uri},
            {"Origin": "https://lake.example", "X-Forwarded-Host": "lake.example"},
        ):
            assert client.post("/login", data={"token": SALES}, headers=headers).status_code == 303


@pytest.mark.parametrize(
    ("then", "location"),
    [
        ("", "./"),
        ("sales\x1forders", "table?name=sales%1Forders"),
        ("sales\x1f//evil.example", "table?name=sales%1F%2F%2Fevil.example"),
        ("//evil.example", None),
        ("https://evil.example/", None),
        ("a\x1fb\r\nSet-Cookie: x=y", None),
    ],
)
def test_a_login_leads_to_no_other_server(server: Running, then: str, location: str | None) -> None:
    with browser(server) as client:
        answer = log_in(client, SALES, then=then)
        assert answer.headers.get("location") == location
        assert answer.status_code == (400 if location is None else 303)


def test_a_login_that_fails(server: Running) -> None:
    with browser(server) as client:
        # What was asked for is shown once somebody is logged in.
        asked = client.get(address("sales", HOSTILE))
        assert asked.status_code == 401
        assert Parts(asked.text).fields["then"] == f"sales\x1f{HOSTILE}"
        for token in ("", "wrong", SALES[:-1], HOSTILE):
            answer = log_in(client, token, then=HOSTILE)
            assert answer.status_code == 403
            assert "set-cookie" not in answer.headers
            assert "no such token" in Parts(answer.text).text
            assert not {"script", "img"} & set(Parts(answer.text).tags)
        as_json = client.post("/login", json={"token": SALES}, headers=HERE)
        assert as_json.status_code == 400
        long = client.post("/login", data={"token": "x" * 20_000}, headers=HERE)
        assert long.status_code == 400
        assert client.get("/", params={"token": SALES}).status_code == 401


def test_a_proxy_speaks_tls_for_the_server(server: Running) -> None:
    with browser(server) as client:
        sent = {"X-Forwarded-Proto": "https", **HERE}
        cookie = client.post("/login", data={"token": SALES}, headers=sent).headers["set-cookie"]
        assert cookie.endswith("; Secure")


def test_a_token_that_is_taken_away_ends_its_sessions(lake: Path) -> None:
    """At every server of the same key, also where the page is still open; others go on."""
    only_owner = "".join(line + "\n" for line in BOTH.splitlines() if SALES not in line)
    with serving(lake, session_key=KEY) as server, browser(server, SALES) as client:
        with browser(server, OWNER) as owner:
            cookies, others = dict(client.cookies), dict(owner.cookies)
        assert client.get(address("sales", "orders")).status_code == 200
    port = httpx.URL(server.uri).port
    with serving(lake, only_owner, session_key=KEY, port=port) as server:
        for held, status in ((cookies, 401), (others, 200)):
            with httpx.Client(**PLAIN, base_url=server.uri, headers=HTML, cookies=held) as again:
                for at in ("/", address("sales", "orders")):
                    assert again.get(at).status_code == status
    with (
        serving(lake, session_key=b"x" * 32) as server,
        httpx.Client(**PLAIN, base_url=server.uri, headers=HTML, cookies=others) as again,
    ):
        assert again.get("/").status_code == 401
    short = ServeSettings(session_hours=0)
    with serving(lake, settings=short) as server, browser(server, SALES) as client:
        assert client.get("/").status_code == 401


def test_a_server_without_tokens_asks_for_none(lake: Path) -> None:
    with serving(lake, None) as server, browser(server) as client:
        page = client.get("/")
        assert len(rows_of(page.text)) == 6
        assert "logout" not in page.text
        assert client.get("/login").headers["location"] == "./"
        # A page of the web that calls this machine by its own name.
        assert client.get("/", headers={"Host": "evil.example"}).status_code == 400


def test_a_search_and_pages(lake: Path) -> None:
    few = ServeSettings(page_rows=2)
    with serving(lake, settings=few) as server, browser(server, OWNER) as client:
        seen: list[str] = []
        for number in (1, 2, 3):
            page = client.get("/", params={"page": number}).text
            assert f"6 of 6, page {number} of 3" in page
            seen += rows_of(page)
        assert len(set(seen)) == 6
        assert list(rows_of(client.get("/?page=99").text)) == seen[4:]
        found = client.get("/", params={"q": "SALES.T"}).text
        assert [each[:8] for each in rows_of(found)] == ["sales.`t"]
        assert Parts(found).fields["q"] == "SALES.T"
        nothing = client.get("/", params={"q": HOSTILE[1:] + "x"})
        assert (nothing.status_code, len(rows_of(nothing.text))) == (200, 0)
        for wrong in ("0", "-1", "x", "²"):
            assert client.get("/", params={"page": wrong}).status_code == 400


@pytest.mark.parametrize("kind", ["sql", "hadoop"])
def test_the_index_reads_no_manifest_and_bears_what_is_broken(tmp_path: Path, kind: str) -> None:
    place = str(tmp_path / "lake")
    catalog = load_catalog("lake", type=kind, warehouse=place)
    catalog.create_namespace("a")
    for name in ("good", "lost"):
        made(catalog, ("a", name), sizes=[1, 2])
    for each in (tmp_path / "lake").rglob("*.avro"):
        each.unlink()
    for each in (tmp_path / "lake" / "a" / "lost").rglob("*.json"):
        each.write_text("{")
    with serving(tmp_path, None, catalog=catalog) as server, browser(server) as client:
        if kind == "sql":
            with server.client(**PLAIN) as api:
                assert view(api).status_code == 200
        page = client.get("/").text
        rows = rows_of(page)
        assert rows["a.good"][:4] == ["table", "20", "2", "3 B"]
        [lost] = [each for each in rows if each.startswith("a.lost")]
        assert "cannot be loaded: " in lost
        assert rows[lost][1:] == ["–"] * 5
        if kind == "sql":
            assert rows["a.v"][:2] == ["view", "–"]
        assert client.get(address("a", "lost")).status_code >= 400
        shutil.rmtree(tmp_path / "lake" / "a" / "good")
        assert client.get("/").status_code == 200


def test_an_empty_lake(tmp_path: Path) -> None:
    with serving(tmp_path, None) as server, browser(server) as client:
        page = Parts(client.get("/").text).text
        assert "There are no tables yet." in page
        assert "There are no namespaces yet." in page


@pytest.mark.check
def test_any_worker_knows_who_is_logged_in(lake: Path) -> None:
    file = lake / "workers.yaml"
    file.write_text(BOTH)
    program, uri = started(lake / "lake", "--workers", "2", "--token-file", str(file))
    # A worker that has just started imports much before it answers.
    slow: dict[str, Any] = {**PLAIN, "base_url": uri, "headers": HTML, "timeout": 60}
    try:
        with httpx.Client(**slow) as client:
            assert log_in(client, SALES).status_code == 303
            held = dict(client.cookies)
        for _ in range(20):
            with httpx.Client(**slow, cookies=held) as client:
                assert client.get("/").status_code == 200
        assert SALES not in program.said
    finally:
        program.kill()
