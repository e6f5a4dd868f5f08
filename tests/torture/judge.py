"""What is asked of a log after everything that happened to it."""

from collections import Counter

from tests.torture.ground import TOOLS


def judge(ground, sessions, undisturbed):
    """Hold *sessions* against the *undisturbed* one of the same script, and the log to its word."""
    tally = ground.tally
    whole = ground.exported(undisturbed)
    for session in sessions:
        tally.sessions += 1
        document = ground.exported(session)
        where = f"{ground.log} {session}"
        if document["result"] != whole["result"]:
            tally.fault("lost", f"{where} ended with {document['result']!r}")
        judge_calls(ground, session, document, whole)
        judge_messages(ground, session, document)
        if not ground.agrees(session):
            tally.fault("disagreements", f"{where}: `replay --check`")
    after = ground.streams()
    for stream, hashes in ground.acknowledged.items():
        if hashes != [hash_ for _, hash_ in after[stream][: len(hashes)]]:
            tally.fault("lost", f"{ground.log} {stream}: events that were there before a kill")
    if not ground.verified():
        tally.fault("disagreements", f"{ground.log}: `audit verify`")


def judge_calls(ground, session, document, whole):
    """Hold what is recorded of each call against what the tools wrote down."""
    tally, where = ground.tally, f"{ground.log} {session}"
    lines = [line[:3] for line in ground.journal(session)]
    written = Counter((word, key) for word, key, _ in lines)
    if max(Counter(map(tuple, lines)).values(), default=0) > 1:
        tally.fault("repeated", f"{where}: an attempt began or ended twice")
    calls = {call["effect"]: call for call in document["tool_calls"]}
    outputs, expected = told(document), told(whole)
    for effect, call in calls.items():
        key = f"session-default/{session}/{effect}"
        if call["tool"] == "pay" and written["start", key] > 1:
            tally.fault("repeated", f"{where}: {effect} ran {written['start', key]} times")
        if call["tool"] == "pay" and call["status"] == "reconciled":
            tally.in_doubt += 1
        elif call.get("kind") == "killed":
            tally.cut_short += 1
        elif outputs.get(effect) != expected[effect] or (
            call["tool"] in TOOLS and not written["end", key]
        ):
            tally.fault("lost", f"{where}: {effect} gave {outputs.get(effect)!r}")
    if set(calls) != {call["effect"] for call in whole["tool_calls"]}:
        tally.fault("lost", f"{where}: it has the calls {sorted(calls)}")


def told(document):
    """Return what the model was told of each call, by effect."""
    names = {
        f"call_{call['effect'].replace('.', '_')}": call["effect"]
        for call in document["tool_calls"]
    }
    return {
        names[message["call"]]: without_marks(message["text"])
        for message in document["messages"]
        if message["role"] == "tool"
    }


def without_marks(text):
    """Return what a child said without the marks around it, which differ from call to call."""
    return "\n".join(line for line in text.splitlines() if "from-session-" not in line)


def judge_messages(ground, session, document):
    """I7: each that was acknowledged was read, and none was read twice."""
    tally, where = ground.tally, f"{ground.log} {session}"
    read = Counter(m["text"] for m in document["messages"] if m["role"] == "user")
    for text in ground.sent[session]:
        if not read[text]:
            tally.fault("lost", f"{where}: {text!r}, which `send` had taken")
    for text in [text for text in read if text.startswith("message ") and read[text] > 1]:
        tally.fault("repeated", f"{where}: {text!r} was read {read[text]} times")
