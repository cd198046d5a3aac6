"""Who a server answers: other machines only where they have to say who they are."""

from __future__ import annotations

import pytest

from frazil.errors import ConfigurationError
from frazil.spark.catalog.server import SparkListening

LOGIN = "spark.hive.server2.authentication"
REFUSED = [
    ({}, "nothing is served"),
    ({"connect": 1, "health": 1}, "not each of one server"),
    ({"host": "0.0.0.0", "connect": 1}, "give Connect a token"),
    ({"host": "lake.example", "thrift": 1}, "LDAP or KERBEROS"),
    ({"host": "::", "thrift": 1, "settings": {LOGIN: "NOSASL"}}, "LDAP or KERBEROS"),
    ({"host": "10.0.0.1", "connect": 1, "thrift": 2, "token": "t"}, "LDAP or KERBEROS"),
]
ANSWERED = [
    {"connect": 1, "thrift": 2, "health": 3},
    {"host": "localhost", "connect": 1},
    {"host": "::1", "thrift": 1},
    {"host": "0.0.0.0", "connect": 1, "token": "t"},
    {"host": "0.0.0.0", "thrift": 1, "settings": {LOGIN: "ldap"}},
]


def listening(given):
    """Where a server listens."""
    return SparkListening(**{"settings": {}, **given})


@pytest.mark.parametrize(("given", "words"), REFUSED)
def test_whoever_could_run_code_unasked_is_refused(given, words):
    """The error says what is missing."""
    with pytest.raises(ConfigurationError, match=words):
        listening(given).check()


@pytest.mark.parametrize("given", ANSWERED)
def test_programs_of_this_machine_and_who_has_a_login_are_answered(given):
    """Nothing is raised."""
    listening(given).check()


def test_a_token_is_not_in_what_a_machine_is_started_with():
    """Everybody sees its command line; it listens where the server says."""
    found = listening({"host": "0.0.0.0", "connect": 15002, "token": "secret"}).spark_settings
    assert "secret" not in found.values()
    assert found["spark.connect.grpc.binding.address"] == "0.0.0.0"
