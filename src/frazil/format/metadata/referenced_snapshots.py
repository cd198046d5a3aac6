"""Snapshots of a table that a server told of in part: those that a branch or tag is at.

The others are got when one of them is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import Any, overload

from frazil.format.snapshots import Snapshot


class ReferencedSnapshots(Sequence[Snapshot]):
    """All snapshots of a table, of which some are at hand; who asks for another one gets them all.

    They are got once. Whoever gets them may raise, and is asked again the next time.

    Args:
        at_hand: those that are known.
        get_all: returns all snapshots, with those at hand.
    """

    def __init__(
        self, at_hand: Sequence[Snapshot], get_all: Callable[[], Sequence[Snapshot]]
    ) -> None:
        self._at_hand = tuple(at_hand)
        self._by_id = {snapshot.snapshot_id: snapshot for snapshot in self._at_hand}
        self._get_all: Callable[[], Sequence[Snapshot]] | None = get_all
        self._getting = Lock()

    @property
    def at_hand(self) -> tuple[Snapshot, ...]:
        """Those that are known by now."""
        return self._at_hand

    @property
    def all_snapshots(self) -> tuple[Snapshot, ...]:
        """All of them, oldest first."""
        with self._getting:
            if self._get_all is not None:
                everything = tuple(self._get_all())
                self._by_id = {snapshot.snapshot_id: snapshot for snapshot in everything}
                self._at_hand = everything
                self._get_all = None
        return self._at_hand

    @property
    def by_id(self) -> Mapping[int, Snapshot]:
        """They by their ids; one that is at hand is found without the others."""
        return _ById(self)

    def with_added(self, snapshot: Snapshot) -> ReferencedSnapshots:
        """Return these and one more, which is at hand."""

        def get_all() -> tuple[Snapshot, ...]:
            # The server may have it by now too.
            others = (
                each for each in self.all_snapshots if each.snapshot_id != snapshot.snapshot_id
            )
            return (*others, snapshot)

        return ReferencedSnapshots((*self._at_hand, snapshot), get_all)

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot of that id; None if there is none."""
        found = self._by_id.get(snapshot_id)
        if found is None:
            # Another thread may be about to have got them.
            _ = self.all_snapshots
            found = self._by_id.get(snapshot_id)
        return found

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Snapshot, ...]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | tuple[Snapshot, ...]:
        return self.all_snapshots[index]

    def __iter__(self) -> Iterator[Snapshot]:
        return iter(self.all_snapshots)

    def __len__(self) -> int:
        return len(self.all_snapshots)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.all_snapshots == tuple(other)

    def __hash__(self) -> int:
        return hash(self.all_snapshots)

    def __repr__(self) -> str:
        more = " and others" if self._get_all is not None else ""
        return f"{type(self).__name__}({sorted(self._by_id)}{more})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no server to ask.
        return tuple, (self.all_snapshots,)


class _ById(Mapping[int, Snapshot]):
    """The snapshots by their ids."""

    def __init__(self, snapshots: ReferencedSnapshots) -> None:
        self._snapshots = snapshots

    def __getitem__(self, snapshot_id: int) -> Snapshot:
        found = self._snapshots.find(snapshot_id)
        if found is None:
            raise KeyError(snapshot_id)
        return found

    def __iter__(self) -> Iterator[int]:
        return iter([snapshot.snapshot_id for snapshot in self._snapshots.all_snapshots])

    def __len__(self) -> int:
        return len(self._snapshots)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ({each.snapshot_id: each for each in self._snapshots.all_snapshots},)
