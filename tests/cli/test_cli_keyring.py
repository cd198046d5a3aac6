"""`frazil catalog` with secrets in the system's keyring, which the file names."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from commands import catalogs_of, frazil

from frazil.catalog.config import load_catalog, resolve
from frazil.errors import ConfigurationError

keyring = pytest.importorskip("keyring")

from keyring.backend import KeyringBackend  # noqa: E402
from keyring.errors import KeyringLocked, PasswordDeleteError  # noqa: E402


class Box(KeyringBackend):
    """A backend by keyring's own interface, which can be locked."""

    priority = 1

    def __init__(self):
        super().__init__()
        self.held = {}
        self.asked = []
        self.is_locked = False

    def get_password(self, service, username):
        self.asked.append(username)
        if self.is_locked:
            raise KeyringLocked("the box is locked")
        return self.held.get((service, username))

    def set_password(self, service, username, password):
        if self.is_locked:
            raise KeyringLocked(f"cannot store {password}")
        self.held[service, username] = password

    def delete_password(self, service, username):
        if (service, username) not in self.held:
            raise PasswordDeleteError("not there")
        del self.held[service, username]


@pytest.fixture
def box():
    """The keyring of the process, with nothing in it."""
    before = keyring.get_keyring()
    made = Box()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture
def heard():
    """A REST catalog without tables, and the headers of the requests that it got."""
    heard = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append(dict(self.headers))
            names = {"namespaces": []} if "namespaces" in self.path else {"defaults": {}}
            body = json.dumps({"overrides": {}, **names}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    heard_of = (f"http://127.0.0.1:{server.server_port}", heard)
    yield heard_of
    server.shutdown()
    server.server_close()


def test_a_secret_is_kept_used_and_forgotten(home, box, heard):
    address, requests = heard
    words = ["--uri", address, "--secret-in-keyring", "token"]
    said = frazil("catalog", "add", "prod", *words, typed="hush-hush\n")
    assert "hush" not in said
    file = home / ".frazil.yaml"
    assert catalogs_of(file) == {"prod": {"uri": address, "keyring": "token"}}
    assert box.held == {("frazil/prod", "token"): "hush-hush"}
    frazil("catalog", "test", "prod")
    assert {each.get("Authorization") for each in requests} == {"Bearer hush-hush"}
    box.asked.clear()
    shown = json.loads(frazil("catalog", "ls", "--json"))
    assert shown[0]["properties"] == {"uri": address, "keyring": "token"}
    assert box.asked == []  # to look opens no keyring
    frazil("catalog", "remove", "prod", "--yes")
    assert box.held == {}
    assert catalogs_of(file) == {}


def test_pyiceberg_does_not_send_the_reference(home, box, heard):
    """It knows nothing of keyrings: it goes without a token rather than with a wrong one."""
    pyiceberg = pytest.importorskip("pyiceberg.catalog")
    from pyiceberg.utils.config import Config

    address, requests = heard
    (home / ".pyiceberg.yaml").write_text("catalog: {}\n")
    words = ["--uri", address, "--type", "rest", "--secret-in-keyring", "token"]
    frazil("catalog", "add", "prod", *words, typed="hush-hush\n")
    found = Config().get_catalog_config("prod")
    assert found == {"uri": address, "type": "rest", "keyring": "token"}
    pyiceberg.load_catalog("prod", **found).list_namespaces()
    sent = {each.get("Authorization") for each in requests}
    requests.clear()
    pyiceberg.load_catalog("plain", uri=address, type="rest").list_namespaces()
    assert sent == {each.get("Authorization") for each in requests}
    assert not [each for each in sent if each and ("hush" in each or "keyring" in each)]


def test_a_whole_uri_may_be_the_secret(home, box):
    uri = f"sqlite:///{home}/c.db?token=hush-hush"
    words = ["--warehouse", str(home), "--uri", uri, "--secret-in-keyring", "uri"]
    assert "hush" not in frazil("catalog", "add", "prod", *words)
    kept = {"warehouse": str(home), "type": "sql", "keyring": "uri"}
    assert catalogs_of(home / ".frazil.yaml") == {"prod": kept}
    assert "hush" not in (home / ".frazil.yaml").read_text()
    assert resolve("prod").properties == {"warehouse": str(home), "type": "sql", "uri": uri}
    assert json.loads(frazil("catalog", "ls", "--json"))[0]["type"] == "sql"


def test_several_secrets_are_a_line_each(home, box):
    keys = [
        "--secret-in-keyring",
        "s3.access-key-id",
        "--secret-in-keyring",
        "s3.secret-access-key",
    ]
    frazil("catalog", "add", "a-b", "--warehouse", str(home), *keys, typed="one\ntwo\n")
    found = resolve("a-b").properties
    assert (found["s3.access-key-id"], found["s3.secret-access-key"]) == ("one", "two")
    assert "keyring" not in found


def test_keyword_and_environment_win(home, box, monkeypatch):
    frazil(
        "catalog", "add", "prod", "--uri", "http://h", "--secret-in-keyring", "token", typed="a\n"
    )
    box.is_locked = True
    assert resolve("prod", {"token": "b"}).properties["token"] == "b"
    monkeypatch.setenv("FRAZIL_CATALOG__PROD__TOKEN", "c")
    assert resolve("prod").properties["token"] == "c"


def configured(home):
    text = "catalog:\n  prod:\n    uri: http://127.0.0.1:1\n    keyring: token, s3.region\n"
    (home / ".frazil.yaml").write_text(text)


def test_a_secret_that_is_not_there_is_asked_for(home, box):
    configured(home)
    with pytest.raises(ConfigurationError) as caught:
        load_catalog("prod")
    assert "keyring set frazil/prod token" in str(caught.value)
    assert "FRAZIL_CATALOG__PROD__TOKEN" in str(caught.value)


def test_a_keyring_that_fails_is_told(home, box):
    configured(home)
    box.is_locked = True
    with pytest.raises(ConfigurationError, match=r"the box is locked.*FRAZIL_CATALOG__PROD__TOKEN"):
        load_catalog("prod")


def test_without_the_library_the_extra_is_named(home, box, monkeypatch):
    configured(home)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ConfigurationError, match=r"frazil\[keyring\]"):
        load_catalog("prod")
    said = frazil("catalog", "remove", "prod", "--yes")
    assert "may still be in the keyring" in said
    assert catalogs_of(home / ".frazil.yaml") == {}


