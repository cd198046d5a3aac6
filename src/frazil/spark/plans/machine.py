"""Objects of Python that Spark's virtual machine calls, and errors that it raises for them."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from threading import local
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from frazil.later import later
from frazil.spark.abilities import class_named, made_by, substitutes_parameters
from frazil.spark.gateway_errors import Py4JError, Py4JJavaError
from frazil.spark.plans.callback_connections import add_current_connection
from frazil.spark.plans.sparks_errors import SparksToo, condition_of
from frazil.spark.plans.traces import cut_traces, errors_unlogged, keep_out_of_the_log

if TYPE_CHECKING:
    from py4j.java_gateway import JavaClass, JavaPackage, is_instance_of
    from pyspark.java_gateway import ensure_callback_server_started
else:
    # PySpark's client alone has none of it.
    JavaClass, JavaPackage = later("py4j.java_gateway", "JavaClass", "JavaPackage")
    is_instance_of = later("py4j.java_gateway", "is_instance_of")
    ensure_callback_server_started = later("pyspark.java_gateway", "ensure_callback_server_started")

_OWN_WORDS: Final = "_LEGACY_ERROR_USER_RAISED_EXCEPTION"
"""A condition of Spark's that is nothing but a text."""

FUNCTION: Final = "org.apache.spark.api.java.function.Function2"
"""An interface of Spark's whose method may raise any exception."""

_RUNNER: Final = "org.apache.spark.sql.connector.ExternalCommandRunner"
_TEXTS: Final = "[Ljava.lang.String;"
_OPTIONS: Final = "org.apache.spark.sql.util.CaseInsensitiveStringMap"
ANY: Final = "Exception"
"""The checked exception that a method declares which may raise all of them."""

_MOST_NAMES: Final = 1_000
"""So many names are kept as the virtual machine has them."""

Call = TypeVar("Call", bound=Callable[..., Any])


class _OwnError(Py4JJavaError):  # type: ignore[misc]
    """What an object of ours raises, and the virtual machine as well."""


class _OwnErrorsToo:
    """Whether the virtual machine raises the error that py4j handles, and not a text of it.

    Functions of others, as `foreachBatch` takes them, have their errors told as before.
    """

    def __init__(self, before: Any) -> None:
        self._before = before

    def __bool__(self) -> bool:
        return bool(self._before) or isinstance(sys.exc_info()[1], _OwnError)


class _Kept:
    """A package or a class of the virtual machine, which is asked once for each name in it."""

    def __init__(self, origin: Any) -> None:
        self._origin = origin

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._origin, name)
        is_package = isinstance(found, JavaPackage)
        kept = _Kept(found) if is_package or isinstance(found, JavaClass) else found
        setattr(self, name, kept)
        return kept

    def __call__(self, *arguments: Any) -> Any:
        """Make an object of the class."""
        return self._origin(*arguments)

    @staticmethod
    def origin_of(kind: Any) -> Any:
        """Return a class as py4j has it, which knows its own alone."""
        return kind._origin if isinstance(kind, _Kept) else kind


class MachineRoot:
    """What is kept of one virtual machine.

    Attributes:
        sql: Spark's package of SQL; each name in it is looked for once.
        no_options: a read's options where there are none.
        substitutes_parameters: whether Spark's parser puts the values of parameters in their
            places.
        table_mark: the tag of a node that tells of which table its rows are.
        hidden_mark: the tag of a node whose hidden columns are ours; Spark's joins have such too.
        plan_id: Spark's tag of a plan that has an id, and of a column that is looked for in it.
        hidden_tag: Spark's tag of a node that tells of its hidden columns.
    """

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self.sql = _Kept(jvm.org.apache.spark.sql)
        self.to_sequence = jvm.PythonUtils.toSeq
        self.empty_map = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        self.query_context = jvm.org.apache.spark.QueryContext
        self.no_options = self.sql.util.CaseInsensitiveStringMap.empty()
        self.substitutes_parameters = substitutes_parameters(jvm)
        self.name_parts: dict[tuple[str, ...], Any] = {}
        tag = self.sql.catalyst.trees.TreeNodeTag
        self.table_mark = tag("frazil_table")
        self.hidden_mark = tag("frazil_hidden")
        self.plan_id = tag("plan_id")
        self.hidden_tag = self.sql.catalyst.plans.logical.Project.hiddenOutputTag()

    @cached_property
    def runner_of(self) -> Any:
        """A handle that makes the runner of a command of a function, which may raise anything.

        An object of Python that is the runner itself may raise no checked exception, as Spark's
        are.
        """
        handles = self._jvm.java.lang.invoke
        names = ("java.lang.String", _OPTIONS, _RUNNER, FUNCTION, "java.lang.Object", _TEXTS)
        text, options, runner, function, thing, texts = (
            class_named(self._jvm, name) for name in names
        )
        lookup = handles.MethodHandles.privateLookupIn(runner, handles.MethodHandles.lookup())
        called = lookup.findVirtual(function, "call", self._method(thing, thing, thing))
        method = self._method(texts, text, options)
        return handles.LambdaMetafactory.metafactory(
            lookup, "executeCommand", self._method(runner, function), method, called, method
        ).getTarget()

    def _method(self, returned: Any, *taken: Any) -> Any:
        """The type of a method."""
        types = self._jvm.java.util.ArrayList()
        for each in taken:
            types.add(each)
        return self._jvm.java.lang.invoke.MethodType.methodType(returned, types)

    def sequence_of_parts(self, parts: tuple[str, ...]) -> Any:
        """Return the sequence of a name's parts, which is made once."""
        found = self.name_parts.get(parts)
        if found is None:
            if len(self.name_parts) >= _MOST_NAMES:
                self.name_parts.clear()
            found = self.name_parts[parts] = self.to_sequence(list(parts))
        return found


