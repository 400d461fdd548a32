"""The child process that reads hostile files: `python -m services.ingest.parser.worker`.

A line of JSON in (`source`, `name`, `media_type`, `max_chars`, `max_pictures`, `tika_url`,
`timeout_s`, `picture_s`, `out`), a line of JSON out: `{"parsed": {counts}}` with `document.json`
and `text.txt` in the folder `out`, or `{"refused": [reason, detail]}`, or `{"disk": [text, full]}`
where the folder cannot be written, or `{"away": [text, missing]}` while the Tika server at
`tika_url` is, or `{"bug": traceback}`. Ends when its input ends or its parent dies; the parent
watches its memory and its time, which `{"going_on": true}` lines extend.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from libs.kernel import DiskError, PermanentError, TransientError
from libs.storage.room import disk_error

if TYPE_CHECKING:
    from services.ingest.parser.adapters.extraction import Extractor
    from services.ingest.parser.adapters.ocr import Recogniser

DOCUMENT_FILE = "document.json"
TEXT_FILE = "text.txt"

_PR_SET_PDEATHSIG = 1


def main() -> None:
    answers = _private_stdout()
    _die_with_parent(int(sys.argv[1]))
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent decides when work stops
        signal.signal(number, signal.SIG_IGN)
    bound_resources(int(sys.argv[3]))
    os.nice(int(sys.argv[2]))
    from services.ingest.parser.adapters.ocr import Recogniser  # slow: after the guards

    patience = Patience()

    def going_on() -> None:
        _say(answers, {"going_on": True})
        patience.renew()

    recogniser = Recogniser(going_on=going_on)
    extractors = Extractors(patience)
    for line in sys.stdin.buffer:
        task = json.loads(line)
        patience.begin(task["timeout_s"], task["picture_s"])
        _say(answers, _answer(task, recogniser, extractors.of(task["tika_url"])))


class Patience:
    """How long the parent lets this process go on, as it reckons itself (`Child.ask`)."""

    def __init__(self) -> None:
        self._until = self._picture_s = 0.0

    def begin(self, timeout_s: float, picture_s: float) -> None:
        self._until, self._picture_s = time.monotonic() + timeout_s, picture_s

    def renew(self) -> None:
        self._until = max(self._until, time.monotonic() + self._picture_s)

    def left_s(self) -> float:
        return self._until - time.monotonic()


class Extractors:
    """Who reads for this process; made once, as a server's connections are kept."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._made: dict[str | None, Extractor] = {}

    def of(self, tika_url: str | None) -> "Extractor":
        """The Tika server at an address; None: Tika's native build."""
        if tika_url not in self._made:
            self._made[tika_url] = self._make(tika_url)
        return self._made[tika_url]

    def _make(self, tika_url: str | None) -> "Extractor":
        if tika_url is None:
            from services.ingest.parser.adapters.tika_native import NativeTika

            return NativeTika()
        from services.ingest.parser.adapters.tika_server import TikaServer

        return TikaServer(tika_url, self._patience.left_s)


def _say(answers: BinaryIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message).encode() + b"\n")
    answers.flush()


def bound_resources(max_rss_bytes: int) -> None:
    """What the kernel refuses: core files, and memory faster than the parent can look."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = 2 * max_rss_bytes  # of writable memory, used or not
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _answer(
    task: dict[str, Any], recogniser: "Recogniser", extractor: "Extractor"
) -> dict[str, Any]:
    from services.ingest.parser.adapters.ocr import read_picture
    from services.ingest.parser.adapters.tika import read_with_tika
    from services.ingest.parser.domain.packing import pack_document
    from services.ingest.parser.domain.reading import read_document

    recogniser.begin(task["max_pictures"])
    ocr = recogniser if task["max_pictures"] else None
    try:
        document = read_document(
            Path(task["source"]),
            task["name"],
            task["media_type"],
            max_chars=task["max_chars"],
            tika=partial(read_with_tika, recogniser=ocr, extractor=extractor),
            picture=partial(read_picture, recogniser=ocr) if ocr else None,
        )
        parsed = pack_document(document)
        out = Path(task["out"])
        (out / DOCUMENT_FILE).write_bytes(parsed.files.document)
        (out / TEXT_FILE).write_bytes(parsed.files.text)
    except PermanentError as exc:
        return {"refused": [exc.reason, exc.detail]}
    except MemoryError:
        return {"refused": ["out-of-memory", ""]}
    except DiskError as exc:
        return {"disk": [str(exc), exc.full]}
    except TransientError as exc:
        return {"away": [str(exc), exc.missing]}
    except Exception as exc:  # noqa: BLE001 - reported to the parent, which raises it there
        if error := disk_error(exc, task["out"]):
            return {"disk": [str(error), error.full]}
        return {"bug": traceback.format_exc()[-4000:]}
    return {
        "parsed": {
            "media_type": parsed.media_type,
            "char_count": parsed.char_count,
            "block_count": parsed.block_count,
            "table_count": parsed.table_count,
            "row_count": parsed.row_count,
            "page_count": parsed.page_count,
            "warning_count": parsed.warning_count,
        }
    }


def _private_stdout() -> BinaryIO:
    """A stream for answers alone: whatever native code prints goes nowhere."""
    answers = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    return answers


def _die_with_parent(parent_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it died before the line above
        os._exit(1)


if __name__ == "__main__":
    main()
