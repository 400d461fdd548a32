"""Uploads files and follows each document to its end."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from services.cli.client import Client, Json
from services.cli.errors import CliError, ExitCode
from services.cli.patience import Patience

FINAL_STATES = frozenset({"indexed", "failed", "cancelled", "deleted"})
ENDED = FINAL_STATES | {"refused"}
PARALLEL_UPLOADS = 4
POLL_S = 1.0
WAITED_FOR = 4  # unfinished documents asked about in one round


@dataclass(slots=True)
class Upload:
    """One file on its way: accepted, then followed."""

    file: Path
    document: Json = field(default_factory=dict)
    error: str = ""

    @property
    def state(self) -> str:
        return "refused" if self.error else str(self.document.get("state", "waiting"))

    @property
    def reason(self) -> str:
        return self.error or str(self.document.get("reason") or "")

    def report(self) -> Json:
        return {
            "file": str(self.file),
            "id": self.document.get("id"),
            "state": self.state,
            "reason": self.reason or None,
            "counts": self.document.get("counts"),
        }


def collect(paths: Iterable[Path]) -> list[Path]:
    """The files under the paths, folders walked in order, hidden ones left out.

    Raises: CliError for a path that does not exist.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise CliError(f"{path}: no such file or folder", ExitCode.USAGE)
        found = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in found:
            if file == path or not _hidden(file.relative_to(path)):
                files[file] = None
    return list(files)


def _hidden(relative: Path) -> bool:
    return any(part.startswith(".") for part in relative.parts)


async def upload_all(
    client: Client,
    files: list[Path],
    fields: dict[str, str | list[str]],
    *,
    wait: bool,
    changed: Callable[[list[Upload]], None],
) -> list[Upload]:
    """Upload every file; with `wait`, return when every document reached its end.

    A file that is refused does not stop the others. `changed` gets all uploads after each step.
    Raises: CliError when the platform stays away or the key is refused.
    """
    uploads = [Upload(file) for file in files]
    patience = Patience()
    gate = asyncio.Semaphore(PARALLEL_UPLOADS)
    sending_done = asyncio.Event()

    async def send(upload: Upload) -> None:
        async with gate:
            try:
                # The same content is the same document, so a repeat is harmless.
                upload.document = await patience.through(
                    partial(client.upload, upload.file, fields)
                )
                if wait and upload.state in ENDED:  # known already: a receipt says only that
                    path = f"/v1/documents/{upload.document['id']}"
                    upload.document = await patience.through(partial(client.get, path))
            except CliError as exc:
                if exc.code is not ExitCode.FAILED:
                    raise
                upload.error = str(exc)
            except OSError as exc:
                upload.error = f"cannot read the file: {exc.strerror}"
            changed(uploads)

    async def send_all() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for upload in uploads:
                    group.create_task(send(upload))
        finally:
            sending_done.set()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(send_all())
            if wait:
                group.create_task(_follow(client, uploads, sending_done, changed, patience))
    except* CliError as errors:
        raise _first(errors) from None
    return uploads


async def _follow(
    client: Client,
    uploads: list[Upload],
    sending_done: asyncio.Event,
    changed: Callable[[list[Upload]], None],
    patience: Patience,
) -> None:
    while True:
        last_round = sending_done.is_set()
        open_ = [u for u in uploads if u.document and u.state not in ENDED]
        if last_round and not open_:
            return
        unfinished = 0  # the oldest finish first, so a few that have not are enough to ask about
        for upload in open_:
            try:
                path = f"/v1/documents/{upload.document['id']}"
                upload.document = await patience.through(partial(client.get, path))
            except CliError as exc:
                if exc.code is not ExitCode.FAILED:
                    raise
                upload.error = str(exc)  # deleted meanwhile: the others are followed on
            unfinished += upload.state not in ENDED
            if unfinished == WAITED_FOR:
                break
        changed(uploads)
        await asyncio.sleep(POLL_S)


def _first(errors: BaseExceptionGroup[CliError]) -> CliError:
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        return error
    raise AssertionError("an exception group is never empty")
