"""`cueline audit --csv` and `--json`: what other programs read."""

import csv
import io
import json

import pytest

ODD = """
SELECT '=cmd()' AS id, '+1' AS id, '-x' AS a, '@x' AS b, char(9) || 'x' AS c, -2 AS d, 1.5 AS e,
    NULL AS f, x'00ff' AS g, 'two' || char(10) || 'lines, "and" more' AS h, 'a=b' AS i
"""


@pytest.fixture
def asked(finished):
    def ask(*words):
        done = finished("audit", "--sql", ODD, *words)
        assert 0 == done.exit_code, done.output
        return done.stdout

    return ask


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("--actor", "ada"),
            "'ada' is no kind of actor: did you mean 'user:ada'?",
        ),
        (("--actor", "usr:ada"), "'usr' is no kind of actor: did you mean 'user'?"),
        (("--correlation", "two"), "two: there is no such session"),
    ],
)
def test_a_filter_that_fits_nothing_by_mistake_is_refused(finished, words, why):
    done = finished("audit", *words)

    assert 2 == done.exit_code
    assert why in done.stderr


def test_a_tree_is_named_by_the_beginning_of_its_id(finished):
    whole = finished("audit", "--correlation", "one", "--json").stdout

    assert whole == finished("audit", "--correlation", "on", "--json").stdout
    assert "SessionStarted" in whole


def test_no_cell_of_csv_is_a_formula(asked):
    head, row = csv.reader(io.StringIO(asked("--csv")))

    assert ["id", "id_2", *"abcdefghi"] == head
    assert ["'=cmd()", "'+1", "'-x", "'@x", "'\tx", "-2", "1.5", ""] == row[:8]
    assert ["AP8=", 'two\nlines, "and" more', "a=b"] == row[8:]


def test_json_has_each_value_as_it_is(asked):
    row = json.loads(asked("--json"))

    assert ["=cmd()", "+1", "-x", "@x", "\tx", -2, 1.5, None, "AP8="] == list(row.values())[:9]
    assert ["id", "id_2"] == list(row)[:2]
