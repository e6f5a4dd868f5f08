"""What the vendor streams, event by event."""


def started(**usage):
    message = {"id": "m1", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "claude-opus-4-6-20260201", "stop_reason": None, "usage": usage}
    return {"type": "message_start", "message": message}


def block(index, start, *deltas):
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def ended(reason, **usage):
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}
