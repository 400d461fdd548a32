"""MariaDB, as Debian packages it or as it is found on PATH."""

import getpass
import shutil
import socket
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from tests.servers.frame import Server, cached, download, program

INSTALL = "install mariadb-server-core and mariadb-client-core (Debian) or MariaDB"

_LOG = "--innodb-log-file-size=16M"


class MariaDb(Server):
    """Started within a second from a data folder that was initialised once.

    Commits reach the operating system at once and the disk later: they survive the process's death,
    which is all that tests do to it.
    """

    name = "MariaDB"

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder)
        self._options = options

    @cached_property
    def _program(self) -> str:
        return program("mariadbd", install=INSTALL)

    def provide(self) -> None:
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True)
        version = said.stdout.split("Ver ")[-1].split(" ")[0]
        shutil.copytree(cached(f"mariadb-{version}", _initialise), self._data)

    def command(self) -> Sequence[str | Path]:
        return [
            self._program,
            "--no-defaults",
            *(_as_me(), f"--datadir={self._data}", f"--socket={self._data / 'socket'}"),
            *("--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"),
            *("--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=2"),
            *("--innodb-flush-method=nosync", _LOG),
            *self._options,
        ]

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
            connection.settimeout(1.0)
            return b"MariaDB" in connection.recv(100)  # its greeting

    def url(self) -> str:
        """For SQLAlchemy, as the server's administrator."""
        return f"mysql+asyncmy://root@127.0.0.1:{self.port}/"

    @property
    def _data(self) -> Path:
        return self.folder / "data"


def _as_me() -> str:
    return f"--user={getpass.getuser()}"


def _initialise(folder: Path) -> None:
    download(
        [
            program("mariadb-install-db", install=INSTALL),
            *("--no-defaults", f"--datadir={folder}", _as_me()),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
            _LOG,
        ]
    )
