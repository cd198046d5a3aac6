"""Plain Spark as the judge of random conditions: what they imply, what is exact, what matches."""

import random

import pytest
from condition_texts import SCHEMA, as_frame, condition, internal, rows
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from ci_share import examples, in_circles
from frazil.errors import PredicateError
from frazil.spark.conditions import condition_of
from scalar_predicates import keeps

ROWS = rows(60, seed=7)
INTERNAL = [internal(row) for row in ROWS]
# Loose casts fail under ANSI; zones with and without a change of clocks near the literals.
CASES = [("true", "America/New_York", False, 1), ("false", "UTC", True, 2)]
CONDITIONS = examples(50)


@pytest.mark.parametrize(("ansi", "zone", "loose", "seed"), in_circles(CASES, test=1))
def test_random_conditions_mean_what_plain_spark_makes_of_them(
    spark, session, ansi, zone, loose, seed
):
    session(spark__sql__ansi__enabled=ansi, spark__sql__session__timeZone=zone)
    frame = as_frame(spark, ROWS).cache()
    dice = random.Random(seed)
    texts = list(dict.fromkeys(condition(dice, loose=loose) for _ in range(CONDITIONS)))
    made = {}
    for text in texts:
        try:
            made[text] = condition_of(
                text, SCHEMA, spark=spark, case_sensitive=False, time_zone=zone
            )
        except PredicateError:
            with pytest.raises(AnalysisException):
                frame.where(text)
    assert len(made) > CONDITIONS // 2
    assert {each.is_exact for each in made.values()} == {True, False}
    judged = {text: [] for text in made}
    for chunk in range(0, len(made), 50):
        part = list(made)[chunk : chunk + 50]
        columns = [
            F.coalesce(F.expr(text), F.lit(False)).alias(f"w{k}") for k, text in enumerate(part)
        ]
        flags = [made[text].flag().alias(f"f{k}") for k, text in enumerate(part)]
        for row in frame.select("n", *columns, *flags).collect():
            for k, text in enumerate(part):
                assert row[f"w{k}"] == row[f"f{k}"], (text, ROWS[row.n])
                if row[f"w{k}"]:
                    judged[text].append(row.n)
    for text, one in made.items():
        implied = {n for n, values in enumerate(INTERNAL) if keeps(one.implied, values)}
        matching = set(judged[text])
        assert matching <= implied, (text, one.implied, [ROWS[n] for n in matching - implied])
        if one.is_exact:
            assert implied == matching, (text, one.implied, [ROWS[n] for n in implied - matching])
    for text in dice.sample(list(made), CONDITIONS // 10):
        matched = sorted(row.n for row in made[text].matching_rows(frame).select("n").collect())
        others = sorted(row.n for row in made[text].other_rows(frame).select("n").collect())
        assert matched == sorted(judged[text]), text
        assert sorted(matched + others) == list(range(len(ROWS))), text
