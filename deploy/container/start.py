"""First process of a container: runs the service that the image is of, as `python -m` would.

The kernel drops signals that process 1 has no handler for, so a container that is stopped while
it still imports would be killed after its grace period. Until the service has handlers of its own
these end it at once; there is nothing to drain yet.
"""

import os
import runpy
import signal
import sys

if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    runpy.run_module(
        f"services.{os.environ['SLUICE_SERVICE']}", run_name="__main__", alter_sys=True
    )
