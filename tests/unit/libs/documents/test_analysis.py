"""Chinese, English, numbers and codes become the terms that questions about them use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.documents.analysis import (
    MAX_TERM_CHARS,
    PRIOR_ROWS,
    analyse,
    covered_share,
    inverse_document_frequency,
    term_weights,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("２０，０００", "20,000"),
        ("20,000元", "20000 元"),
        ("A-2031", "a2031"),
        ("GB/T 19001", "gb/t 19001"),
        ("ＡＰＩ", "api"),
        ("connections", "connected"),
        ("the company's", "companies"),
        ("C++", "c++"),
        ("3.5%", "3.5"),
        ("RTX-4090显卡", "rtx4090"),
        ("RTX-4090显卡", "RTX 4090"),
        ("ERR_0x80070005", "0x80070005"),
        ("第十二条", "第12条"),
        ("第一百零三条", "第103条"),
        ("第二十章 总则", "第20章"),
        ("José Müller", "jose"),
        ("José Müller", "Muller"),
        ("Sociedad Española-S.A.", "espanola"),
    ],
)
def test_spellings_of_one_thing_share_a_term(one: str, other: str) -> None:
    assert set(analyse(one)) & set(analyse(other))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("A-2031", {"a2031", "2031"}),
        ("GB/T19001", {"gbt19001", "gb", "19001"}),
        ("1,234,567.89", {"1234567.89"}),
        ("2021年12月29日", {"2021", "12", "29", "年", "月", "日"}),
        ("covid-19", {"covid19", "covid", "19"}),
        ("v1.2.3", {"v123", "1", "2", "3"}),
    ],
)
def test_codes_and_numbers(text: str, terms: set[str]) -> None:
    assert set(analyse(text)) == terms


def test_chinese_gives_words_and_bigrams_without_stop_words() -> None:
    terms = analyse("国际移民组织的前身是什么？")
    assert {"国际", "移民", "组织", "前身", "民组"} <= set(terms)
    assert not {"的", "是", "什么", "？"} & set(terms)


def test_a_name_no_dictionary_knows_is_found_by_its_pairs() -> None:
    assert set(analyse("龘靐齉公司的年报")) & set(analyse("龘靐齉")) >= {"龘靐", "靐齉"}


@pytest.mark.parametrize(
    ("text", "number"),
    [("第十条", "10"), ("第两百条", "200"), ("第二〇二四期", "2024"), ("第一千零一十五条", "1015")],
)
def test_numbered_articles_also_give_their_digits(text: str, number: str) -> None:
    assert number in analyse(text)


def test_a_third_party_is_no_number() -> None:
    assert not {"3", "1"} & set(analyse("第三方与第一次"))


def test_mixed_text_keeps_both_languages() -> None:
    assert {"kafka", "消息", "队列"} <= set(analyse("用Kafka做消息队列"))


@pytest.mark.parametrize("text", ["", " \n", "的 了 the of", "…！？", "\x00"])
def test_nothing_worth_finding_gives_no_terms(text: str) -> None:
    assert analyse(text) == []


@given(st.text(max_size=200))
def test_any_text_gives_clean_terms_and_always_the_same(text: str) -> None:
    terms = analyse(text)
    assert terms == analyse(text)
    for term in terms:
        assert 0 < len(term) <= MAX_TERM_CHARS
        assert not any(character.isspace() for character in term)


def test_rare_terms_weigh_more_and_unknown_ones_most() -> None:
    weights = term_weights(["everywhere", "rare", "nowhere"], 100, {"everywhere": 100, "rare": 1})
    assert 0 < weights["everywhere"] < weights["rare"] < weights["nowhere"]
    assert weights["nowhere"] == inverse_document_frequency(100 + PRIOR_ROWS, 1)


def test_covered_share_is_by_weight() -> None:
    assert covered_share({"a": 3.0, "b": 1.0}, {"a", "other"}) == 0.75
    assert covered_share({}, {"a"}) == 0.0


def test_a_handful_of_rows_makes_no_term_rare_and_thousands_do() -> None:
    small = term_weights(["hotel", "cost"], 1, {"hotel": 1})
    assert small["hotel"] > 0.8 * small["cost"]
    large = term_weights(["hotel", "cost"], 5_000, {"hotel": 2_000})
    assert large["hotel"] < 0.2 * large["cost"]
