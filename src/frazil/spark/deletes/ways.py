"""Several ways to one end, and the one function that chooses among them.

A way says up to which figures it is the cheapest. Ways stand in the order in which they are tried,
and the last bears any load, so that a choice needs nothing but figures and always tells its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Apply_co = TypeVar("Apply_co", covariant=True)

Load = Mapping[str, int]
"""Figures by their name in the plural; what a way has no figure for it bears."""


@dataclass(frozen=True, slots=True)
class Way(Generic[Apply_co]):
    """One way of several.

    Attributes:
        name: what is done, as a participle.
        apply: does it.
        most: the figures up to which it may serve.
    """

    name: str
    apply: Apply_co
    most: Load = field(default_factory=dict)

    def can_bear(self, load: Load) -> bool:
        """Whether it may serve a load."""
        return all(load[name] <= most for name, most in self.most.items())

    def refusal(self, load: Load) -> str:
        """Say which figures of a load it does not bear."""
        over = (name for name, most in self.most.items() if load[name] > most)
        return ", ".join(f"{load[name]:,} {name}, more than {self.most[name]:,}" for name in over)


@dataclass(frozen=True, slots=True)
class ChosenWay(Generic[Apply_co]):
    """The way that is taken.

    Attributes:
        way: it.
        reason: why not the one that is tried before, and what it bears.
    """

    way: Way[Apply_co]
    reason: str


def cheapest(ways: Sequence[Way[Apply_co]], load: Load) -> ChosenWay[Apply_co]:
    """Return the first of the ways that bears a load.

    Examples:
        >>> here, there = Way("read here", 1, {"files": 8}), Way("read by executors", 2)
        >>> cheapest([here, there], {"files": 1_000})
        ChosenWay(way=Way(name='read by executors', apply=2, most={}), \
reason='1,000 files, more than 8')
    """
    place = next(place for place, way in enumerate(ways) if way.can_bear(load))
    most = ways[place].most
    borne = ", ".join(f"{load[name]:,} of at most {most[name]:,} {name}" for name in most)
    refused = [way.refusal(load) for way in ways[:place]][-1:]
    return ChosenWay(ways[place], "; ".join(filter(None, (*refused, borne))))
