"""Which service this process is: said once by its composition root, shown in logs and events."""

_name = "sluice"


def set_service_name(name: str) -> None:
    """Name this process, e.g. `parser`. A forked child says its own name."""
    global _name
    _name = name


def service_name() -> str:
    """The name of this process's service."""
    return _name
