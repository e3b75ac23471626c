"""Several registers of claims as one: a thing is held only if all of them grant it.

They are asked in order. Names that the first ones granted before a later one refuses are released.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lehr.base.errors import LehrError
from lehr.base.log import Log
from lehr.model.asset import AssetId
from lehr.sdk.claims import Holder
from lehr.store.claims import Owner, Register, refused

log = Log()

_Names = Mapping[AssetId, Collection[str]]
_Holders = Mapping[str, Holder]


class Registers:
    """`lehr.store.claims.Register` over several of them.

    A crash may leave names that only some granted: this owner keeps them until its assets claim again or
    leave.
    """

    def __init__(self, registers: Sequence[Register]) -> None:
        self._registers = tuple(registers)

    def known(self, owner: Owner) -> bool:
        return all(register.known(owner) for register in self._registers)

    def holders(self, owner: Owner, names: Collection[str]) -> dict[str, Holder]:
        found: dict[str, Holder] = {}
        for register in self._registers:
            for name, holder in register.holders(owner, names).items():
                # Another owner in one of them counts, whatever the others report.
                if name not in found or (found[name].ours and not holder.ours):
                    found[name] = holder
        return found

    def holding(self, owner: Owner, names: _Names) -> set[AssetId]:
        return set.intersection(*(register.holding(owner, names) for register in self._registers))

    def take(
        self, owner: Owner, names: _Names, *, only: bool, free: bool, over: Collection[AssetId] = ()
    ) -> dict[str, Holder]:
        wanted = [name for claimed in names.values() for name in claimed]
        # Read all before changing any: most refusals, and an unreachable register, show here.
        before = [register.holders(owner, wanted) for register in self._registers]
        others = {name: holder for found in before for name, holder in refused(found, names, over).items()}
        if others and not free:
            return others
        return self._take(owner, names, before, only=only, free=free, over=over)

    def assets(self, owner: Owner) -> set[AssetId]:
        return {id for register in self._registers for id in register.assets(owner)}

    def moved(self, owner: Owner) -> set[AssetId]:
        return {id for register in self._registers for id in register.moved(owner)}

    def release(self, owner: Owner, names: Mapping[AssetId, Collection[str] | None]) -> None:
        for register in self._registers:
            register.release(owner, names)

    def close(self) -> None:
        for register in self._registers:
            register.close()

    def _take(
        self,
        owner: Owner,
        names: _Names,
        before: Sequence[_Holders],
        *,
        only: bool,
        free: bool,
        over: Collection[AssetId],
    ) -> dict[str, Holder]:
        *first, last = self._registers
        others: dict[str, Holder] = {}
        for number, register in enumerate(self._registers):
            try:
                # Nothing is released before all have granted: another owner might take it.
                kept = register.take(owner, names, only=only and register is last, free=free, over=over)
            except LehrError:
                self._give_back(owner, names, before[:number])
                raise
            if kept:
                others |= kept
                back = _among(names, kept) if free else names
                self._give_back(owner, back, before[:number])
                if not free:
                    return others
                names = _among(names, kept, inside=False)
        for register in first if only else ():
            others |= register.take(owner, names, only=True, free=free, over=over)
        return others

    def _give_back(self, owner: Owner, names: _Names, before: Sequence[_Holders]) -> None:
        """Restore what the first registers held `before`, as far as `names` go."""
        for register, found in zip(self._registers, before, strict=False):
            ours = {name: holder.asset for name, holder in found.items() if holder.ours}
            moved: dict[AssetId, list[str]] = {}
            for id, claimed in names.items():
                for name in claimed:
                    if ours.get(name, id) != id:
                        moved.setdefault(ours[name], []).append(name)
            try:
                register.release(owner, _among(names, ours, inside=False))
                if moved:
                    register.take(owner, moved, only=False, free=True, over=names)
            except LehrError as error:
                log.warning("claims that were refused are not given back", error=str(error))


def _among(names: _Names, those: Collection[str], *, inside: bool = True) -> dict[AssetId, list[str]]:
    """The names that are in `those`, or that are not."""
    return {id: [name for name in claimed if (name in those) is inside] for id, claimed in names.items()}
