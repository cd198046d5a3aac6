"""Spark's own writer with a committer that leaves each file where it was written.

That of Spark's file streams: each attempt of a task writes files under names of its own, and the
driver puts the files of the attempts that it saw end into a list. Nothing is renamed, and nothing
is listed. The list is one on the driver's disk, and serves one write.

Spark offers this to no public method. The classes are called through the bridge to the virtual
machine, where there is one that lets them be called.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from frazil.errors import StorageError, UnsupportedError
from frazil.spark.abilities import (
    NO_ANSWER,
    class_named,
    is_refusal,
    module_named,
    streaming_class,
)
from frazil.spark.files.parquet.access import SparkAccess
from frazil.spark.files.parquet.file_log import session_of_lists
from frazil.spark.files.parquet.s3a import scheme_of_writes
from frazil.spark.gateway_errors import Py4JError
from frazil.spark.session.by_session import BySession
from frazil.spark.session.facts import is_connect, word_of_setting
from frazil.spark.session.hidden_options import java_options
from frazil.storage.files import FileInfo

IN_PLACE_SETTING: Final = "frazil.write.in-place"
"""Session setting: ``auto`` (on stores and HDFS, if Spark lets itself be called so), ``always`` or
``never``."""

_DATASOURCES: Final = "org.apache.spark.sql.execution.datasources"
_WRITER: Final = f"{_DATASOURCES}.FileFormatWriter"
_PARAMETERS: Final = (
    "(FileFormatWriter$,SparkSession,SparkPlan,FileFormat,FileCommitProtocol,OutputSpec,"
    "Configuration,Seq,Option,Seq,Map,int"
)
_LIST_VERSION: Final = 1

_NAMED_AS: Final = "save"
"""What listeners hear of a write. Without a name Spark tells nobody that it ended, and how many
rows passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Makers:
    """What a write is made of in a session; each is an object of the virtual machine.

    Attributes:
        body: makes the body of an execution of what differs between writes.
        execution: runs it as a query.
        name: of the query.
        committer: makes committers.
        file_list: makes lists of files.
        none: Scala's, for what is not given.
        output: makes what says where rows go.
        nothing: an empty map.
        options: makes maps of Scala.
    """

    session: Any
    body: Any
    execution: Any
    name: Any
    committer: Any
    file_list: Any
    none: Any
    output: Any
    nothing: Any
    options: Any


_MAKERS: Final = BySession[_Makers | None]()


def write_in_place(
    rows: DataFrame,
    access: SparkAccess,
    folder: str,
    *,
    keys: Sequence[str],
    options: Mapping[str, str],
    is_local: bool,
) -> list[FileInfo] | None:
    """Write rows as Parquet files of a folder; return those that a commit may name.

    Args:
        rows: their last columns are the keys.
        access: how Spark reaches the folder.
        folder: a fresh one, as manifests have it; its name is in no other path.
        keys: columns that make folders, and are not in the files.
        options: of Spark's writer.
        is_local: whether the folder is on the local disk, where a rename costs less than the list.

    Returns:
        the files in the order of tasks and, of a task, of its files; None where this session has
        no such way: nothing was written then.

    Raises:
        ConfigurationError: the setting is malformed.
        UnsupportedError: the setting says ``always``, and there is no such way.
        StorageError: the list cannot be read.
    """
    choice = word_of_setting(rows.sparkSession, IN_PLACE_SETTING, "auto", "always", "never")
    is_wanted = choice == "always" or (choice == "auto" and not is_local)
    makers = None if not is_wanted else _MAKERS.get_or_make(rows.sparkSession, _make_or_none)
    found = None if makers is None else _write(makers, rows, access, folder, keys, options)
    if found is None and choice == "always":
        raise UnsupportedError(
            f"{IN_PLACE_SETTING} is always, and this Spark does not let its writer be called so: "
            "set it to auto"
        )
    return found


def _write(
    makers: _Makers,
    rows: DataFrame,
    access: SparkAccess,
    folder: str,
    keys: Sequence[str],
    options: Mapping[str, str],
) -> list[FileInfo] | None:
    with _local_list(makers, rows.sparkSession) as (list_folder, new_list):
        try:
            frame: Any = rows
            query = frame._jdf.queryExecution()
            plan = query.executedPlan()
            output = _named_output(frame._jdf, query, plan)
            given = makers.options.toScalaMap(
                java_options(rows.sparkSession, options, hidden=access.options)
            )
            settings = makers.session.sessionState().newHadoopConfWithOptions(given)
            place, more = scheme_of_writes(access.paths.item(), settings.get)
            for name, value in more.items():
                settings.set(name, value)
            committer = makers.committer(str(uuid4()), place)
            committer.setupManifestOptions(new_list, 0)
            spec = makers.output(place, makers.nothing, output)
            columns = output.takeRight(len(keys))
            body = makers.body.invokeWithArguments(
                [plan, committer, spec, settings, columns, given]
            )
            makers.execution.withNewExecutionId(query, makers.name, body)
        except Py4JError as error:
            if not is_refusal(error):
                raise
            _MAKERS.put(rows.sparkSession, None)
            return None
        return list(_read_list(list_folder, folder))


