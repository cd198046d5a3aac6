"""What a Hive catalog says where Kerberos is asked for and nothing here can speak it."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest
from catalog_cases import opened

from frazil.errors import ConfigurationError

pytest.importorskip("thrift")
pytest.importorskip("pymetastore")


def test_kerberos_without_its_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("puresasl", "puresasl.client"):
        monkeypatch.setitem(sys.modules, name, None)
    properties = {
        "type": "hive",
        "uri": "thrift://127.0.0.1:1",
        "warehouse": str(tmp_path),
        "hive.kerberos-authentication": "true",
    }
    told = pytest.raises(ConfigurationError, match=r"frazil\[hive-kerberos\]")
    with closing(opened(properties)) as catalog, told:
        catalog.list_namespaces()
