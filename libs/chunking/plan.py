"""The chunk plan: which strategies cut a document, into which sizes, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

from libs.chunking.profile import DocumentType, Profile
from libs.kernel import PermanentError

STRATEGIES = ("structure", "recursive", "semantic", "llm")
DEFAULT_STRATEGIES = ("structure", "recursive")
MAX_PARENT_CHARS = 2200


class Reason(NamedTuple):
    """Why a plan is as it is, for people."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """Sizes in characters.

    Strategies, each on top of those before it: `structure` keeps to headings and block borders
    (without it the text is one run); `recursive` cuts what is too long, named or not, as nothing
    else could; `semantic` moves cuts of long prose to where the subject changes; `llm` asks a
    model for such places in noisy documents.

    Raises: ValueError for sizes or strategies that no chunker could follow.
    """

    strategies: tuple[str, ...] = DEFAULT_STRATEGIES
    parent_max_chars: int = MAX_PARENT_CHARS
    parent_min_chars: int = 500  # below this a section shares its parent with the next one
    child_max_chars: int = 420
    table_max_chars: int = 900  # tables and code up to this stay whole as one child
    reasons: tuple[str, ...] = ()
    reasons_zh: tuple[str, ...] = ()  # the same ones, in Chinese

    def __post_init__(self) -> None:
        if not self.strategies or not set(self.strategies) <= set(STRATEGIES):
            raise ValueError(f"strategies are a non-empty choice of {', '.join(STRATEGIES)}")
        sizes_fit = (
            50 <= self.child_max_chars <= self.table_max_chars <= self.parent_max_chars
            and 0 <= self.parent_min_chars <= self.parent_max_chars <= 20_000
        )
        if not sizes_fit:
            raise ValueError("50 <= child <= table <= parent <= 20000 characters does not hold")

    def because(self, reasons: Iterable[Reason]) -> Self:
        """The same plan with more reasons."""
        more = list(reasons)
        return replace(
            self,
            reasons=(*self.reasons, *(reason.en for reason in more)),
            reasons_zh=(*self.reasons_zh, *(reason.zh for reason in more)),
        )


_TYPES = {
    DocumentType.CONTRACT: Reason("a contract", "合同"),
    DocumentType.POLICY: Reason("a policy", "制度文件"),
    DocumentType.MANUAL: Reason("a manual", "手册"),
    DocumentType.PAPER: Reason("a paper", "论文"),
    DocumentType.TABLE: Reason("mostly tables", "以表格为主"),
    DocumentType.SLIDES: Reason("slides", "幻灯片"),
    DocumentType.MAIL: Reason("mail", "邮件"),
    DocumentType.PLAIN: Reason("plain text", "普通文本"),
}


def recommend_plan(profile: Profile) -> ChunkPlan:
    """The plan for a document's profile; its reasons say what decided it."""
    kind = _TYPES[profile.document_type]
    reasons = [Reason(f"looks like {kind.en}", f"看起来是{kind.zh}")]
    child_max_chars, table_max_chars = 420, 900
    if profile.latin_share > 0.5:
        child_max_chars, table_max_chars = 800, 1200
        reasons.append(
            Reason(
                "mostly Latin script: words are several characters long, larger children",
                "以拉丁字母为主：单词由多个字母组成，子块取较大的尺寸",
            )
        )
    reasons.append(_of_headings(profile))
    if profile.table_share > 0.3:
        reasons.append(
            Reason(
                "many tables: kept whole where they fit, else cut between rows",
                "表格较多：放得下的保持完整，否则在行间切分",
            )
        )
    if profile.longest_block_chars > MAX_PARENT_CHARS:
        reasons.append(
            Reason(
                "blocks longer than a parent: cut between sentences",
                "有段落比父块更长：在句子之间切分",
            )
        )
    if profile.noise.is_high:
        reasons.append(
            Reason(
                "noisy text: the strategy `llm` can find where subjects change, if a model is set",
                "文本噪声较多：若配置了模型，可用 llm 策略寻找主题转换处",
            )
        )
    sizes = ChunkPlan(child_max_chars=child_max_chars, table_max_chars=table_max_chars)
    return sizes.because(reasons)


def _of_headings(profile: Profile) -> Reason:
    if not profile.heading_count:
        return Reason("no headings: paragraphs bound the parents", "没有标题：以段落划分父块")
    return Reason(
        f"{profile.heading_count} headings on {profile.heading_depth} levels: "
        "sections bound the parents",
        f"有 {profile.heading_count} 个标题，共 {profile.heading_depth} 级：以章节划分父块",
    )


def override_plan(plan: ChunkPlan, wanted: Mapping[str, Any] | None) -> ChunkPlan:
    """The recommended plan with the fields a user asked for; the sizes he left open give way.

    Raises: PermanentError `bad-plan`.
    """
    if not wanted:
        return plan
    fields = {**asdict(plan), **wanted}
    names = ", ".join(sorted(wanted))
    try:
        _make_room(fields, wanted)
        fields["strategies"] = tuple(fields["strategies"])
        return ChunkPlan(**fields).because(
            [Reason(f"set by the user: {names}", f"由用户设定：{names}")]
        )
    except (TypeError, ValueError) as exc:
        raise PermanentError("bad-plan", f"The chunk plan cannot be followed: {exc}.") from exc


def _make_room(fields: dict[str, Any], wanted: Mapping[str, Any]) -> None:
    """Move the sizes that were not asked for, so that child <= table <= parent holds."""
    sizes = ("child_max_chars", "table_max_chars", "parent_max_chars")
    for at, size in enumerate(sizes):
        if size not in wanted:
            smaller = [wanted[name] for name in sizes[:at] if name in wanted]
            larger = [wanted[name] for name in sizes[at + 1 :] if name in wanted]
            fields[size] = min([max([fields[size], *smaller]), *larger])
    if "parent_min_chars" not in wanted:
        fields["parent_min_chars"] = min(fields["parent_min_chars"], fields["parent_max_chars"])


def requested_fields(stored: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the user asked for: a stored plan is either his wish or what `Cut.record` made."""
    if not stored:
        return {}
    return dict(stored.get("requested", stored))
