"""A realm of Kerberos with a KDC of its own on this machine, and tickets of its users."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from hive_server import Metastore, free_port, metastore

CLIENT: Final = Path(__file__).parents[2] / ".venvkerberos"
"""What scripts/kerberos.sh has made: it needs headers of C, so it is in no environment."""
REALM: Final = "FRAZIL.TEST"
SERVICE: Final = "hive/localhost"
USER: Final = "anna"
_SECONDS: Final = 30
_FOLDERS: Final = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


@dataclass(frozen=True)
class Realm:
    """A realm whose KDC runs.

    Attributes:
        folder: its files.
        port: where the KDC listens on this machine.
    """

    folder: Path
    port: int

    @property
    def config(self) -> Path:
        """What clients and servers read of the realm."""
        return self.folder / "krb5.conf"

    def environment(self) -> dict[str, str]:
        """What the programs of Kerberos are told."""
        return {
            **os.environ,
            "PATH": _FOLDERS,
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
        }

    def add(self, principal: str) -> None:
        """Make a user or a service, with a key that nobody types."""
        self._administer("addprinc", "-randkey", principal)

    def keytab(self, principal: str) -> Path:
        """The file with a principal's key."""
        path = self.folder / f"{principal.replace('/', '-')}.keytab"
        if not path.exists():
            self._administer("ktadd", "-norandkey", "-k", str(path), principal)
        return path

    def change_key(self, principal: str) -> None:
        """Give a principal another key, so that its keytab is out of date."""
        self._administer("cpw", "-randkey", principal)

    def take_ticket(self, principal: str, place: Path, *, life: str = "1h") -> str:
        """Take a ticket for a user.

        Args:
            principal: the user's.
            place: the file for the ticket.
            life: how long it lasts, as kinit has it.

        Returns:
            the place, as KRB5CCNAME has it.
        """
        name = f"FILE:{place}"
        taken = ["kinit", "-l", life, "-c", name, "-k", "-t", str(self.keytab(principal))]
        subprocess.run([*taken, principal], env=self.environment(), check=True, timeout=_SECONDS)
        return name

    def _administer(self, *command: str) -> None:
        done = subprocess.run(
            ["kadmin.local", "-r", REALM, *command],
            env=self.environment(),
            capture_output=True,
            timeout=_SECONDS,
        )
        # It ends with 0 whatever became of the command.
        assert not done.stderr or b"no policy specified" in done.stderr, done.stderr


@contextmanager
def kerberos_metastore(
    realm: Realm, version: str, folder: Path, **more: str
) -> Iterator[Metastore]:
    """Start a metastore that wants tickets of the realm.

    Args:
        realm: knows the service.
        version: Hive's.
        folder: for its files.
        more: settings of Hive and of Hadoop.
    """
    settings = {
        "hadoop.security.authentication": "kerberos",
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.keytab.file": str(realm.keytab(SERVICE)),
        "hive.metastore.kerberos.principal": f"{SERVICE}@{REALM}",
        **more,
    }
    options = [f"-Djava.security.krb5.conf={realm.config}"]
    with metastore(version, folder, more=settings, java_options=options) as running:
        yield running


@contextmanager
def kerberos_realm() -> Iterator[Realm]:
    """Start the KDC of a new realm; skips the test where it or its client is not there."""
    if CLIENT.is_dir() and str(CLIENT) not in sys.path:
        sys.path.append(str(CLIENT))
    if importlib.util.find_spec("kerberos") is None or importlib.util.find_spec("puresasl") is None:
        pytest.skip("the client of Kerberos is not there: `make catalogs` gets it, or says why")
    missing = [name for name in _PROGRAMS if shutil.which(name, path=_FOLDERS) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} of MIT Kerberos: `make catalogs` gets it, or says why")
    with tempfile.TemporaryDirectory(prefix="frazil-krb5-") as folder:
        realm = Realm(Path(folder), free_port())
        _write_settings(realm)
        subprocess.run(
            ["kdb5_util", "-r", REALM, "-P", "master", "create", "-s"],
            env=realm.environment(),
            check=True,
            capture_output=True,
            timeout=_SECONDS,
        )
        with (realm.folder / "log").open("w") as log:
            process = subprocess.Popen(
                ["krb5kdc", "-n", "-r", REALM],
                env=realm.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait(realm, process)
            yield realm
        finally:
            process.kill()
            process.wait(_SECONDS)


def _write_settings(realm: Realm) -> None:
    folder = realm.folder
    realm.config.write_text(f"""[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{realm.port}
  }}
[domain_realm]
  localhost = {REALM}
""")
    (folder / "kdc.conf").write_text(f"""[kdcdefaults]
  kdc_listen = 127.0.0.1:{realm.port}
  kdc_tcp_listen = 127.0.0.1:{realm.port}
[realms]
  {REALM} = {{
    database_name = {folder}/principal
    key_stash_file = {folder}/stash
    acl_file = {folder}/acl
  }}
[logging]
  kdc = FILE:{folder}/kdc.log
""")


def _wait(realm: Realm, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", realm.port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"no KDC: {(realm.folder / 'log').read_text()}")
