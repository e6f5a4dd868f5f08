"""Contract tests of a vendor's failures."""

# ruff: noqa: SIM300 - a test's name is the fact; what is expected stands first

import asyncio

import pytest

from cueline.errors import ProviderRefusedError, ProviderUnavailableError
from cueline.events.codes import BY_STATUS, TRANSIENT
from cueline.testing.model_example import HELLO, KEY, TEXT, Asker, ModelCases, case, text_of
from cueline.testing.model_server import ModelServer, Recorded, RecordedServer, StreamFault
from cueline.testing.wait import await_until


class FaultContract(ModelCases):
    """Each failure has a code, which decides whether it is retried."""

    @case("HTTP errors")
    @pytest.mark.parametrize(("status", "kind"), BY_STATUS.items())
    async def test_a_status_has_a_kind(
        self, server: ModelServer, ask: Asker, status: int, kind: str
    ) -> None:
        server.fail(status)

        expected = ProviderUnavailableError if kind in TRANSIENT else ProviderRefusedError
        with pytest.raises(expected, match=f"^{kind}: "):
            await ask(HELLO)

    @case("Retry-After")
    async def test_a_vendor_says_when_to_come_again(self, server: ModelServer, ask: Asker) -> None:
        server.fail(429, retry_after=1.5)

        with pytest.raises(ProviderUnavailableError) as caught:
            await ask(HELLO)

        assert ("rate_limited", 1.5) == (caught.value.kind, caught.value.retry_after)

    @case("No retries of its own")
    async def test_one_call_is_one_request(self, server: ModelServer, ask: Asker) -> None:
        server.fail(529)

        with pytest.raises(ProviderUnavailableError, match="overloaded"):
            await ask(HELLO)

        assert 1 == len(server.requests)

    @case("Cut streams")
    @pytest.mark.parametrize(
        ("fault", "kind"),
        [("cut", "malformed_reply"), ("disconnect", "network"), ("garble", "malformed_reply")],
    )
    async def test_half_a_reply_is_none(
        self, server: ModelServer, ask: Asker, fault: StreamFault, kind: str
    ) -> None:
        server.break_stream(fault)

        with pytest.raises(ProviderUnavailableError) as caught:
            await ask(HELLO)

        assert kind == caught.value.kind

    @case("Timeouts")
    @pytest.mark.parametrize("limit", ["chunk_timeout_seconds", "timeout_seconds"])
    async def test_a_silent_stream_is_given_up(
        self, server: ModelServer, ask: Asker, limit: str
    ) -> None:
        server.say(TEXT)
        await ask(HELLO)  # so that a connection is there: to make one takes time, too
        server.break_stream("stall")

        with pytest.raises(ProviderUnavailableError, match="timeout"):
            await ask(HELLO, parameters={**self.parameters, limit: 0.2})

    @case("No server")
    async def test_an_address_where_nobody_listens_is_asked_again_later(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        await recorder.stop_listening()

        with pytest.raises(ProviderUnavailableError, match="network") as caught:
            await ask_recorder(HELLO)

        assert {} == caught.value.used, "it is known to have cost nothing"

    @case("Context too long", recorded="too long")
    async def test_a_prompt_that_is_too_long_is_told_from_a_wrong_request(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        assert "context_too_long" == await self.refusal(recorder, ask_recorder, "too long")

    @case("Refusal", recorded="refusal")
    async def test_a_model_that_declines_has_refused(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        assert "refused" == await self.refusal(recorder, ask_recorder, "refusal")

    @case("Content filter", recorded="filtered")
    async def test_a_filter_is_told_from_a_refusal(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        assert "content_filtered" == await self.refusal(recorder, ask_recorder, "filtered")

    @case("Errors in a stream", recorded="error in stream")
    async def test_an_error_in_the_middle_of_a_stream_is_known_by_its_type(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(self.recorded["error in stream"])

        with pytest.raises(ProviderUnavailableError) as caught:
            await ask_recorder(HELLO)

        assert caught.value.kind in {"overloaded", "unavailable", "rate_limited"}

    @case("Malformed replies")
    @pytest.mark.parametrize(
        "body",
        [
            b"",
            b"<html>Sign in to the hotel's network</html>",
            b"data: 5\n\n",
            b"data: {}\n\n",
            b"data: \xff\xfe\n\n",
            b"data: [DONE]\n\n",
            b"{}\n",
            b'{"error": "oops"}\n',
        ],
    )
    async def test_what_is_no_reply_is_a_failed_attempt(
        self, recorder: RecordedServer, ask_recorder: Asker, body: bytes
    ) -> None:
        recorder.answers.append(Recorded(body))

        with pytest.raises(ProviderUnavailableError) as caught:
            await ask_recorder(HELLO)

        assert caught.value.kind in {"malformed_reply", "unavailable"}

    @case("Secret key")
    @pytest.mark.parametrize("told", [KEY, KEY[:11], f"…{KEY[-8:]}"])
    async def test_a_key_that_is_repeated_to_us_is_not_passed_on(
        self, recorder: RecordedServer, ask_recorder: Asker, told: str
    ) -> None:
        answer = f'{{"error": {{"message": "{told} is bad", "code": 401}}}}'
        recorder.answers.append(Recorded(answer.encode(), 401, "application/json"))

        with pytest.raises(ProviderRefusedError, match=r"auth: .*\[redacted\]") as caught:
            await ask_recorder(HELLO)

        assert caught.value.__cause__ is None

    @case("Secret key")
    async def test_nothing_follows_a_redirect(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.append(Recorded(b"", 307, "text/plain"))

        with pytest.raises(ProviderRefusedError, match="HTTP 307"):
            await ask_recorder(HELLO)

        assert 1 == len(recorder.requests)

    @case("Cancel in mid-stream", recorded="text")
    async def test_a_call_that_is_cancelled_lets_its_connection_go(
        self, recorder: RecordedServer, ask_recorder: Asker
    ) -> None:
        recorder.answers.extend([self.recorded["text"]] * 2)
        recorder.may_end.clear()

        async with self.asking(ask_recorder, HELLO) as asking:
            await await_until(lambda: ask_recorder.deltas)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
        await asyncio.wait_for(recorder.was_left.wait(), 5)

        recorder.may_end.set()
        assert TEXT == text_of(await ask_recorder(HELLO))