_ROOTS: Final[WeakKeyDictionary[Any, MachineRoot]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Machine:
    """The virtual machine beside a classic session, which calls back.

    Attributes:
        gateway: of py4j.
    """

    gateway: Any

    @property
    def jvm(self) -> Any:
        """The view of its classes."""
        return self.gateway.jvm

    @property
    def catalyst(self) -> Any:
        """Spark's package of plans."""
        return self.sql.catalyst

    @property
    def connector(self) -> Any:
        """Spark's package of catalogs."""
        return self.sql.connector

    @property
    def sql(self) -> Any:
        """Spark's package of SQL; each name in it is looked for once."""
        return self.root.sql

    @property
    def root(self) -> MachineRoot:
        """What is kept of it."""
        kept = _ROOTS.get(self.gateway)
        if kept is None:
            kept = _ROOTS[self.gateway] = MachineRoot(self.jvm)
        return kept

    def sequence(self, values: Iterable[Any]) -> Any:
        """Return values as an immutable sequence of Scala."""
        return self.root.to_sequence(list(values))

    def name_parts(self, parts: Sequence[str]) -> Any:
        """Return the parts of a name as an immutable sequence of Scala, which is kept."""
        return self.root.sequence_of_parts(tuple(parts))

    def texts(self, values: Sequence[str]) -> Any:
        """Return an array of strings."""
        return self.array(self.jvm.java.lang.String, values)

    def array(self, kind: Any, values: Sequence[Any]) -> Any:
        """Return an array of objects of a class."""
        made = self.gateway.new_array(_Kept.origin_of(kind), len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    def map(self, values: dict[str, str]) -> Any:
        """Return a map of Java."""
        made = self.jvm.java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made

    def empty_map(self) -> Any:
        """Return Scala's map without entries."""
        return self.root.empty_map

    def mapping(self, entries: Iterable[tuple[Any, Any]]) -> Any:
        """Return a map of Scala."""
        made = self.empty_map()
        for key, value in entries:
            made = made.updated(key, value)
        return made

    def named_plan(self, plan: Any, names: Sequence[str]) -> Any:
        """Return a plan whose columns are found by the name of a table, with all before it, too."""
        *qualifier, last = names
        alias = self.catalyst.AliasIdentifier(last, self.name_parts(qualifier))
        return self.catalyst.plans.logical.SubqueryAlias(alias, plan)

    def command_runner(self, function: JavaObject) -> Any:
        """Return the runner of a command that calls a function of `FUNCTION`."""
        arguments = self.jvm.java.util.ArrayList()
        arguments.add(function)
        return self.root.runner_of.invokeWithArguments(arguments)

    def frame(self, spark: Any, plan: Any) -> DataFrame:
        """Return the DataFrame of a plan in a classic session, which is analysed."""
        return DataFrame(self.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)

    def spark_error(self, exception: Any) -> Py4JJavaError:
        """Return what py4j raises in the virtual machine as an exception of Spark's."""
        with suppress(Py4JError):
            # Its words count, whatever its trace is.
            cut_traces(self.gateway, exception)
        return _OwnError(str(exception.getMessage()), exception)

    def py4j_error(self, error: BaseException, declared: Sequence[str]) -> Py4JJavaError:
        """Return what py4j raises in the virtual machine for an error: Spark's own, or a new one.

        Args:
            declared: the checked exceptions that the method may raise; others would end as one
                without a word.
        """
        exception = getattr(error, "java_exception", getattr(error, "_origin", None))
        if exception is None:
            made = self._told_exception(error, declared)
            return self.spark_error(
                made or self._own_exception(text_of_error(error), None, declared)
            )
        name = str(exception.getClass().getSimpleName())
        if name in declared or self._is_a(exception, "java.lang.RuntimeException"):
            return self.spark_error(exception)
        is_sparks = self._is_a(exception, "org.apache.spark.SparkThrowable")
        if not is_sparks or exception.getCondition() is None:
            return self.spark_error(
                self._own_exception(str(exception.getMessage()), exception, declared)
            )
        if ANY in declared:
            return self.spark_error(exception)
        return self.spark_error(self._copied_exception(exception, declared))

    def _is_a(self, exception: Any, kind: str) -> bool:
        return bool(is_instance_of(self.gateway, exception, kind))

    def _told_exception(self, error: BaseException, declared: Sequence[str]) -> Any:
        """An exception with Spark's own words for an error that is Spark's too; None for others."""
        said = error.getMessageParameters() if isinstance(error, SparksToo) else None
        if isinstance(error, SparksToo) and said:
            kinds = ("ParseException",) if isinstance(error, ParseException) else (ANY,)
            allowed = kinds if ANY in declared else declared
            parameters = self.mapping(said.items())
            return self._of_spark(str(error.getCondition()), parameters, None, (), allowed)
        condition = condition_of(error)
        if condition is None and isinstance(error, AnalysisException):
            condition = error.getCondition()
        if condition is None or ANY not in declared:
            return None
        none, contexts = self.jvm.scala.Option.empty(), self.array(self.root.query_context, ())
        return self.sql.AnalysisException(
            text_of_error(error),
            *(none, none, none),
            self.jvm.scala.Option.apply(condition),
            self.empty_map(),
            contexts,
        )

    def _own_exception(self, text: str, cause: Any, declared: Sequence[str]) -> Any:
        """An exception of Spark's with a text of ours."""
        parameters = self.empty_map().updated("errorMessage", text)
        kinds = [each for each in declared if each != ANY]
        return self._of_spark(_OWN_WORDS, parameters, cause, (), kinds)

    def _copied_exception(self, exception: Any, declared: Sequence[str]) -> Any:
        """An exception of Spark's with the same words, of a class that may be raised."""
        parameters = self.empty_map()
        given = exception.getMessageParameters()
        for key in given:
            parameters = parameters.updated(key, given[key])
        context = exception.getQueryContext()
        return self._of_spark(
            str(exception.getCondition()), parameters, exception, list(context), declared
        )

    def _of_spark(
        self,
        condition: str,
        parameters: Any,
        cause: Any,
        context: Sequence[Any],
        declared: Sequence[str],
    ) -> Any:
        contexts = self.array(self.root.query_context, context)
        if ANY in declared:
            none = self.jvm.scala.Option.empty()
            return self.sql.AnalysisException(condition, parameters, contexts, none)
        if "ParseException" in declared:
            none, place = self.jvm.scala.Option.empty(), self.catalyst.trees.CurrentOrigin.get()
            said = (condition, parameters, contexts)
            # Spark 4.0 asks where the statement ends, too.
            kind = self.catalyst.parser.ParseException
            return made_by(kind, (none, place, *said), (none, place, place, *said))
        return self.jvm.org.apache.spark.SparkRuntimeException(
            condition, parameters, cause, contexts, ""
        )

    def not_found(self, parts: Sequence[str]) -> Py4JJavaError:
        """Return Spark's own error of a name that is nobody's, for a parser."""
        name = ".".join(f"`{part}`" for part in parts)
        parameters = self.empty_map().updated("relationName", name).updated("searchPath", name)
        made = self._of_spark("TABLE_OR_VIEW_NOT_FOUND", parameters, None, (), ("ParseException",))
        return self.spark_error(made)


def machine_of(spark: SparkSession) -> Machine:
    """Return the virtual machine of a classic session, ready to call back."""
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    keep_out_of_the_log(_OwnError)
    for parameters in (gateway.python_parameters, gateway.callback_server_parameters):
        # Else an error is the text of a trace of Python.
        before = parameters.propagate_java_exceptions
        if not isinstance(before, _OwnErrorsToo):
            parameters.propagate_java_exceptions = _OwnErrorsToo(before)
    return Machine(gateway)


def analysed_plan(rows: Any) -> Any:
    """Return the plan of a DataFrame of a classic session, as Spark has analysed it."""
    return rows._jdf.queryExecution().analyzed()


def elements(sequence: Any) -> Iterator[Any]:
    """Yield what is in a sequence of Scala."""
    for place in range(sequence.size()):
        yield sequence.apply(place)


def kind_of(node: Any) -> str:
    """Return the name of an object's class."""
    return str(node.getClass().getSimpleName())


def value_of(owner: Any, name: str) -> Any:
    """Return what a private field of an object of the virtual machine holds; see `field_of`."""
    return field_of(owner, name).get(owner)


def field_of(owner: Any, name: str) -> Any:
    """Return a private field of an object of the virtual machine, which can be set.

    Raises:
        Py4JError: there is none of that name.
    """
    kind = owner.getClass()
    while kind is not None:
        for each in kind.getDeclaredFields():
            if str(each.getName()).endswith(name):
                each.setAccessible(True)
                return each
        kind = kind.getSuperclass()
    raise Py4JError(f"{owner.getClass().getName()} has no field {name}")


_ANSWERS: Final = local()
"""What each thread has answered the virtual machine last, and whether its connection is known."""


def holding_answers(method: Call) -> Call:
    """Hold what a method answers the virtual machine until its thread's next answer.

    py4j has the machine forget an object that Python holds no more, and the machine may not have
    read the answer by then: it would find nothing in its place.
    """

    @wraps(method)
    def call(*args: Any) -> Any:
        machine = getattr(args[0], "machine", None) if args else None
        if isinstance(machine, Machine) and not hasattr(_ANSWERS, "is_known"):
            _ANSWERS.is_known = True
            add_current_connection(machine.gateway)
        try:
            _ANSWERS.last = found = method(*args)
        except Py4JJavaError as error:
            _ANSWERS.last = error.java_exception
            raise
        return found

    return call  # type: ignore[return-value]


class JavaObject:
    """An object of Python that the virtual machine calls by the methods of interfaces."""

    machine: Machine

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, member in list(vars(cls).items()):
            if isinstance(member, FunctionType) and not name.startswith("_"):
                setattr(cls, name, holding_answers(member))

    def equals(self, other: object) -> bool:
        """Whether another object is this one."""
        return other is self

    def hashCode(self) -> int:
        """A number for tables of hashes."""
        return id(self) & 0x7FFFFFFF

    def toString(self) -> str:
        """What plans show."""
        return type(self).__name__


class NodeReplacement(JavaObject, ABC):
    """A partial function of Scala's that replaces nodes of a plan."""

    def isDefinedAt(self, node: Any) -> bool:
        """Whether a node may be replaced."""
        return True

    def apply(self, node: Any) -> Any:
        """Return what stands in the place of a node."""
        return self.applyOrElse(node, None)

    def applyOrElse(self, node: Any, default: Any) -> Any:
        """Return what stands in the place of a node, which may be the node."""
        found = self._replacement(node)
        if found is not None:
            return found
        return node if default is None else default.apply(node)

    @abstractmethod
    def _replacement(self, node: Any) -> Any:
        """What is to stand in the place of a node; None for the node."""

    class Java:
        """What the virtual machine takes it for."""

        implements: Final = ["scala.PartialFunction"]


def answers(*declared: str) -> Callable[[Call], Call]:
    """Let errors of a method that the virtual machine calls be raised there as Spark's own.

    Args:
        declared: the checked exceptions that it may raise there.
    """

    def decorate(method: Call) -> Call:
        @wraps(method)
        def call(self: Any, *args: Any) -> Any:
            try:
                with errors_unlogged():
                    return method(self, *args)
            except Exception as error:
                raise self.machine.py4j_error(error, declared) from error

        return call  # type: ignore[return-value]

    return decorate


def text_of_error(error: BaseException) -> str:
    """Return what a client reads of an error that is not Spark's."""
    condition = condition_of(error)
    if condition is not None:
        return f"[{condition}] {error}"
    if isinstance(error, PySparkException):
        return str(error)
    return f"{type(error).__name__}: {error}"
