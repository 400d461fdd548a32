"""Greetings and thanks: answered at once, in the user's language, without searching anything."""

import re

from libs.documents.language import language_of

_GREETING = re.compile(
    r"(?:hello|hi|hey|good\s+(?:morning|afternoon|evening|day)|greetings)(?:\s+(?:there|all|sluice))?|"
    "你好啊?|您好|嗨|哈[喽啰]|早上好|上午好|中午好|下午好|晚上好|在吗|在不在|有人吗",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:many\s+)?thanks?(?:\s+(?:you|a\s+lot|so\s+much|very\s+much))*|thx|cheers|great|ok(?:ay)?|got\s+it|"
    r"good\s*bye|bye(?:\s*bye)?|see\s+you|"
    "多?谢谢?(?:你|您|啦|了)?|非常感谢|感谢|好的|好|明白了?|知道了|再见|拜拜",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"who\s+are\s+you|what\s+are\s+you|what\s+can\s+you\s+do(?:\s+for\s+me)?|help(?:\s+me)?|"
    "你是谁|您是谁|你是什么|你能做什么|你可以做什么|你会什么|帮助|帮帮我",
    re.IGNORECASE,
)
_EDGES = " \t\r\n,.!?~，。！？～、…"

_REPLIES = {
    ("greeting", "en"): "Hello! What would you like to know from your documents?",
    ("greeting", "zh"): "您好！请问您想从文档中了解什么？",
    ("thanks", "en"): "You are welcome. Is there anything else you would like to know?",
    ("thanks", "zh"): "不客气！还有什么想了解的吗？",
    ("who", "en"): (
        "I answer questions from your organisation's documents and show where each answer "
        "stands. What would you like to know?"
    ),
    ("who", "zh"): "我根据贵组织的文档回答问题，并标明每个答案的出处。请问您想了解什么？",
}


def small_talk_reply(text: str) -> str | None:
    """What to say to a message that is only a courtesy; None: it asks for something."""
    bare = text.strip(_EDGES)
    for kind, pattern in (("greeting", _GREETING), ("thanks", _THANKS), ("who", _WHO)):
        if pattern.fullmatch(bare):
            return _REPLIES[kind, language_of(text)]
    return None
