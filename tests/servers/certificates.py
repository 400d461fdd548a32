"""Certificates for tests: an authority of one's own, and servers' keys that it signed."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.servers.frame import program

INSTALL = "install openssl"
_DAYS = ("-days", "2")
_NEW_KEY = ("-newkey", "rsa:2048", "-nodes")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate that clients are told to trust, and its key."""

    certificate: Path
    key: Path

    @classmethod
    def made_in(cls, folder: Path) -> "Authority":
        """A new one: `ca.pem` and `ca.key` in the folder."""
        made = cls(folder / "ca.pem", folder / "ca.key")
        _openssl("req", "-x509", *_NEW_KEY, *_DAYS, "-subj", "/CN=tests", *made._files())
        return made

    def sign(self, address: str, store: Path) -> None:
        """Write a key and a certificate for an IP address into one PEM file."""
        key, certificate = store.with_suffix(".key"), store.with_suffix(".crt")
        _openssl(
            *("req", "-x509", *_NEW_KEY, *_DAYS, "-subj", f"/CN={address}"),
            *("-CA", str(self.certificate), "-CAkey", str(self.key)),
            *("-addext", f"subjectAltName=IP:{address}"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-keyout", str(key), "-out", str(certificate)),
        )
        store.write_text(key.read_text() + certificate.read_text())

    def _files(self) -> tuple[str, ...]:
        return ("-keyout", str(self.key), "-out", str(self.certificate))


def _openssl(*arguments: str) -> None:
    tool = program("openssl", install=INSTALL)
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
