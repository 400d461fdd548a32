"""How a broker lets its clients in: TLS, and a user with a password."""

import ssl
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

from libs.kernel import PermanentError

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True)
class KafkaSecurity:
    """What a client shows and what it wants to be shown.

    Args:
        ca_file: Who may have signed the broker's certificate, PEM; None: whom the system trusts.

    Raises: PermanentError (`kafka-settings`) that names the setting.
    """

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism = "PLAIN"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        if self.with_password and not (self.username and self.password):
            wanted = "set KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD"
            raise _refused(f"{self.protocol} needs a user: {wanted}")
        if not self.with_password and (self.username or self.password):
            wanted = "SASL_SSL (or SASL_PLAINTEXT)"
            raise _refused(f"a user is set: set KAFKA_SECURITY_PROTOCOL to {wanted}, too")
        if self.ca_file is not None and not self.encrypted:
            raise _refused(
                "KAFKA_SSL_CAFILE is set: set KAFKA_SECURITY_PROTOCOL to SSL or SASL_SSL"
            )
        if self.encrypted:
            self.ssl_context()

    @property
    def encrypted(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def with_password(self) -> bool:
        return self.protocol.startswith("SASL")

    def ssl_context(self) -> ssl.SSLContext | None:
        """What checks the broker's certificate; None: there is none to check."""
        return _context(self.ca_file) if self.encrypted else None

    def client_options(self) -> dict[str, Any]:
        """As every client of aiokafka takes them."""
        options: dict[str, Any] = {
            "security_protocol": self.protocol,
            "ssl_context": self.ssl_context(),
        }
        if self.with_password:
            options["sasl_mechanism"] = self.mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        return options


@cache
def _context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except OSError as exc:
        unread = isinstance(exc, ssl.SSLError)
        why = "it holds no certificate in PEM format" if unread else exc.strerror
        raise _refused(f"KAFKA_SSL_CAFILE is {ca_file}, which can't be used: {why}") from exc


def _refused(detail: str) -> PermanentError:
    return PermanentError("kafka-settings", detail)


PLAINTEXT = KafkaSecurity()
