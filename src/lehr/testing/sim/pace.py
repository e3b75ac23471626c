"""How fast the store of a random history answers, and what production makes besides what intent has."""

from __future__ import annotations

from lehr.testing.sim.dice import Dice

_SALT = 0x5EED
"""Makes other dice of a history's seed."""

_ANOTHER_SALT = 0xC0DE

_SOON_SECONDS = 90.0


class Pace:
    """How long reads of the store take, and when the store hangs: reads and commits wait then.

    It has dice of its own, so that a history whose store is fast is the same without it.

    Attributes:
        naming: True if production makes names of its own.
        connecting: True if what an asset reads is also its connection to another one's name.
        reads: seconds that a read takes at most.
        hangs: begin and end of each hang, in seconds of the monotonic clock; none overlaps another.
    """

    def __init__(self, seed: int) -> None:
        self._dice = dice = Dice(seed ^ _SALT)
        self.reads = dice.pick((0.0, 0.0, 0.0, 0.02, 0.2))
        self.hangs: list[tuple[float, float]] = []
        if dice.happens(0.2):
            end = 0.0
            for _ in range(dice.number(1, 3)):
                begin = end + dice.seconds(0.0, 200.0)
                end = begin + dice.seconds(2.0, 60.0)
                self.hangs.append((begin, end))
        self.naming = dice.happens(0.5)
        self.connecting = Dice(seed ^ _ANOTHER_SALT).happens(0.5)

    def delays(self) -> tuple[float, float]:
        """Seconds before and after a read takes effect."""
        if not self.reads:
            return 0.0, 0.0
        return self._dice.seconds(0.0, self.reads / 2), self._dice.seconds(0.0, self.reads / 2)

    def hang(self, now: float) -> float:
        """Seconds until the store answers again."""
        return next((end - now for begin, end in self.hangs if begin <= now < end), 0.0)

    def cancel_hangs_soon_after(self, now: float) -> None:
        """Drop the hangs that would begin within the next minute and a half."""
        self.hangs = [(begin, end) for begin, end in self.hangs if not now <= begin < now + _SOON_SECONDS]

    def calm(self) -> None:
        """From now on, the store answers at once."""
        self.reads = 0.0
        self.hangs.clear()
