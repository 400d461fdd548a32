"""What the executor itself says, in the user's language."""

_PHRASES = {
    "declined": {
        "en": (
            "I found nothing about this in the documents, so I cannot answer. "
            "You can upload a document that covers it, or ask with other words."
        ),
        "zh": (
            "在现有文档中没有找到与此相关的内容，因此无法回答。您可以上传相关文档，或换一种问法。"
        ),
    },
    "extractive": {
        "en": "From the documents, quoted word for word:",
        "zh": "以下为文档原文摘录：",
    },
    "not_found_part": {
        "en": "Nothing about this was found in the documents.",
        "zh": "文档中没有找到与此相关的内容。",
    },
    "suggest_heading": {
        "en": "What does “{heading}” in {document} say?",
        "zh": "{document} 中“{heading}”一节讲了什么？",
    },
}


def phrase(name: str, language: str, **values: str) -> str:
    """Raises: KeyError for an unknown phrase."""
    return _PHRASES[name][language].format(**values)
