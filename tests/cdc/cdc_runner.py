"""A process that runs `frazil cdc` and kills itself: where, when, and the command's words.

It dies the n-th time that it comes to a place: `created` behind the making of the slot, `commit`
before the pointer is swapped, `committed` right after it, `advanced` behind a move of the slot;
`time` after n/100 seconds of its first round; `never`.
"""

import itertools
import os
import signal
import sys
import threading

from frazil.cdc.slots import Slot
from frazil.cli import main
from frazil.table import transaction


def die():
    """As a power cut would have it."""
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(owner, name, before, after, where, when):
    """Wrap a function so that the process dies around one of its calls."""
    function, calls = getattr(owner, name), itertools.count(1)

    def wrapped(*args, **options):
        number = next(calls)
        if where == before and number == when:
            die()
        result = function(*args, **options)
        if where == after and number == when:
            die()
        return result

    setattr(owner, name, wrapped)


if __name__ == "__main__":
    place, moment = sys.argv[1], int(sys.argv[2])
    deadly(Slot, "create", "", "created", place, moment)
    deadly(Slot, "advance", "", "advanced", place, moment)
    deadly(transaction, "commit", "commit", "committed", place, moment)
    if place == "time":
        locked = Slot.lock

        def lock_and_wait(slot):
            threading.Timer(moment / 100, die).start()
            locked(slot)

        Slot.lock = lock_and_wait
    main(sys.argv[3:])