def _named_output(frame: Any, query: Any, plan: Any) -> Any:
    """The columns of a plan with the names and ids of the rows, which the optimizer may change."""
    named, planned = frame.schema().json(), plan.schema().json()
    output = plan.output()
    if named == planned:
        return output
    pairs = zip(json.loads(named)["fields"], json.loads(planned)["fields"], strict=True)
    for place, (wanted, found) in enumerate(pairs):
        if (wanted["name"], wanted["metadata"]) != (found["name"], found["metadata"]):
            metadata = query.analyzed().output().apply(place).metadata()
            column = output.apply(place).withName(wanted["name"]).withMetadata(metadata)
            output = output.updated(place, column)
    return output


@contextmanager
def _local_list(makers: _Makers, spark: SparkSession) -> Iterator[tuple[str, Any]]:
    """A folder of the local disk, gone afterwards, and the list that Spark keeps in it."""
    parent = tempfile.mkdtemp(prefix="frazil-written-")
    try:
        folder = os.path.join(parent, "list")
        session = session_of_lists(spark)
        yield folder, makers.file_list(_LIST_VERSION, session, f"file://{folder}", makers.none)
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _read_list(list_folder: str, folder: str) -> Iterable[FileInfo]:
    try:
        (name,) = (name for name in os.listdir(list_folder) if not name.startswith("."))
        with open(os.path.join(list_folder, name), encoding="utf-8") as stream:
            # Not by splitlines, for which a path may hold ends of lines.
            _, *lines = stream.read().split("\n")
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot read which files Spark wrote to {folder}: {error}") from error
    mark = f"/{folder.rpartition('/')[2]}/"
    for line in lines:
        file = json.loads(line)
        # Spark's path is a URI of the scheme that it writes by.
        _, _, below = unquote(file["path"]).partition(mark)
        yield FileInfo(f"{folder}/{below}", int(file["size"]), int(file["modificationTime"]))


def _make_or_none(spark: SparkSession) -> _Makers | None:
    if is_connect(spark):
        return None
    try:
        return _make(spark)
    except NO_ANSWER:
        return None


def _make(spark: SparkSession) -> _Makers:
    session: Any = spark
    jvm, java_session = session._jvm, session._jsparkSession
    none, nothing = module_named(jvm, "scala.None"), _empty_collection(jvm, "Map")
    writer = module_named(jvm, _WRITER)
    (write,) = (each for each in writer.getClass().getMethods() if each.getName() == "write")
    handles = jvm.java.lang.invoke.MethodHandles
    lookup = handles.privateLookupIn(writer.getClass(), handles.lookup())
    handle = lookup.unreflect(write)
    if not str(handle.type().toString()).startswith(_PARAMETERS):
        raise ValueError(f"Spark's writer takes other arguments: {handle.type().toString()}")
    types = jvm.java.lang.invoke.MethodType
    # The execution takes a function of Scala, and Python has none to give: Java makes one of the
    # method and its arguments, as its compiler does of a lambda.
    function = jvm.java.lang.invoke.LambdaMetafactory.metafactory(
        lookup,
        "apply",
        handle.type().changeReturnType(class_named(jvm, "scala.Function0")),
        types.methodType(class_named(jvm, "java.lang.Object")),
        handle,
        types.methodType(handle.type().returnType()),
    ).getTarget()
    count = handle.type().parameterCount()
    last = [getattr(writer, f"write$default${number}")() for number in range(11, count)]
    parquet = getattr(jvm, f"{_DATASOURCES}.parquet.ParquetFileFormat")()
    body = handles.insertArguments(function, 11, _array(jvm, last))
    # Without trackers, which look at each file; and no buckets.
    body = handles.insertArguments(body, 8, _array(jvm, [none, _empty_collection(jvm, "Nil")]))
    body = handles.insertArguments(body, 3, _array(jvm, [parquet]))
    return _Makers(
        session=java_session,
        body=body.bindTo(writer).bindTo(java_session),
        execution=jvm.org.apache.spark.sql.execution.SQLExecution,
        name=jvm.scala.Option.apply(_NAMED_AS),
        committer=streaming_class(jvm, "ManifestFileCommitProtocol"),
        file_list=streaming_class(jvm, "FileStreamSinkLog"),
        none=none,
        output=getattr(jvm, f"{_WRITER}$OutputSpec"),
        nothing=nothing,
        options=jvm.org.apache.spark.api.python.PythonUtils,
    )


def _empty_collection(jvm: Any, name: str) -> Any:
    made = module_named(jvm, f"scala.collection.immutable.{name}")
    return made if name == "Nil" else made.empty()


def _array(jvm: Any, values: Sequence[Any]) -> Any:
    made = jvm.java.util.ArrayList()
    for value in values:
        made.add(value)
    return made.toArray()
