"""Every reason to refuse a file, each with a sentence that says what to do about it."""

from libs.kernel import PermanentError

_DETAILS = {
    "empty": "The file has no text. Check that the right file was uploaded.",
    "encrypted": "The file is protected by a password or rights management: "
    "remove the protection and upload it again.",
    "corrupt": "The file is damaged or cut off: open it in its own program, save it again "
    "and upload that.",
    "no-text-layer": "The file holds only pictures or blank pages, and no text was recognised "
    "on them: scan it anew with more contrast, or upload a version with text. The operator can "
    "switch text recognition on and off (SLUICE_OCR).",
    "unsupported": "This kind of file holds no text that can be read: "
    "convert it to PDF, DOCX, HTML or plain text.",
    "unsupported-archive": "This kind of archive is not unpacked: pack the files as ZIP or TAR, "
    "or upload them one by one.",
    "unsafe-member": "Links, and names that lead out of the archive, are not followed: "
    "pack the files themselves.",
    "too-many-files": "The archive holds more files than are read: split it into parts.",
    "undecodable-text": "Too many characters cannot be read: save the file as UTF-8, or embed "
    "the fonts when exporting to PDF.",
    "decompression-bomb": "The file unpacks to far more than its size: "
    "export the document anew from its own program, or in another format.",
    "too-many-pages": "The file has more pages than are read: split it into parts.",
    "too-large": "The file holds more text than is allowed: split it into parts.",
    "too-deep": "Elements are nested too deeply: export the document in another format.",
    "out-of-memory": "Reading the file needs more memory than is allowed: "
    "split it, or leave out its large pictures.",
    "parse-timeout": "Reading the file took longer than is allowed: split it into parts.",
    "parser-crashed": "The file makes the reader crash: export the document in another format.",
}


def refusal(reason: str) -> PermanentError:
    """The error that ends a document for this reason. Raises: KeyError for unknown reasons."""
    return PermanentError(reason, _DETAILS[reason])
