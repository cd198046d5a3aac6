"""A standalone cluster whose workers see nothing of the driver's disk.

Each worker has a file system of its own: the system's programs, Spark's archive, and folders of its
own. So whatever a task needs has to come by Spark.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from absent import skip_without
from frazil.spark.local.java import find_java
from programs import free_port

_SYSTEM = ("bin", "etc", "lib", "lib32", "lib64", "sbin", "usr")
_OF_SPARK = ("bin", "jars", "python/lib", "sbin")
CONNECTORS = "/spark/connectors"
_OWN = ("tmp", "work", "proc", "dev", CONNECTORS.lstrip("/"))
_WORKER = "org.apache.spark.deploy.worker.Worker"
_MASTER = "org.apache.spark.deploy.master.Master"


@dataclass(frozen=True)
class Cluster:
    """A master and its workers.

    Attributes:
        master: its address.
        roots: what each worker sees as its whole disk.
    """

    master: str
    roots: tuple[Path, ...]


def namespaces(*words: str) -> list[str]:
    """Words that begin a command with mounts and processes of its own."""
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *rights, "--mount", "--pid", "--fork", "--kill-child", *words]


def need_namespaces(folder: Path) -> None:
    """Skip the test where this machine has no namespaces, or does not let us make them."""
    place = folder / "mounted"
    place.mkdir()
    try:
        words = namespaces("mount", "--bind", str(folder), str(place))
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        skip_without("there is no program unshare: this system has no mount namespaces")
    except subprocess.CalledProcessError as error:
        skip_without(f"this machine lets us make no mount namespaces: {error.stderr.strip()}")


@contextmanager
def cluster(
    folder: Path, spark: Path, *, jars: Sequence[Path] = (), workers: int = 2
) -> Iterator[Cluster]:
    """Start a cluster.

    Args:
        folder: an empty one, for the workers' disks and what they say.
        spark: Spark's archive, unpacked.
        jars: what the workers' Spark has besides, in `CONNECTORS`.

    Raises:
        AssertionError: it did not start; what it said is in the message.
    """
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:
        words = [str(spark / "bin" / "spark-class"), _MASTER, "--host", "127.0.0.1"]
        words += ["--port", str(port), "--webui-port", "0"]
        log = folder / "master.log"
        running.enter_context(_process(words, log, _settings(str(spark), "127.0.0.1")))
        _wait_for(log, "I have been elected leader")
        roots = tuple(_root(folder / f"worker{number}", jars) for number in range(workers))
        for number, root in enumerate(roots, 1):
            # Spark begins no second attempt of a task on the host of its first.
            words = _worker(root, master, jars, host=f"127.0.0.{number}")
            running.enter_context(_process(words, root.with_suffix(".log"), {}))
        for root in roots:
            _wait_for(root.with_suffix(".log"), "Successfully registered with master")
        yield Cluster(master, roots)


def _settings(home: str, host: str) -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "JAVA_HOME": find_java().home,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def _root(root: Path, jars: Sequence[Path]) -> Path:
    """The folders of a worker's disk; what is mounted there is, once it runs."""
    for name in (*_OWN, *(f"spark/{each}" for each in _OF_SPARK)):
        (root / name).mkdir(parents=True)
    for jar in jars:
        (root / CONNECTORS.lstrip("/") / jar.name).touch()
    for name in _SYSTEM:
        place = Path("/") / name
        if place.is_symlink():
            (root / name).symlink_to(os.readlink(place))
        elif place.is_dir():
            (root / name).mkdir()
    for place in _besides():
        (root / str(place).lstrip("/")).mkdir(parents=True, exist_ok=True)
    return root


def _besides() -> set[Path]:
    """Where Java and Python are, if they are no part of the system's programs."""
    found = {Path(find_java().home), Path(sys.base_prefix)}
    return {each for each in found if each.parts[1] not in _SYSTEM}


def _worker(root: Path, master: str, jars: Sequence[Path], *, host: str) -> list[str]:
    package = Path(pyspark.__file__).parent
    mounts = {Path("/") / each: each for each in _SYSTEM if not (root / each).is_symlink()}
    mounts = {place: name for place, name in mounts.items() if (root / name).is_dir()}
    mounts |= {place: str(place).lstrip("/") for place in _besides()}
    mounts |= {package / each: f"spark/{each}" for each in _OF_SPARK}
    mounts |= {jar: f"{CONNECTORS.lstrip('/')}/{jar.name}" for jar in jars}
    lines = [shlex.join(["mount", "--rbind", str(a), str(root / b)]) for a, b in mounts.items()]
    lines += [f"mount --rbind /dev {shlex.quote(str(root / 'dev'))}"]
    lines += [f"mount -t proc proc {shlex.quote(str(root / 'proc'))}"]
    settings = [f"{key}={value}" for key, value in _settings("/spark", host).items()]
    command = ["/spark/bin/spark-class", _WORKER, "--host", host, "--webui-port", "0"]
    command += ["--cores", "1", "--memory", "1g", "--work-dir", "/work", master]
    lines += ["exec " + shlex.join(["chroot", str(root), "env", "-i", *settings, *command])]
    return namespaces("sh", "-ec", "\n".join(lines))


@contextmanager
def _process(words: list[str], log: Path, variables: Mapping[str, str]) -> Iterator[None]:
    with log.open("w") as said:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_for(log: Path, words: str, *, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while words not in log.read_text(errors="replace"):
        said = log.read_text(errors="replace")[-4000:]
        assert time.monotonic() < deadline, f"{log.name} does not say {words!r}: {said}"
        time.sleep(0.1)
