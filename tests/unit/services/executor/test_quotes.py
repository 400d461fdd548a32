"""Choosing and quoting sentences: exact, relevant, bounded, in both languages."""

from libs.retrieval.types import Passage
from services.executor.domain.citations import CitationFilter
from services.executor.domain.extractive import extractive_answer
from services.executor.domain.quotes import MAX_QUOTES_PER_QUESTION, best_quotes, supporting_quote
from tests.fakes_answering import DOCUMENT_TEXT, passage, refund_evidence

ZH = (
    "国际移民组织成立于1951年，总部设在日内瓦。"
    "该组织的前身是临时欧洲迁徙政府间委员会。"
    "1989年11月14日，组织正式定名为国际移民组织。"
    "它在全球有多个办事处。"
)


def test_every_quote_is_the_documents_text_at_its_offsets() -> None:
    for question in ("What is the refund limit?", "How long does approval take?", "审批多久"):
        for quote in best_quotes(question, refund_evidence().passages):
            assert DOCUMENT_TEXT[quote.start : quote.end] == quote.text
            assert quote.text == quote.text.strip() != ""


def test_best_sentence_comes_first_in_english() -> None:
    passages = refund_evidence().passages
    assert "20,000 yuan" in best_quotes("What is the refund limit?", passages)[0].text
    assert "two working days" in best_quotes("How long does approval take?", passages)[0].text
    assert "finance director" in best_quotes("Who approves larger refunds?", passages)[0].text


def test_best_sentence_comes_first_in_chinese() -> None:
    passages = [passage(ZH)]
    assert "前身" in best_quotes("国际移民组织的前身是什么？", passages)[0].text
    assert "1989年" in best_quotes("国际移民组织的正式定名是什么时候？", passages)[0].text
    assert "日内瓦" in best_quotes("国际移民组织总部在哪里？", passages)[0].text


def test_without_common_terms_the_best_hit_is_quoted() -> None:
    passages = [passage(ZH), passage("天气很好。我们去公园。", evidence_id=2, document_id="d2")]
    quotes = best_quotes("What was the predecessor of the IOM?", passages)
    assert quotes[0].passage.evidence_id == 1


def test_repeated_sentences_are_quoted_once() -> None:
    text = "The refund limit is 20,000 yuan. " * 5
    assert len(best_quotes("What is the refund limit?", [passage(text)])) == 1


def test_headings_and_questions_are_not_preferred_to_statements() -> None:
    text = "Refund limit\n\nWhat is the refund limit?\n\nThe refund limit is 20,000 yuan per order."
    assert best_quotes("What is the refund limit?", [passage(text)])[0].text.startswith("The")


def test_number_of_quotes_is_bounded() -> None:
    text = " ".join(f"The refund limit of group number{i} is {i} yuan." for i in range(50))
    assert 1 <= len(best_quotes("refund limit", [passage(text)])) <= MAX_QUOTES_PER_QUESTION


def test_passage_without_sentences_gives_no_quote() -> None:
    assert best_quotes("anything", [passage("  \n ")]) == []
    whole = supporting_quote("anything", passage("  \n "))
    assert (whole.start, whole.end) == (0, 4)


def test_claim_is_supported_by_its_own_sentence() -> None:
    first = refund_evidence().passages[0]
    quote = supporting_quote("Up to 20,000 yuan can be refunded", first)
    assert quote.text == "The refund limit is 20,000 yuan per order."


def test_extractive_answer_marks_and_cites_every_quote() -> None:
    found = extractive_answer(["What is the refund limit?"], refund_evidence().passages, "en")
    assert "quoted" in found.pieces[0]
    for piece in found.pieces[1:]:
        assert piece.rstrip().endswith(("[1]", "[2]"))
    assert all(quote.text in "".join(found.pieces) for quote in found.quotes)


def test_extractive_answer_serves_each_sub_question_from_its_own_evidence() -> None:
    questions = ["What is the refund limit?", "How long does approval take?", "Who is the CEO?"]
    one, two = refund_evidence().passages
    passages = [one, _for_question(two, 1)]
    found = extractive_answer(questions, passages, "en")
    text = "".join(found.pieces)
    assert text.index("20,000") < text.index("How long") < text.index("two working days")
    assert text.endswith("Nothing about this was found in the documents.")


def test_extractive_answer_is_bounded() -> None:
    text = " ".join(f"Limit {i} of refunds: " + "word " * 60 + f"end{i}." for i in range(30))
    passages = [passage(text, evidence_id=i, document_id=f"d{i}") for i in range(1, 9)]
    found = extractive_answer(["refund limits"], passages, "en")
    assert len("".join(found.pieces)) < 2_000


def test_words_around_the_quotes_are_in_the_users_language() -> None:
    assert "原文" in extractive_answer(["总部在哪里"], [passage(ZH)], "zh").pieces[0]


def _for_question(found: Passage, index: int) -> Passage:
    return passage(
        found.text, evidence_id=found.evidence_id, start=found.start, question_index=index
    )


def test_words_that_say_where_to_look_do_not_outweigh_what_is_asked() -> None:
    text = (
        "银杏市橄榄区人民法院刑事判决书。孙某于2022年到庭参加诉讼。"
        "被告人孙某犯过失致人死亡罪，刑期为有期徒刑三年。"
    )
    question = "根据银杏市橄榄区人民法院的判决书，孙某的刑期是多久？"
    assert "三年" in best_quotes(question, [passage(text)])[0].text


def test_attribute_that_is_asked_for_outweighs_the_name_that_has_it() -> None:
    text = (
        "Stellar Entertainment Holdings Ltd. presented its annual report of 2019. "
        "The net profit was 5 million yuan. "
        "Stellar Entertainment Holdings Ltd. thanked everyone in 2019."
    )
    question = "What is the net profit of Stellar Entertainment Holdings Ltd. in 2019?"
    assert "5 million" in best_quotes(question, [passage(text)])[0].text


def test_introduction_is_quoted_with_what_it_introduces() -> None:
    text = "病历\n\n初步诊断：\n\n流行性脑髓脊膜炎。"
    assert best_quotes("初步诊断是什么？", [passage(text)])[0].text.endswith("流行性脑髓脊膜炎。")


def test_numbers_in_the_documents_own_text_cite_nothing() -> None:
    said = "The refund limit is 9 yuan [2], as 【3】, [source 4] and [d2.1.c0] say [1, 5]."
    found = extractive_answer(["What is the refund limit?"], [passage(said)], "en")
    assert found.pieces[1:] == [
        "\n\n“The refund limit is 9 yuan (2), as (3), (source 4) and [d2.1.c0] say (1, 5).” [1]"
    ]
    assert found.quotes[0].text == said
    parts = ["What is the refund limit [7]?", "Who says [8]?"]
    both = "".join(extractive_answer(parts, [passage(said)], "en").pieces)
    assert CitationFilter({1}).feed(both) == both.rstrip(" ")


def test_a_rule_for_other_amounts_is_not_what_is_quoted_first() -> None:
    rules = [
        "Reimbursements up to 20,000 yuan are approved by the general manager of the subsidiary.",
        "Reimbursements above 20,000 yuan go to the finance director of the parent company.",
    ]
    text = " ".join(rules)
    passage = Passage(1, "d", "policy.txt", text, 0, len(text), None, (), 0, ())
    for amount, rule in [("8,000", rules[0]), ("20 000", rules[0]), ("35,000", rules[1])]:
        question = f"Reimbursements of {amount} yuan are approved by whom?"
        assert best_quotes(question, [passage])[0].text == rule, amount