MISTAKES = {
    "a name twice": (["old", "--uri", "http://h"], "token", "has a catalog old already"),
    "nothing typed": (["new", "--uri", "http://h"], "\n", "token was not given"),
    "another secret": (["new", "-p", "password=x"], "token", "FRAZIL_CATALOG__NEW__PASSWORD"),
    "a wrong type": (["new", "--type", "sqll"], "token", "unknown type"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes_keep_nothing(home, box, case):
    words, typed, said = MISTAKES[case]
    text = "catalog:\n  old:\n    uri: http://old\n    keyring: token\n"
    (home / ".frazil.yaml").write_text(text)
    box.held["frazil/old", "token"] = "before"
    add = ["catalog", "add", *words, "--secret-in-keyring", "token"]
    assert said in frazil(*add, code=1, typed=typed)
    assert (home / ".frazil.yaml").read_text() == text
    assert box.held == {("frazil/old", "token"): "before"}


def test_a_file_that_cannot_be_changed_keeps_nothing(home, box):
    (home / ".frazil.yaml").write_text("catalog: {old: {uri: 'sqlite://'}}\n")
    add = ["catalog", "add", "new", "--uri", "http://h", "--secret-in-keyring", "token"]
    assert "change it by hand" in frazil(*add, code=1, typed="hush-hush\n")
    assert box.held == {}


def test_a_keyring_that_is_locked_adds_nothing(home, box):
    box.is_locked = True
    add = ["catalog", "add", "new", "--uri", "http://h", "--secret-in-keyring", "token"]
    said = frazil(*add, code=1, typed="hush-hush\n")
    assert "cannot store ***" in said
    assert "hush" not in said
    assert list(home.iterdir()) == []
