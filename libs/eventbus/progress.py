"""What one partition has finished, and hence what may be committed."""

from collections import deque
from collections.abc import Iterable, Sequence

from libs.eventbus.message import Place, Record


class Progress:
    """The contiguous low-water mark over the records that were fetched from one partition.

    Records finish in any order; `next_offset` never passes one that did not. The object outlives
    a rebalance that gives the partition back, so a record that is still running, or that finished
    above the mark, is not started again when it is fetched again.
    """

    __slots__ = (
        "_done",
        "_fetched_up_to",
        "_forgotten",
        "_open",
        "finished_count",
        "lane",
        "place",
    )

    def __init__(self, place: Place, lane: str = "") -> None:
        self.place = place
        self.lane = lane
        self.finished_count = 0  # since it was last reset by the committer
        self._open: deque[int] = deque()  # fetched offsets from the mark on, ascending
        self._done: set[int] = set()  # finished ones above the mark
        self._forgotten: set[int] = set()  # open, but dropped before they were started
        self._fetched_up_to = -1

    def take(self, records: Sequence[Record]) -> Sequence[Record]:
        """Note fetched records; returns those that are to be run."""
        if records[0].offset > self._fetched_up_to and not self._forgotten:
            self._open.extend([record.offset for record in records])
            self._fetched_up_to = records[-1].offset
            return records
        return self._take_again(records)

    def _take_again(self, records: Sequence[Record]) -> list[Record]:
        # Whatever was dropped below the position we were given back, somebody else finished.
        for offset in [o for o in self._forgotten if o < records[0].offset]:
            self._forgotten.discard(offset)
            self.finish(offset)
        fresh = []
        for record in records:
            if record.offset > self._fetched_up_to:
                self._open.append(record.offset)
                self._fetched_up_to = record.offset
                fresh.append(record)
            elif record.offset in self._forgotten:
                self._forgotten.discard(record.offset)
                fresh.append(record)
        return fresh

    def finish(self, offset: int) -> None:
        """The record's effects are safe; it need not be delivered again."""
        self.finished_count += 1
        pending, done = self._open, self._done
        if pending and pending[0] == offset:
            pending.popleft()
            while pending and pending[0] in done:
                done.discard(pending.popleft())
        else:
            done.add(offset)

    def forget(self, offsets: Iterable[int]) -> None:
        """These were taken, but dropped before they were started."""
        self._forgotten.update(offsets)

    @property
    def next_offset(self) -> int | None:
        """The offset to commit: that of the oldest unfinished record; None: nothing was read."""
        if self._open:
            return self._open[0]
        return self._fetched_up_to + 1 if self._fetched_up_to >= 0 else None

    @property
    def unfinished_count(self) -> int:
        return len(self._open) - len(self._done)

    @property
    def has_gaps(self) -> bool:
        """Records were dropped and have to be fetched again before anything can move on."""
        return bool(self._forgotten)

    @property
    def window_count(self) -> int:
        """Records from the oldest unfinished one on: what a crash would deliver again."""
        return len(self._open)
