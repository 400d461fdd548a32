"""Whether SQL, the object store and both search indexes agree about every document.

It looks while the platform runs. Work in flight is no fault: what changed within the grace time,
or differs only at one of two looks, is counted as in progress.
"""

from libs.service.fsck.examining import Examiner
from libs.service.fsck.findings import Finding, Kind, Tally
from libs.service.fsck.repairing import Repairs
from libs.service.fsck.scanning import scan
from libs.service.fsck.stores import Stores

__all__ = ["Examiner", "Finding", "Kind", "Repairs", "Stores", "Tally", "scan"]
