"""Bytes to text: BOM, strict UTF-8, wide encodings without a mark, Chinese, then a detector."""

import codecs
import re

import charset_normalizer

from libs.documents.normalise import REPLACEMENT, replacement_share
from libs.kernel import PermanentError

MAX_REPLACEMENT_SHARE = 0.01
MAX_CONTROL_SHARE = 0.01
_SAMPLE_BYTES = 200_000

_BOMS = (  # UTF-32 first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_EAST_ASIAN = ("gb18030", "big5", "cp932")
_OTHERS = ("euc_jp", "euc_kr", "cp1251", "cp866", "koi8_r", "cp1252")
_WIDE = ("utf-16", "utf-32")
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HAN = re.compile("[\u4e00-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff]")
_UNLIKELY = re.compile("[\u0080-\u009f\ue000-\uf8ff\ufffd]")
# Level 1 characters: the everyday ones, which both encodings keep in one range of lead bytes.
_LEVEL_1 = {"gb18030": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "cp932": (0x88, 0x98)}
_MIN_COMMON_SHARE = 0.6


def decode_text(data: bytes) -> str:
    """The text of a file that does not declare its encoding.

    Raises: PermanentError `undecodable-text` when no encoding fits without loss.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return _checked(data.decode(encoding, "replace"))
    found = _utf_without_mark(data) or _east_asian(data) or _detected(data)
    if found is None or (not found.startswith(_WIDE) and _is_binary(data)):
        raise _undecodable()
    return _checked(data.decode(found, "replace"))


def _utf_without_mark(data: bytes) -> str | None:
    if _fits(data, "utf-8") and b"\0" not in data[:_SAMPLE_BYTES]:
        return "utf-8"
    sample = data[:4096]
    zeros = [sample[i::4].count(0) for i in range(4)]
    quarter = max(len(sample) // 4, 1)
    if zeros[2] > 0.9 * quarter and zeros[3] > 0.9 * quarter:
        return "utf-32-le"
    if zeros[0] > 0.9 * quarter and zeros[1] > 0.9 * quarter:
        return "utf-32-be"
    if min(zeros[1], zeros[3]) > 0.3 * quarter and zeros[0] + zeros[2] < 0.1 * quarter:
        return "utf-16-le"
    if min(zeros[0], zeros[2]) > 0.3 * quarter and zeros[1] + zeros[3] < 0.1 * quarter:
        return "utf-16-be"
    return "utf-8" if _fits(data, "utf-8") else None


def _east_asian(data: bytes) -> str | None:
    """GB18030, Big5 or Shift-JIS when its characters are mostly everyday ones.

    Nearly any bytes are valid GB18030 (`fü` + `r` is one rare character), so validity alone says
    nothing; that text uses common characters does.
    """
    shares = {name: _common_share(data, name) for name in _EAST_ASIAN if _fits(data, name)}
    best = max(shares, key=lambda name: shares[name], default=None)
    return best if best is not None and shares[best] >= _MIN_COMMON_SHARE else None


def _common_share(data: bytes, encoding: str) -> float:
    """Share of everyday Han characters and kana among what is not ASCII, punctuation left out."""
    text = data[:_SAMPLE_BYTES].decode(encoding, "ignore")
    low, high = _LEVEL_1[encoding]
    seen = common = 0
    for char in text:
        if char < "\u0080" or "\u3000" <= char <= "\u303f" or "\uff00" <= char <= "\uffef":
            continue
        seen += 1
        everyday = bool(_HAN.match(char)) and low <= char.encode(encoding)[0] <= high
        common += everyday or (encoding == "cp932" and bool(_KANA.match(char)))
    return common / seen if seen else 0.0


def _detected(data: bytes) -> str | None:
    best = charset_normalizer.from_bytes(
        data[:_SAMPLE_BYTES], cp_isolation=[*_OTHERS, *_EAST_ASIAN, "iso8859_2", "iso8859_15"]
    ).best()
    if best is not None and _fits(data, best.encoding):
        return best.encoding
    return next((name for name in _OTHERS if _fits(data, name) and _plausible(data, name)), None)


def _plausible(data: bytes, encoding: str) -> bool:
    text = data[:_SAMPLE_BYTES].decode(encoding, "replace")
    return len(_UNLIKELY.findall(text)) <= 0.01 * len(text)


def _is_binary(data: bytes) -> bool:
    """Whether there are too many control characters for a text in any encoding of bytes."""
    sample = data[:_SAMPLE_BYTES]
    return len(_CONTROLS.findall(sample)) > MAX_CONTROL_SHARE * len(sample)


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _checked(text: str) -> str:
    if REPLACEMENT in text and replacement_share(text) > MAX_REPLACEMENT_SHARE:
        raise _undecodable()
    return text


def _undecodable() -> PermanentError:
    return PermanentError(
        "undecodable-text",
        "The text's encoding could not be recognised: save the file as UTF-8 and upload it again.",
    )
