"""The tool by which an agent keeps its list."""

import pytest

from cueline.tools.todo import todo


async def test_the_list_comes_back_as_text(executor, order):
    items = [{"text": "look", "status": "done"}, {"text": "act\nnow"}]

    output = await executor.call(order(todo, items=items))

    assert "[x] look\n[ ] act now\n1 of 2 done" == output.content.decode()


@pytest.mark.parametrize("item", [{"text": "a", "status": "soon"}, {"text": ""}, {"txt": "a"}])
async def test_an_item_of_another_form_is_refused(item, executor, order, failure):
    failed = await failure(executor.call(order(todo, items=[item])))

    assert "invalid_arguments" == failed.kind
