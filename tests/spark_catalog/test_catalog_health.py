"""The port that says whether a server is well: what supervisors ask by plain HTTP."""

from __future__ import annotations

import threading
from http.client import HTTPConnection

import pytest

from frazil.errors import ConfigurationError
from frazil.spark.catalog import health
from frazil.spark.catalog.health import HealthPort


def answer(port, path="/health", method="GET"):
    """The code and the text of an answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        found = connection.getresponse()
        assert "Python" not in str(found.headers)
        return found.status, found.read().decode()
    finally:
        connection.close()


def test_one_that_is_not_well_is_not_available():
    """What it says follows the server; other questions are refused."""
    with HealthPort("127.0.0.1", 0) as port:
        assert answer(port.port) == (503, '{"status": "starting"}')
        port.ask(lambda: "ok")
        assert answer(port.port, "/health?verbose") == (200, '{"status": "ok"}')
        assert answer(port.port, method="HEAD") == (200, "")
        assert answer(port.port, "/")[0] == 404
        assert answer(port.port, method="POST")[0] == 501
        port.ask(lambda: "stopping")
        assert answer(port.port) == (503, '{"status": "stopping"}')
        with pytest.raises(ConfigurationError, match=f"port {port.port}: .*in use"):
            HealthPort("127.0.0.1", port.port)


def test_no_one_waits_behind_a_question_without_an_answer(monkeypatch):
    """Spark may hang: those who ask again are told."""
    monkeypatch.setattr(health, "_LONGEST", 0.1)
    asked, goes_on = threading.Event(), threading.Event()

    def hangs():
        asked.set()
        goes_on.wait(30)
        return "ok"

    with HealthPort("127.0.0.1", 0) as port:
        port.ask(hangs)
        first = threading.Thread(target=port.status)
        first.start()
        assert asked.wait(30)
        assert answer(port.port) == (503, '{"status": "no answer"}')
        goes_on.set()
        first.join()
        assert answer(port.port)[0] == 200
