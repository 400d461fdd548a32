from libs.models.budget import clip, estimate_tokens


def test_chinese_weighs_a_token_a_character_and_english_a_quarter() -> None:
    assert estimate_tokens("退款规则") == 4
    assert estimate_tokens("refund rules") == 3
    assert estimate_tokens("") == 0


def test_clip_keeps_short_texts_and_marks_cuts() -> None:
    assert clip("short", 10) == "short"
    assert clip("a" * 20, 10) == "a" * 9 + "…"
    assert len(clip("word " * 100, 33)) <= 33
