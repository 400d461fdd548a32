"""`python -m services.local`: the whole product on one machine."""

import sys

from pydantic import ValidationError

from services.local.console import StackConsole
from services.local.home import HomeError, claim
from services.local.ports import PortBusyError, check_free
from services.local.settings import LocalSettings
from services.local.stack import needed_ports
from services.local.supervisor import Supervisor

NOT_STARTED = 3  # as every `sluice` command ends that finds no platform


def run() -> int:
    """Start the stack and block until it is stopped; returns the exit code."""
    console = StackConsole()
    try:
        settings = LocalSettings()
        lock = claim(settings.home)
        check_free(needed_ports(settings))
    except ValidationError as exc:
        for error in exc.errors():
            console.error(f"setting {error['loc'][0]}: {error['msg']}")
        return 2
    except (HomeError, PortBusyError) as exc:
        console.error(str(exc))
        return NOT_STARTED
    with lock:
        Supervisor(settings, console).run()
    return 0


if __name__ == "__main__":
    sys.exit(run())
