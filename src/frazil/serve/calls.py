"""A request as its handler sees it: names, query and body, with type checks."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote_to_bytes

from frazil.catalog.identifiers import Identifier, parse_identifier
from frazil.errors import InvalidFormatError, UnsupportedError, ValidationError
from frazil.format.json_fields import JsonObject, load_json
from frazil.serve.answers import HttpAnswer, HttpError, bad_request, ok
from frazil.serve.rights.access import Principal

T = TypeVar("T")

SEPARATOR: Final = "\x1f"
"""Between the levels of a namespace in a path or a query."""

_LONGEST_NAME: Final = 255
_LONGEST_NUMBER: Final = 9
_LARGEST_PAGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Call:
    """A request whose path, token and length are checked.

    Attributes:
        principal: who asks.
        namespace: of the path; empty where the path has none.
        name: the table's in the path.
        query: its parameters; of one that is given twice the last.
        headers: by names in lower case.
        content: the body.
    """

    principal: Principal
    namespace: Identifier = ()
    name: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""

    @property
    def table(self) -> Identifier:
        """The identifier of the path's table."""
        return (*self.namespace, self.name)

    def body(self) -> JsonObject:
        """Return the JSON object of the body.

        Raises:
            HttpError: it is none.
        """
        with reading_request():
            value = load_json(self.content, what="the body")
            _refuse_half_characters(value)
            return JsonObject(value)

    @contextmanager
    def reading_body(self) -> Iterator[JsonObject]:
        """Give the JSON object of the body, and read it: what is wrong is the client's error.

        Raises:
            HttpError: as of `body` and `reading_request`.
        """
        body = self.body()
        with reading_request():
            yield body

    def table_in_body(self) -> Identifier:
        """Return the identifier of what the body names, in the namespace of the path.

        Raises:
            HttpError: it names nothing, or a malformed name.
        """
        with self.reading_body() as body:
            return (*self.namespace, table_name_of(body.string("name")))

    def number(self, name: str) -> int | None:
        """Return a parameter of the query that is a number above 0, None unless given.

        Raises:
            HttpError: it is something else.
        """
        text = self.query.get(name)
        if text is None:
            return None
        if (
            not (text.isascii() and text.isdecimal())
            or len(text) > _LONGEST_NUMBER
            or int(text) < 1
        ):
            raise bad_request(f"{name} must be a number above 0")
        return int(text)

    def flag(self, name: str) -> bool:
        """Return a parameter of the query that is true or false, false unless given.

        Raises:
            HttpError: it is something else.
        """
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise bad_request(f"{name} must be true or false")
        return value == "true"


@contextmanager
def reading_request() -> Iterator[None]:
    """Read what a client sent: what is wrong with it is the client's error.

    Raises:
        HttpError: the block raised that something is malformed or unknown.
    """
    try:
        yield
    except (InvalidFormatError, ValidationError) as error:
        raise bad_request(str(error)) from error
    except UnsupportedError as error:
        raise HttpError(400, "UnsupportedOperationException", str(error)) from error
    except RecursionError as error:
        raise bad_request("the request is nested too deeply") from error


def fields_of(text: bytes, what: str = "the query") -> dict[str, str]:
    """Return the parameters of a query, or the fields of a form.

    Raises:
        HttpError: it is not percent-encoded UTF-8.
    """
    try:
        return dict(parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError:
        raise bad_request(f"{what} is not percent-encoded UTF-8") from None


def decode_part(part: str) -> str:
    """Return a part of a path without its percent-encoding.

    Raises:
        HttpError: it is not UTF-8.
    """
    try:
        return unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise bad_request("the path is not percent-encoded UTF-8") from None


def namespace_of(text: str) -> Identifier:
    """Return the levels of a namespace in a path or a query.

    Raises:
        HttpError: a level is empty, too long or has control characters.
    """
    return checked_namespace(tuple(text.split(SEPARATOR)))


def checked_namespace(levels: Identifier) -> Identifier:
    """Return the levels if they can be a namespace's.

    Raises:
        HttpError: as of `namespace_of`.
    """
    with reading_request():
        parse_identifier(levels)
    if not levels:
        raise bad_request("a namespace needs a name")
    _check_length(".".join(levels), "the namespace")
    return levels


def table_name_of(text: str) -> str:
    """Return the name of a table if it can be one.

    Raises:
        HttpError: it is empty, too long or has control characters.
    """
    with reading_request():
        parse_identifier((text,))
    _check_length(text, "the table's name")
    return text


def identifier_of(body: JsonObject, field: str) -> Identifier:
    """Return the identifier of a table or a view in a field of a body.

    Raises:
        HttpError: it is malformed.
    """
    with reading_request():
        fields = body.object(field)
        levels, name = fields.strings("namespace"), fields.string("name")
    return (*checked_namespace(levels), table_name_of(name))


def page_of(
    call: Call, items: Iterable[Identifier], shown: Callable[[Identifier], T]
) -> tuple[list[T], dict[str, Any]]:
    """Return the items that the request asks for, and what says where the next ones begin.

    A page begins after the last item of the one before, whatever was made or removed meanwhile.

    Args:
        call: with the page's size, and the token of the page before.
        items: sorted.
        shown: an item as the answer has it.

    Raises:
        HttpError: the size is no number above 0, or the token is none of this server's.
    """
    limit, token = call.number("pageSize"), call.query.get("pageToken")
    if token is None:
        return [shown(each) for each in items], {"next-page-token": None}
    after = _name_in(token)
    left = [each for each in items if after is None or each[-1] > after]
    page = left if limit is None else left[: min(limit, _LARGEST_PAGE)]
    following = None
    if len(page) < len(left):
        following = base64.urlsafe_b64encode(page[-1][-1].encode()).decode()
    return [shown(each) for each in page], {"next-page-token": following}


def names_answer(call: Call, found: Iterable[Identifier]) -> HttpAnswer:
    """Return the answer that sends the page of tables or views that the request asks for.

    Raises:
        HttpError: as of `page_of`.
    """
    page, more = page_of(call, found, lambda each: {"namespace": list(each[:-1]), "name": each[-1]})
    return ok({"identifiers": page, **more})


def flag_in(body: JsonObject, name: str, *, default: bool = False) -> bool:
    """Return a field of a body that is true or false.

    Raises:
        HttpError: it is something else.
    """
    value = body.fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise bad_request(f"{name} must be true or false")
    return default if value is None else value


def _name_in(token: str) -> str | None:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode() or None
    except (binascii.Error, ValueError):
        raise bad_request("pageToken is none that this server gave out") from None


def _check_length(text: str, what: str) -> None:
    if len(text.encode()) > _LONGEST_NAME:
        raise bad_request(f"{what} has more than {_LONGEST_NAME} bytes")


def _refuse_half_characters(value: Any) -> None:
    """Refuse NUL and halves of surrogate pairs, which databases cannot keep."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, str):
            _check_text(each)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_request("the body holds half of a surrogate pair") from None
    if "\x00" in text:
        raise bad_request("the body holds a NUL character")
