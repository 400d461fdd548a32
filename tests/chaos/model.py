"""A model for chaos runs: reads its sources, and answers slowly with the sentence asked for."""

import re
from typing import Any

from tests.standins.llm import LlmServer, Scene

_SOURCE = re.compile(r'<source n="(\d+)" from=".*?">\n(.*?)\n</source>', re.DOTALL)
_DEPOT = re.compile(r"access code of depot ([\w-]+)")


def answering_model(*, pause_s: float = 0.15) -> LlmServer:
    """Streams a word at a time; plans are left to the rules."""

    def scene(body: dict[str, Any]) -> Scene:
        if "response_format" in body:
            return Scene(["{}"])
        return Scene(_answer(body["messages"][-1]["content"]), pause_s=pause_s)

    return LlmServer(scene)


def _answer(prompt: str) -> list[str]:
    depot = _DEPOT.findall(prompt)[-1]
    for number, text in _SOURCE.findall(prompt):
        told = re.search(rf"access code of depot {re.escape(depot)} is (\d+)", text)
        if told:
            words = f"The access code of depot {depot} is {told[1]} [{number}].".split(" ")
            return [words[0], *(f" {word}" for word in words[1:])]
    return ["NO_ANSWER"]
