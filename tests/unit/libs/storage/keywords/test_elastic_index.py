"""Terms as tokens of an analyser that parts at blanks."""

from hypothesis import given
from hypothesis import strategies as st

from libs.storage.keywords.elastic_index import row_id, to_token

TERMS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
# What Java's Character.isWhitespace, and so the server's tokenizer, parts at.
BLANKS = [*"\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \u2028\u2029\u3000", "\u1680", "\u2003", "\u205f"]


@given(TERMS)
def test_a_term_is_one_token_that_is_not_cut(term: str) -> None:
    token = to_token(term)
    assert 1 <= len(token) <= 255
    assert not any(blank in token for blank in BLANKS)


@given(TERMS, TERMS)
def test_two_terms_are_two_tokens(one: str, other: str) -> None:
    assert (to_token(one) == to_token(other)) == (one == other)


def test_what_looks_like_an_escape_is_another_term() -> None:
    looks = ["", "%", "%%", " ", "%20;", "%25;", "a b", "a%20;b", "x" * 300, "x" * 301]
    assert len({to_token(term) for term in looks}) == len(looks)


def test_usual_terms_are_kept_as_they_are() -> None:
    for term in ("差旅", "travel", "a2031", "c++", "192.168.10.7", "é"):
        assert to_token(term) == term


@given(TERMS, TERMS)
def test_rows_of_two_tenants_are_two_rows(tenant: str, chunk_id: str) -> None:
    assert row_id(tenant, chunk_id) != row_id(f"{tenant}x", chunk_id)
    assert len(row_id(tenant, chunk_id)) == 64
