"""A real PostgreSQL in a folder of its own, as a user that is not root."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from absent import skip_without

_FOLDERS = ["/usr/lib/postgresql/*/bin", "/usr/local/bin", "/opt/homebrew/opt/postgresql*/bin"]


def _binaries() -> Path | None:
    found = [Path(path) for pattern in _FOLDERS for path in sorted(glob.glob(pattern))[::-1]]
    on_path = shutil.which("initdb")
    candidates = [*found, *([Path(on_path).parent] if on_path else [])]
    return next(
        (p for p in candidates if (p / "initdb").exists() and (p / "pg_ctl").exists()), None
    )


def _unprivileged() -> str | None:
    """The user to run as when we are root, which PostgreSQL refuses to be."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            return name
    raise RuntimeError("root has no other user to run PostgreSQL as")


class PostgresServer:
    """One PostgreSQL server on a loopback port."""

    def __init__(
        self, binaries: Path, folder: Path, user: str | None, settings: tuple[str, ...] = ()
    ) -> None:
        self.settings = settings
        self.binaries = binaries
        self.folder = folder
        self.user = user
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run one of the server's programs, as the unprivileged user."""
        return subprocess.run(
            [str(self.binaries / command[0]), *command[1:]],
            user=self.user,
            check=check,
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c fsync=off "
            f"-c unix_socket_directories={self.folder}"
            + "".join(f" -c {setting}" for setting in self.settings)
        )
        log = str(self.folder / "log")
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-l", log, "-o", options, "start")

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop", check=False)

    def url(self, database: str, *, password: str = "s3cr3t-pw") -> str:
        """The URL of a database."""
        return f"postgresql+psycopg://frazil:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str) -> str:
        """Make a database and return its URL."""
        port = str(self.port)
        self.run("createdb", "-h", str(self.folder), "-p", port, "-U", "frazil", name)
        return self.url(name)


@contextlib.contextmanager
def postgres_server(*settings: str) -> Iterator[PostgresServer]:
    """A running PostgreSQL server; the test is skipped where there are no programs for it.

    Settings are as `wal_level=logical`.
    """
    binaries = _binaries()
    if binaries is None:
        skip_without("no PostgreSQL server is installed")
        return
    with tempfile.TemporaryDirectory(prefix="frazil-pg-") as name:
        folder = Path(name)
        user = _unprivileged()
        if user is not None:
            entry = pwd.getpwnam(user)
            os.chown(folder, entry.pw_uid, entry.pw_gid)
        server = PostgresServer(binaries, folder, user, settings)
        secret = folder / "pw"
        secret.write_text("s3cr3t-pw")
        secret.chmod(0o644)
        try:
            server.run(
                *("initdb", "-D", str(folder / "data"), "-U", "frazil", "-E", "UTF8", "-N"),
                *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}"),
            )
            server.start()
        except (subprocess.CalledProcessError, OSError) as error:
            output = getattr(error, "stdout", b"") or b""
            skip_without(f"PostgreSQL does not start: {error} {output.decode()[-500:]}")
            return
        try:
            yield server
        finally:
            server.stop()
