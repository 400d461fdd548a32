"""How a document begins, to find its chunks by."""

from libs.documents.analysis import has_han

HAN_CHARS = 80
OTHER_CHARS = 160
_MARKUP = "#*|=_~`>-\ufeff"
_LOOKED_AT = 2_000  # where pages of markup or blanks come first, there is no lead


def lead_of(text: str) -> str:
    """The first 80 characters of a Chinese text, 160 of another, without markup and white space.

    Who or what a document is about often stands there alone: its title, the name of a company, a
    patient, a sender. A chunk from the middle is found by that only if it is indexed with it.
    """
    limit = HAN_CHARS if has_han(text[:HAN_CHARS]) else OTHER_CHARS
    lead = ""
    for word in text[:_LOOKED_AT].replace("|", " ").split():
        longer = f"{lead} {word.strip(_MARKUP)}".strip()
        if len(longer) > limit:
            # Chinese has no spaces to cut at, and any character is as good.
            return longer[:limit].rstrip() if has_han(word) or not lead else lead
        lead = longer
    return lead
