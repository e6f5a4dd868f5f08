"""What each vendor documents to refuse, as a check of the JSON that it would get."""

import json
import re
from itertools import pairwise

LETTERS = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_anthropic(body):
    """platform.claude.com/docs/en/api/messages, and …/agents-and-tools/tool-use."""
    turns = body["messages"]
    assert "user" == turns[0]["role"]
    assert all(turn["content"] for turn in turns)
    open_calls, seen = [], set()
    for turn in turns:
        types = [block["type"] for block in turn["content"]]
        results = [b["tool_use_id"] for b in turn["content"] if b["type"] == "tool_result"]
        assert sorted(open_calls) == sorted(results), "each call has one result, in the next turn"
        assert ["tool_result"] * len(results) == types[: len(results)], "results come first"
        calls = [block for block in turn["content"] if block["type"] == "tool_use"]
        assert not seen & {call["id"] for call in calls}
        assert all(LETTERS.fullmatch(call["name"]) for call in calls)
        assert all(LETTERS.fullmatch(call["id"]) for call in calls)
        assert all(b["text"].strip() for b in turn["content"] if b["type"] == "text")
        assert turn["role"] == "user" or types[-1] not in {"thinking", "redacted_thinking"}
        open_calls = [call["id"] for call in calls]
        assert len(open_calls) == len(set(open_calls))
        seen |= set(open_calls)
    assert [] == open_calls


def check_chat(body):
    """platform.openai.com/docs/api-reference/chat."""
    waiting, seen = [], set()
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert message["content"]
            continue
        assert [] == waiting, "the results follow their calls"
        calls = message.get("tool_calls", [])
        waiting = [call["id"] for call in calls]
        assert not seen & set(waiting)
        assert len(waiting) == len(set(waiting))
        assert all(len(call_id) <= 40 for call_id in waiting)
        assert all(LETTERS.fullmatch(call["function"]["name"]) for call in calls)
        assert message["content"] or calls
        seen |= set(waiting)
    assert [] == waiting


def check_parsed_chat(body):
    """What vLLM and llama.cpp check: they parse the arguments of the calls, too."""
    check_chat(body)
    calls = [call for message in body["messages"] for call in message.get("tool_calls", [])]
    assert all(isinstance(json.loads(c["function"]["arguments"]), dict) for c in calls)


def check_mistral(body):
    """Mistral's mistral-common/src/mistral_common/protocol/instruct/validator.py."""
    check_parsed_chat(body)
    roles = [message["role"] for message in body["messages"]]
    assert ("tool", "user") not in pairwise(roles)
    ids = [call["id"] for m in body["messages"] for call in m.get("tool_calls", [])]
    ids += [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", each) for each in ids)


def check_responses(body):
    """platform.openai.com/docs/api-reference/responses."""
    items = body["input"]
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    assert sorted(calls) == sorted(results)
    assert len(calls) == len(set(calls))
    for place, item in enumerate(items):
        following = items[place + 1] if place + 1 < len(items) else {"role": "user"}
        match item:
            case {"type": "reasoning"}:
                assert following.get("type") in {"reasoning", "message", "function_call"}
            case {"type": "function_call", "name": name, "call_id": call_id}:
                assert LETTERS.fullmatch(name)
                assert LETTERS.fullmatch(call_id)
            case {"type": "function_call_output", "call_id": call_id}:
                assert call_id in [each.get("call_id") for each in items[:place]]
            case {"content": content}:
                assert content
                assert all(part.get("text", "x").strip() for part in content)


def check_gemini(body):
    """ai.google.dev/gemini-api/docs/function-calling."""
    contents = body["contents"]
    assert "user" == contents[0]["role"]
    waiting = []
    for before, content in zip([None, *contents], contents, strict=False):
        assert content["parts"]
        assert before is None or before["role"] != content["role"]
        results = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        assert waiting == [(each["id"], each["name"]) for each in results]
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        waiting = [(call["id"], call["name"]) for call in calls]
    assert [] == waiting


def check_ollama(body):
    """docs.ollama.com/api/chat: it refuses little, and models lose their way in the rest."""
    waiting = []
    for message in body["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert [] == waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
    assert [] == waiting
