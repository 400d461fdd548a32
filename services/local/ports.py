"""Ports of the stack: which are needed, which are taken and by whom."""

import errno
import socket
from dataclasses import dataclass

import psutil


@dataclass(frozen=True, slots=True)
class NeededPort:
    number: int
    owner: str  # which part listens there
    setting: str  # what to set when it is taken


class PortBusyError(Exception):
    """A needed port is taken; the message says by whom and what to set."""


def check_free(ports: list[NeededPort]) -> None:
    """Raises: PortBusyError, naming every port that is taken."""
    taken = [port for port in ports if not _is_free(port.number)]
    if taken:
        lines = [
            f"port {port.number} ({port.owner}) is in use{_holder(port.number)}: "
            f"stop that program or set {port.setting} to a free port"
            for port in taken
        ]
        raise PortBusyError("\n".join(lines))


def accepts(port: int, timeout_s: float = 0.2) -> bool:
    """Whether something on loopback accepts connections on the port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s):
            return True
    except OSError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as exc:
            if exc.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
    return True


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            listening = connection.status == psutil.CONN_LISTEN
            if listening and connection.laddr and connection.laddr.port == port:
                process = psutil.Process(connection.pid)
                return f" by {process.name()} (pid {process.pid})"
    except (psutil.Error, TypeError):
        return ""
    return ""
