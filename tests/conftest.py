"""For every test: log lines whose tracebacks cost little, as many tests make hundreds of them; and
the servers and databases that tests ask for by name. Properties hold however slow the machine is.
"""

import structlog
from hypothesis import settings

settings.register_profile("sluice", deadline=None)
settings.load_profile("sluice")

pytest_plugins = ["tests.servers.fixtures", "tests.servers.databases", "tests.servers.brokers"]

_renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _renderer])
