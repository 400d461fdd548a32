"""What the supervisor tells a person: one line an event, the log's end where something failed."""

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import Console


class StackConsole:
    """Prints progress with the seconds since the start."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._started_at = time.monotonic()
        self._waiting_for = ""

    def note(self, text: str) -> None:
        self._line("·", text)

    def done(self, text: str) -> None:
        self._line("[green]✓[/green]", text)

    def waiting(self, missing: Sequence[str]) -> None:
        """Say what is still missing, once per change."""
        text = ", ".join(missing)
        if text and text != self._waiting_for:
            hint = " (free some space on the disk, or make it writable)" if "disk" in text else ""
            self._line("…", f"waiting for {text}{hint}")
        self._waiting_for = text

    def failed(self, text: str, log_file: Path, lines: Sequence[str]) -> None:
        self._line("[red]✗[/red]", text)
        for line in lines:
            self._print(f"        {line}", markup=False, style="dim", soft_wrap=True)
        self._print(f"        (whole log: {log_file})", markup=False, style="dim")

    def error(self, text: str) -> None:
        self._print(f"sluice: {text}", markup=False, style="red", soft_wrap=True)

    def banner(self, url: str, home: Path) -> None:
        self.done("ready")
        self._print(
            f"\n  Open {url} in a browser, or in another terminal:\n\n"
            f"    sluice upload FILE-OR-FOLDER …\n"
            f'    sluice ask "your question"\n\n'
            f"  Data and logs are in {home}. Ctrl-C stops everything.\n",
            markup=False,
            soft_wrap=True,
        )

    def _print(self, text: str, **how: Any) -> None:
        with suppress(OSError):  # nobody can read it: that must not end the stack
            self._console.print(text, **how)

    def _line(self, mark: str, text: str) -> None:
        elapsed_s = time.monotonic() - self._started_at
        self._print(f"{elapsed_s:6.1f}s {mark} ", end="")
        self._print(text, markup=False, soft_wrap=True)
