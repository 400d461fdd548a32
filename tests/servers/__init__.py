"""Real servers for tests: had from package managers, started by the tests, gone afterwards.

To add one:

1. A module here with a subclass of `Server` (`frame.py`; `mariadb.py` is the model): `provide` gets
   the programs (`cached` keeps what it downloads, outside the repository) and makes the data
   folder, `command` is what is started, `is_ready` asks the server itself.
2. A session fixture in `fixtures.py`: three lines.

Tests then take the fixture by name. Where a server can't be had they are skipped by its name; with
`CI=true` they fail. A test that kills, freezes or fills a server starts one of its own with
`running(Kind(tmp_path))`; `proxy.py` cuts and delays the connections to any of them.
"""
