"""The closed-class words of English and Chinese, and what is left of a question without them."""

import re

from libs.documents.language import HAN

_EN_FUNCTION_TEXT = """
    a about after all also am an and any are as at be been before being between but by can could
    did do does doing done down each explain find for from get give given had has have having he
    hello help her here hers him his how i if in into is it its just know let like list may me
    mean more most much many my need no not of off on one ones only or other our out over please
    same say says see she should show so some such tell than that the their them then there
    these they thing things this those through to too under up us very want was we were what
    when where which while who whom whose why will with would you your it's what's i'd like's ok
    okay
"""
_EN_FUNCTION = frozenset(_EN_FUNCTION_TEXT.split())
_ZH_FUNCTION_TEXT = """
    请问 请 麻烦 帮我 帮忙 告诉我 告诉 一下 我想知道 我想了解 我想 我们 我 你们 你 您 想知道
    想了解 了解 知道 能不能 能否 可不可以 可以 可否 是不是 是否 有没有 什么时候 什么 为什么 为何
    怎么样 怎么办 怎么走 怎么做 怎么弄 怎么 怎样 如何 何时 哪一个 哪个 哪些 哪里 哪儿 哪家 哪位
    哪年 哪 谁 多少 多大 多久 多长 几个 几 吗 呢 吧 啊 呀 的 了 是 在 有 和 与 或 及 以及 还有
    并且 另外 同时 关于 对于 根据 按照 按 就 都 也 还 那么 那些 那个 那 这些 这个 这 它们 它
    他们 他 她们 她 其 该 上述 刚才 需要 要 会 应该 吧 呗 嘛 啥 咋 一 个 些 说 讲 给 把 被 去 走
    做
"""
_ZH_FUNCTION = sorted(set(_ZH_FUNCTION_TEXT.split()), key=lambda word: (-len(word), word))
_ZH_FUNCTION_RUN = re.compile("|".join(_ZH_FUNCTION))
_LATIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.&'’%/-]*")
_HAN_RUN = re.compile(f"[{HAN}]+")
_EDGES = ".'’-/&_"

# Words that ask for something of something: alone they do not say of what.
_GENERIC_TEXT = """
    amount configuration configure cost costs date deadline detail details duration fee fees
    install limit limits number price prices procedure process reason result results rule rules
    set setup setting settings size status step steps time total value version 配置 价格 费用
    状态 时间 日期 流程 规则 金额 限额 上限 下限 期限 进度 情况 原因 结果 步骤 版本 大小 数量
    总额 设置 安装 要求 标准 内容 问题
"""
GENERIC = frozenset(_GENERIC_TEXT.split())


def words(text: str) -> list[str]:
    """Content words, lower case: Latin words and numbers, Chinese runs without function words."""
    found: list[tuple[int, str]] = []
    for match in _LATIN.finditer(text):
        word = match.group().lower().strip(_EDGES).removesuffix("'s").removesuffix("’s")
        if word and word not in _EN_FUNCTION:
            found.append((match.start(), word))
    for match in _HAN_RUN.finditer(text):
        bare = _ZH_FUNCTION_RUN.sub(" ", match.group())
        found += [(match.start() + i, run) for i, run in enumerate(bare.split())]
    return [word for _, word in sorted(found, key=lambda pair: pair[0])]


def specific_words(text: str) -> list[str]:
    """Content words that name something; `GENERIC` ones and single Chinese characters do not."""
    return [w for w in words(text) if w not in GENERIC and not (len(w) == 1 and _HAN_RUN.match(w))]


def numbers(text: str) -> set[str]:
    """Every number of a text, thousands separators off."""
    return {n.replace(",", "") for n in re.findall(r"\d+(?:[.,]\d+)*", text)}
