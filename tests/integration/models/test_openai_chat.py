"""The model gateway against a real HTTP server that plays every kind of trouble."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import openai
import pytest

from libs.kernel import PermanentError
from libs.models.breaker import CircuitBreaker
from libs.models.openai_chat import CallPolicy, OpenAIChatModel
from libs.models.ports import ChatDelta, Message, ModelCall, ModelUnavailableError, Purpose
from tests.standins.llm import MODEL, LlmServer, Scene, plan, rate_limited

KEY = "sk-very-secret"
ASK = [Message("system", "rules"), Message("user", "What is the limit?")]
PURPOSE = Purpose("acme", "answer", "t1")
# Quick to try again, and patient: the server is a thread of this process, and what is asserted of
# the number of tries must not depend on when it has its turn.
QUICK = CallPolicy(
    base_delay_s=0.01,
    max_delay_s=0.6,
    first_token_timeout_s=5.0,
    idle_timeout_s=5.0,
    total_timeout_s=30.0,
)
HANG_S = 60.0  # far beyond all of these
ANSWER = Scene(["The limit ", "is 20,000 ", "yuan [1]."])


class Calls:
    """`CallLog` in a list."""

    def __init__(self) -> None:
        self.made: list[ModelCall] = []

    async def record(self, call: ModelCall) -> None:
        self.made.append(call)


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer([ANSWER]) as started:
        yield started


@pytest.fixture
def calls() -> Calls:
    return Calls()


@asynccontextmanager
async def model_of(
    server: LlmServer, calls: Calls, policy: CallPolicy
) -> AsyncIterator[OpenAIChatModel]:
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY, max_retries=0) as client:
        breaker = CircuitBreaker(max_failures=6)
        yield OpenAIChatModel(client, MODEL, calls, policy=policy, breaker=breaker)


@pytest.fixture
async def model(server: LlmServer, calls: Calls) -> AsyncIterator[OpenAIChatModel]:
    async with model_of(server, calls, QUICK) as model:
        yield model


async def read(model: OpenAIChatModel, into: list[ChatDelta] | None = None) -> list[ChatDelta]:
    """Everything a stream says; `into` keeps what came before an error."""
    said = [] if into is None else into
    async with aclosing(model.stream(ASK, purpose=PURPOSE, max_tokens=50)) as deltas:
        async for delta in deltas:
            said.append(delta)
    return said


def text_of(deltas: list[ChatDelta]) -> str:
    return "".join(delta.text for delta in deltas)


async def test_answer_streams_with_its_end_and_is_recorded(
    server: LlmServer, model: OpenAIChatModel, calls: Calls
) -> None:
    deltas = await read(model)
    assert [d.text for d in deltas] == ["The limit ", "is 20,000 ", "yuan [1].", ""]
    assert deltas[-1].finish_reason == "stop"
    [call] = calls.made
    assert (call.outcome, call.usage.prompt_tokens, call.usage.completion_tokens) == (
        "done",
        120,
        24,
    )
    assert call.purpose == PURPOSE
    assert server.requests[0]["messages"][1] == {"role": "user", "content": "What is the limit?"}


async def test_first_piece_is_passed_on_before_the_rest_is_there(
    server: LlmServer, model: OpenAIChatModel
) -> None:
    server.play(Scene(["now", "never"], hang_after=1))
    async with aclosing(model.stream(ASK, purpose=PURPOSE, max_tokens=50)) as deltas:
        assert (await anext(deltas)).text == "now"


@pytest.mark.parametrize(
    "trouble",
    [
        Scene(status=500),
        Scene(status=503, headers={"retry-after": "0.05"}),
        rate_limited(0.05),
        Scene(["x"], cut_after=0),
        Scene(["x"], malformed_after=0),
        Scene(raw=b"data: [DONE]\n\n"),
        Scene(raw=b""),
    ],
    ids=["500", "503", "429", "cut", "malformed", "empty", "nothing"],
)
async def test_trouble_before_the_first_piece_is_tried_again(
    server: LlmServer, model: OpenAIChatModel, calls: Calls, trouble: Scene
) -> None:
    server.play(trouble, ANSWER)
    assert text_of(await read(model)) == "The limit is 20,000 yuan [1]."
    assert len(server.requests) == 2
    assert [call.outcome for call in calls.made] == ["done"]


async def test_a_first_piece_that_does_not_come_in_time_is_tried_again(
    server: LlmServer, calls: Calls
) -> None:
    # As many tries as it takes: with so little time for each, the good answer may be late as well.
    impatient = replace(QUICK, max_attempts=50, max_delay_s=0.1, first_token_timeout_s=0.5)
    server.play(Scene(["late"], first_pause_s=HANG_S), ANSWER)
    async with model_of(server, calls, impatient) as model:
        assert text_of(await read(model)) == "The limit is 20,000 yuan [1]."
    assert len(server.requests) >= 2
    assert [call.outcome for call in calls.made] == ["done"]


@pytest.mark.parametrize(
    ("trouble", "outcome", "idle_timeout_s"),
    [
        (Scene(["half ", "x"], cut_after=1), "cut-off", QUICK.idle_timeout_s),
        (Scene(["half ", "x"], malformed_after=1), "malformed", QUICK.idle_timeout_s),
        (Scene(["half ", "x"], hang_after=1), "timeout", 0.5),
    ],
)
async def test_trouble_after_the_first_piece_ends_the_answer(
    server: LlmServer, calls: Calls, trouble: Scene, outcome: str, idle_timeout_s: float
) -> None:
    server.play(trouble, ANSWER)
    said: list[ChatDelta] = []
    async with model_of(server, calls, replace(QUICK, idle_timeout_s=idle_timeout_s)) as model:
        with pytest.raises(ModelUnavailableError) as caught:
            await read(model, said)
    assert text_of(said) == "half "
    assert caught.value.outcome == outcome
    assert len(server.requests) == 1
    assert [call.outcome for call in calls.made] == [outcome]


async def test_server_that_asks_for_a_long_pause_is_not_waited_for(
    server: LlmServer, model: OpenAIChatModel
) -> None:
    server.play(rate_limited(30), ANSWER)
    with pytest.raises(ModelUnavailableError) as caught:
        await read(model)
    assert caught.value.outcome == "rate-limited"
    assert len(server.requests) == 1


async def test_pause_that_is_asked_for_is_kept(server: LlmServer, model: OpenAIChatModel) -> None:
    server.play(rate_limited(0.4), ANSWER)
    started = time.monotonic()
    await read(model)
    assert time.monotonic() - started >= 0.4


async def test_refusal_is_final_and_never_quotes_the_key(
    server: LlmServer, model: OpenAIChatModel, caplog: pytest.LogCaptureFixture
) -> None:
    server.play(Scene(status=401), ANSWER)
    with pytest.raises(PermanentError) as caught:
        await read(model)
    assert caught.value.reason == "model-refused"
    assert server.authorizations == [f"Bearer {KEY}"]  # and the server quoted it back
    chain: BaseException | None = caught.value
    while chain is not None:
        assert KEY not in str(chain) or chain.__suppress_context__ is False
        chain = chain.__cause__
    assert KEY not in str(caught.value)
    assert KEY not in caplog.text


async def test_tries_are_bounded_and_a_failing_model_is_left_alone(
    server: LlmServer, model: OpenAIChatModel
) -> None:
    server.play(Scene(status=500))
    for _ in range(3):
        with pytest.raises(ModelUnavailableError):
            await read(model)
    assert len(server.requests) == 6  # three tries each, until the breaker opened


async def test_unreachable_server_is_unavailable(calls: Calls) -> None:
    async with openai.AsyncOpenAI(
        base_url="http://127.0.0.1:1/v1", api_key=KEY, max_retries=0
    ) as client:
        model = OpenAIChatModel(client, MODEL, calls, policy=QUICK)
        with pytest.raises(ModelUnavailableError) as caught:
            await read(model)
    assert caught.value.outcome == "unavailable"


async def test_stopping_in_the_middle_closes_the_stream_and_is_recorded(
    server: LlmServer, model: OpenAIChatModel, calls: Calls
) -> None:
    server.play(Scene(["one", "two"], hang_after=1))
    async with aclosing(model.stream(ASK, purpose=PURPOSE, max_tokens=50)) as deltas:
        await anext(deltas)
    assert [call.outcome for call in calls.made] == ["cancelled"]


async def json_answer(model: OpenAIChatModel) -> dict[str, object]:
    return await model.complete_json(ASK, schema={"type": "object"}, purpose=PURPOSE, max_tokens=50)


async def test_json_answer(server: LlmServer, model: OpenAIChatModel, calls: Calls) -> None:
    server.play(plan(execution_mode="RAG_CHAT"))
    assert await json_answer(model) == {"execution_mode": "RAG_CHAT"}
    assert server.requests[0]["response_format"]["type"] == "json_schema"
    assert calls.made[0].usage.prompt_tokens == 120


@pytest.mark.parametrize(
    "trouble",
    [
        Scene(["{cut"]),
        Scene(["[1, 2]"]),
        Scene(['{"a": 1}'], finish_reason="length"),
        Scene(raw=b"<html>proxy error</html>"),
        Scene(raw=b'{"choices": []}'),
        Scene(raw=b"{"),
    ],
)
async def test_malformed_json_is_tried_again_and_then_given_up(
    server: LlmServer, model: OpenAIChatModel, trouble: Scene
) -> None:
    server.play(trouble, plan(ok=True))
    assert await json_answer(model) == {"ok": True}
    server.play(trouble)
    with pytest.raises(ModelUnavailableError) as caught:
        await json_answer(model)
    assert caught.value.outcome == "malformed"


async def test_total_time_is_bounded(server: LlmServer, calls: Calls) -> None:
    server.play(Scene(["drip"] * 1_000, pause_s=0.05))
    policy = CallPolicy(total_timeout_s=0.5)
    async with openai.AsyncOpenAI(base_url=server.base_url, api_key=KEY, max_retries=0) as client:
        model = OpenAIChatModel(client, MODEL, calls, policy=policy)
        with pytest.raises(ModelUnavailableError):
            await read(model)  # unbounded, the scene goes on for 50 s and ends well


async def test_a_character_that_was_cut_in_two_comes_out_whole(
    server: LlmServer, model: OpenAIChatModel
) -> None:
    def piece(content: str) -> bytes:
        delta = {"choices": [{"index": 0, "delta": {"content": content}}]}
        return f"data: {json.dumps(delta)}\n\n".encode()

    end = b'data: {"choices": [{"index": 0, "delta": null, "finish_reason": "stop"}]}\n\n'
    odd = b'data: {"choices": null}\n\n'
    raw = piece("a\ud83c") + odd + piece("\udf5c") + end + b"data: [DONE]\n\n"
    server.play(Scene(raw=raw))
    assert "".join(delta.text for delta in await read(model)) == "a🍜"
