"""The order in which places are broken: each plane in turn, in it each room in turn."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, cycle
from pathlib import PurePath

from mutants.sites import KINDS, Site

LARGEST = "spark"
"""Half of the code: every second place is of it."""
PLANES = ("format", "storage", "planning", "catalog", "table", "serve", "cli", "cdc", LARGEST)

_Room = dict[str, list[Site]]


def room(site: Site) -> str:
    """The folder below `src/frazil`."""
    return PurePath(site.path).parent.relative_to("src/frazil").as_posix()


def sequence(sites: Iterable[Site], seed: int) -> Iterator[Site]:
    """Every place of the planes once; a seed always gives the same order."""
    chance = random.Random(seed)
    planes: dict[str, dict[str, _Room]] = {name: {} for name in PLANES}
    for site in sorted(sites):
        name = room(site)
        if name.split("/")[0] in planes:
            rooms = planes[name.split("/")[0]]
            rooms.setdefault(name, defaultdict(list))[site.kind].append(site)
    turns = {name: _of_plane(rooms, chance.randrange(2**32)) for name, rooms in planes.items()}
    others = chance.sample([name for name in PLANES if name != LARGEST], len(PLANES) - 1)
    order = list(chain.from_iterable((LARGEST, name) for name in others))
    while order:
        for name in tuple(order):
            following = next(turns[name], None)
            if following is not None:
                yield following
            else:
                order = [other for other in order if other != name]


def _of_plane(rooms: dict[str, _Room], seed: int) -> Iterator[Site]:
    """One place of each room in turn, of the kinds in turn; the rooms in any order."""
    chance = random.Random(seed)
    kinds = cycle(chance.sample(KINDS, len(KINDS)))
    names = chance.sample(sorted(rooms), len(rooms))
    while names:
        for name in tuple(names):
            left = {kind: places for kind, places in rooms[name].items() if places}
            if not left:
                names.remove(name)
                continue
            kind = next(kind for kind in kinds if kind in left)
            yield left[kind].pop(chance.randrange(len(left[kind])))
