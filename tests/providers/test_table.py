"""The page on providers says what holds."""

from tests.providers.table import PAGE, cases, contracts, result, updated


# 002-036: each adapter is held to one contract, and the page says how.
def test_the_tables_of_the_page_are_those_of_the_contract():
    page = PAGE.read_text()

    assert page == updated(page), "run: python -m tests.providers.table"


def test_every_case_holds_for_a_provider():
    held = contracts().values()

    for title, tests in cases().items():
        assert any(result(each, tests) for each in held), title
