"""Why a broker can't be reached. A client's own error says only that it can't be."""

import ssl
from typing import Any

from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    IllegalSaslStateError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)
from aiokafka.protocol.metadata import MetadataRequest

from libs.eventbus.connection import KafkaConnection
from libs.kernel import TransientError

UNREACHABLE = "kafka"
USER_REFUSED = "kafka: user refused, check KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD"
OTHER_MECHANISM = "kafka: set KAFKA_SASL_MECHANISM to one that the broker has"
NOT_TRUSTED = "kafka: certificate not trusted, check KAFKA_SSL_CAFILE and KAFKA_BOOTSTRAP"
OTHER_PROTOCOL = "kafka: hangs up, check KAFKA_SECURITY_PROTOCOL and the port in KAFKA_BOOTSTRAP"

_TIMEOUT_MS = 3_000
_HUNG_UP = (ssl.SSLError, ConnectionResetError, KafkaConnectionError, IllegalSaslStateError)


async def problem_of(kafka: KafkaConnection) -> str | None:
    """What keeps clients from the broker, as readiness shows it; None: nothing does."""
    found = UNREACHABLE
    for host, port, _ in collect_hosts(kafka.bootstrap):
        try:
            options: dict[str, Any] = kafka.security.client_options()
            connection = await create_conn(host, port, request_timeout_ms=_TIMEOUT_MS, **options)
            try:
                await connection.send(MetadataRequest([]))
            finally:
                connection.close()
        except (KafkaError, OSError, TimeoutError, ValueError) as exc:
            found = _name_of(exc)
        else:
            return None
        if found != UNREACHABLE:
            break
    return found


async def not_reached(kafka: KafkaConnection, what: str) -> TransientError:
    """The error for `what` did not work: with the reason where the connection is it."""
    problem = await problem_of(kafka)
    return TransientError(f"{what}; {problem}" if problem else what, missing=problem or "")


def _name_of(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return NOT_TRUSTED
    if isinstance(exc, UnsupportedSaslMechanismError):
        return OTHER_MECHANISM
    if isinstance(exc, AuthenticationFailedError | SaslAuthenticationFailed):
        return USER_REFUSED
    if isinstance(exc, _HUNG_UP):
        return OTHER_PROTOCOL
    return UNREACHABLE
