"""The text of a CALL: what it says, and what is refused with the signature."""

from datetime import UTC, datetime

import pytest

from frazil.errors import NoSuchTableError, ProcedureError
from frazil.spark.procedures.call import PROCEDURES
from frazil.spark.procedures.parameters import ArgumentKind, Parameter, Signature, arguments_of
from frazil.spark.procedures.statement import parse_call

SIGNATURE = Signature(
    "all_kinds",
    (
        Parameter("table", ArgumentKind.TEXT, is_required=True),
        Parameter("small", ArgumentKind.INT),
        Parameter("large", ArgumentKind.LONG),
        Parameter("flag", ArgumentKind.BOOLEAN),
        Parameter("at", ArgumentKind.TIMESTAMP),
        Parameter("names", ArgumentKind.TEXTS),
        Parameter("ids", ArgumentKind.LONGS),
        Parameter("options", ArgumentKind.TEXT_MAP),
    ),
)


def given(arguments):
    """What a call says, without what it does not say."""

    def refuse(expression):
        raise AssertionError(expression)

    statement = parse_call(f"CALL system.all_kinds({arguments})")
    values = arguments_of(SIGNATURE, statement, refuse)
    assert list(values) == [parameter.name for parameter in SIGNATURE.parameters]
    return {name: value for name, value in values.items() if value is not None}


READ = {
    "'db.t'": {"table": "db.t"},
    "'db.t', 3, -4": {"table": "db.t", "small": 3, "large": -4},
    "'db.t', flag => TRUE": {"table": "db.t", "flag": True},
    "table => 'a', LARGE => 9223372036854775807": {"table": "a", "large": 2**63 - 1},
    "Table => 'a', large => 5L, small => '7'": {"table": "a", "large": 5, "small": 7},
    "`table` => 'it''s', names => array('x', \"y\")": {"table": "it's", "names": ["x", "y"]},
    "'t', ids => array(1, 2L)": {"table": "t", "ids": [1, 2]},
    "'t', ids => array(), options => map()": {"table": "t", "ids": [], "options": {}},
    "'t', options => map('rewrite-all', 'true', 'n', 5, 'b', false)": {
        "table": "t",
        "options": {"rewrite-all": "true", "n": "5", "b": "false"},
    },
    "'t', at => TIMESTAMP '2024-01-31 12:00:00'": {"table": "t", "at": "2024-01-31 12:00:00"},
    "'t', at => '2024-01-31'": {"table": "t", "at": "2024-01-31"},
    "'t', at => TIMESTAMP '2024-01-31 12:00:00Z'": {
        "table": "t",
        "at": datetime(2024, 1, 31, 12, tzinfo=UTC),
    },
    "'t', /* a note */ small => NULL -- and another": {"table": "t"},
    "'a;b => c'": {"table": "a;b => c"},
}


@pytest.mark.parametrize("text", READ)
def test_arguments_are_read(text):
    arguments = f"{text}\n" if "--" in text else text
    assert given(arguments) == READ[text]


WRONG = {
    "": "needs table",
    "null": "needs table",
    "'t', 1, 2, true, '2024-01-01', array(), array(), map(), 9": "9 arguments are too many",
    "'t', smal => 1": "no argument 'smal' (did you mean 'small'?)",
    "'t', table => 'u'": "given table twice",
    "small => 1, SMALL => 2, table => 't'": "given small twice",
    "table => 't', 5": "arguments without names come first",
    "5": "no string",
    "'t', small => 2147483648": "no int",
    "'t', small => true": "no int",
    "'t', small => 1.5": "no int",
    "'t', large => 'x'": "no bigint",
    "'t', large => 9223372036854775808": "no bigint",
    "'t', flag => 'yes'": "no boolean",
    "'t', at => 5": "no timestamp",
    "'t', at => TIME '12:00:00'": "no timestamp",
    "'t', at => DATE '2024-02-30'": "not a literal",
    "'t', names => 'x'": "no array<string>",
    "'t', names => array(1)": "no array<string>",
    "'t', ids => array('x')": "no array<bigint>",
    "'t', options => array('a')": "no map<string,string>",
    "'t', options => map('a', array())": "no map<string,string>",
    "'t', options => map('a', 'b', 'a', 'c')": "no map<string,string>",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_arguments_are_refused_with_the_signature(text):
    with pytest.raises(ProcedureError) as error:
        given(text)
    assert WRONG[text] in str(error.value)
    if "come first" not in WRONG[text] and "literal" not in WRONG[text]:
        assert "system.all_kinds(table => string, [small => int], [large => " in str(error.value)


UNREADABLE = [
    "",
    "select 1",
    "CALL",
    "CALL system.expire_snapshots",
    "CALL expire_snapshots('t')",
    "CALL other.maintenance.expire_snapshots('t')",
    "CALL a.b.system.expire_snapshots('t')",
    "CALL system.expire_snapshots('t'",
    "CALL system.expire_snapshots('t') + 1",
    "CALL system.expire_snapshots('t') x",
    "CALL system.expire_snapshots('t'); CALL system.expire_snapshots('u')",
    "CALL system.expire_snapshots(table => small => 1)",
    "CALL system.expire_snapshots('t",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_is_no_call_is_refused(text):
    with pytest.raises(ProcedureError):
        parse_call(text)


def test_names_are_read_in_any_case_and_in_backticks():
    statement = parse_call(" -- first\n call `my-lake`.SYSTEM.`Expire_Snapshots`('t') ; ")
    assert (statement.catalog, statement.procedure) == ("my-lake", "expire_snapshots")


def test_unknown_procedures_catalogs_and_tables_are_named(lake):
    with pytest.raises(ProcedureError, match=r"did you mean 'expire_snapshots'\?\); there are add"):
        lake.call("CALL system.expire_snapshot('db.t')")
    with pytest.raises(ProcedureError, match="'elsewhere', and this is 'default'"):
        lake.call("CALL elsewhere.system.expire_snapshots('db.t')")
    with pytest.raises(NoSuchTableError):
        lake.call("CALL system.expire_snapshots('db.t')")
    with pytest.raises(ProcedureError, match="not the text"):
        lake.call(None)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("(select 1)", "no constant"),
        ("id", "no constant"),
        ("no_such_function(1)", "cannot be evaluated"),
    ],
)
def test_arguments_are_constants(lake, trips, argument, said):
    with pytest.raises(ProcedureError, match=said):
        lake.call(f"CALL system.rollback_to_snapshot('db.trips', {argument})")


def test_every_procedure_takes_a_table():
    for name, procedure in PROCEDURES.items():
        names = [parameter.name for parameter in procedure.signature.parameters]
        assert "table" in names
        assert len(set(names)) == len(names)
        assert name == procedure.signature.name == name.lower()
