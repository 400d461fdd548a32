"""Words too common to find anything by; kept out of the index and of questions alike."""

from typing import Final

_ENGLISH: Final = """
a about above after again against all also am an and any are as at be because been before being
below between both but by can cannot could did do does doing done down during each either else
few for from further get give had has have having he her here hers him his how i if in into is
it its itself just me more most my no nor not of off on once only or other our ours out over own
please same shall she should so some such tell than that the their theirs them then there these
they this those through to too under until up upon us very was we were what when where which
while who whom whose why will with within without would you your yours
"""

_CHINESE: Final = """
的 了 和 是 在 有 与 及 或 而 被 把 对 为 以 于
之 其 中 也 就 都 并 等 从 到 由 向 让 给 将 该 此
这 那 这个 那个 这些 那些 哪 哪个 哪些 哪里 哪儿 什么 怎么 怎样 怎么样 如何 为什么 为何 谁 何 何时
几 多少 多 吗 呢 吧 啊 呀 嘛 么 我 你 您
他 她 它 我们 你们 他们 她们 它们 一个 一种 一些 可以 能
会 要 请 请问 请告诉 告诉 是否 有没有 有哪些 是什么 以及 或者 还是 但 但是 因为 所以 如果 则 上 下
里 着 过 地 得 所 个 不 没 没有 还 又 很 更 最 再 只 才 关于 根据 通过 进行
"""

ENGLISH: Final = frozenset(_ENGLISH.split())
CHINESE: Final = frozenset(_CHINESE.split())

# Particles and pronouns: a pair of characters with one of them is no name.
LINKING_CHARACTERS: Final = frozenset(
    "的了是在和与及或而被把对为以于之其也就都并等从由向让给将该此这那哪几吗呢吧啊呀么我你您他她它们有"
)
