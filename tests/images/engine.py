"""Podman with storage of its own, and its API socket for Compose."""

import contextlib
import os
import resource
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.servers.frame import MissingServerError, cache_folder, program

INSTALL = "install podman runc netavark aardvark-dns catatonit iptables debootstrap"
_CHECK_EVERY_S = 2.0


class Engine:
    """Podman on a folder of the cache, where it finds what earlier runs built.

    Raises: MissingServerError when podman can't run here.
    """

    def __init__(self) -> None:
        self._podman = program("podman", install=INSTALL)
        if os.geteuid() != 0:
            raise MissingServerError("containers are run by root here")
        self.folder = cache_folder() / "podman"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.socket = self.folder / "podman.sock"
        self.environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "CONTAINERS_STORAGE_CONF": str(self._configured("storage.conf", self._storage())),
            "CONTAINERS_CONF": str(self._configured("containers.conf", _containers())),
            "CONTAINERS_REGISTRIES_CONF": str(self._configured("registries.conf", _REGISTRIES)),
            "BUILDAH_FORMAT": "docker",  # keeps HEALTHCHECK
            "DOCKER_HOST": f"unix://{self.socket}",
        }

    def run(self, *arguments: str, within_s: float = 900.0, stdin: str | None = None) -> str:
        """What it printed. Raises: AssertionError with the end of what it said otherwise."""
        done = subprocess.run(
            [self._podman, *arguments],
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=within_s,
        )
        said = done.stderr[-3000:] + done.stdout[-3000:]
        assert done.returncode == 0, f"podman {arguments[0]} {arguments[-1]}: {said}"
        return done.stdout.strip()

    def has_image(self, name: str) -> bool:
        command = [self._podman, "image", "exists", name]
        return subprocess.run(command, env=self.environment).returncode == 0

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """The API socket is there, and health checks are made: without systemd podman has no timer
        for them.
        """
        self.socket.unlink(missing_ok=True)
        with (self.folder / "service.log").open("wb") as log:
            command = [self._podman, "system", "service", "--time=0", f"unix://{self.socket}"]
            service = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        ended = threading.Event()
        checks = threading.Thread(target=self._check_health, args=(ended,), daemon=True)
        try:
            until = time.monotonic() + 20
            while not self.socket.exists():
                assert service.poll() is None, (self.folder / "service.log").read_text()[-2000:]
                assert time.monotonic() < until, "podman's socket is not there after 20 s"
                time.sleep(0.05)
            checks.start()
            yield
        finally:
            ended.set()
            service.terminate()
            service.wait()

    def _check_health(self, ended: threading.Event) -> None:
        while not ended.wait(_CHECK_EVERY_S):
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                for container in self.run("ps", "-q", "--filter", "status=running").split():
                    if ended.is_set():
                        return
                    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                        self.run("healthcheck", "run", container, within_s=20)

    def _configured(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.write_text(text)
        return file

    def _storage(self) -> str:
        return (
            '[storage]\ndriver = "overlay"\n'
            f'graphroot = "{self.folder / "storage"}"\nrunroot = "{self.folder / "run"}"\n'
        )


_REGISTRIES = 'unqualified-search-registries = ["docker.io"]\nshort-name-mode = "permissive"\n'


def _containers() -> str:
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    lines = [
        # Podman's own defaults are above what may be allowed where this runs.
        f'[containers]\ndefault_ulimits = ["nofile={files}:{files}", "nproc=32768:32768"]',
        '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "file"',
    ]
    if shutil.which("runc"):
        lines.append('runtime = "runc"')  # Debian's crun fails without a cgroup of its own
    return "\n".join([*lines, '[network]\nnetwork_backend = "netavark"', ""])
