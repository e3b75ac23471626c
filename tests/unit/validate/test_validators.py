"""The rules that every candidate is held to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lehr.base.diagnostics import Diagnostic, Position, Severity
from lehr.model.asset import Asset, AssetId, Partition, make_asset
from lehr.model.incarnation import AssetChange
from lehr.sdk.validator import Limits, Shrink
from lehr.testing.samples import POLICY, ROUTE, SERVICE, Policy, Route, Service, registry
from lehr.validate import DeltaProposal, MappingPredecessor, validate
from lehr.validate.dependencies import depends_in_cycle
from tests.unit.validate.proposing import missing

REGISTRY = registry()


def service(id: str, *, depends_on: Iterable[str] = (), turndown: bool = False, replicas: int = 1) -> Asset:
    addons: dict[str, Any] = {}
    if depends_on:
        addons["lehr.DependsOn"] = {"assets": list(depends_on)}
    if turndown:
        addons["lehr.Turndown"] = {"reason": "no longer needed"}
    return make_asset(
        AssetId(id), SERVICE, Service(replicas=replicas), addons, Position(f"assets/{id}.yaml", 1, 1)
    )


def route(id: str, to: str) -> Asset:
    return make_asset(AssetId(id), ROUTE, Route("/", to), {}, Position(f"assets/{id}.yaml", 1, 1))


def policy(id: str) -> Asset:
    return make_asset(AssetId(id), POLICY, Policy(), {}, Position(f"assets/{id}.yaml", 1, 1))


def proposal(before: Iterable[Asset], after: Iterable[Asset], limits: Limits | None = None) -> DeltaProposal:
    """The candidate `after` on the predecessor `before`."""
    old, new = ({asset.id: asset for asset in assets} for assets in (before, after))
    changes = [AssetChange(id, old.get(id), new.get(id)) for id in sorted({*old, *new})]
    loose = Limits(shrink=Shrink(percent=100)) if limits is None else limits
    return DeltaProposal(Partition("test"), REGISTRY, loose, changes, MappingPredecessor(old, REGISTRY))


def check(before: Iterable[Asset], after: Iterable[Asset], limits: Limits | None = None) -> list[Diagnostic]:
    return validate(proposal(before, after, limits))


def codes(found: Iterable[Diagnostic]) -> list[str]:
    return [item.code for item in found]


WEB, DB = service("web"), service("db")


def test_a_sound_candidate_passes() -> None:
    assert check([], [WEB, DB, route("r", "web")]) == []
    assert check([WEB, DB], [service("web", replicas=2), DB, route("r", "web")]) == []


# --- references -------------------------------------------------------------------------------


def test_a_reference_leads_to_an_asset_that_exists() -> None:
    (found,) = check([], [WEB, route("r", "wb")])
    assert (found.code, found.subject) == ("VAL001", "r")
    assert not missing(found, "/payload/service", "`web`")
    assert found.at == Position("assets/r.yaml", 1, 1)


def test_a_reference_may_lead_to_an_asset_that_has_not_changed() -> None:
    assert check([WEB], [WEB, route("r", "web")]) == []


def test_an_asset_that_goes_leaves_no_reference_behind_even_if_it_may_go() -> None:
    before = [WEB, DB, route("r", "web")]
    found = check(before, before[1:], Limits(let_go={"web": "moved"}, shrink=Shrink(percent=100)))
    assert codes(found) == ["VAL001"]


def test_a_reference_leads_to_an_asset_of_the_right_type() -> None:
    (found,) = check([], [policy("p"), route("r", "p")])
    assert found.code == "VAL002"
    assert not missing(found, "sample.Policy", "sample.Service")


def test_an_asset_that_changes_its_type_is_checked_with_those_that_refer_to_it() -> None:
    before = [policy("p"), make_asset(AssetId("x"), SERVICE, Service(), {}), route("r", "x")]
    after = [before[0], make_asset(AssetId("x"), POLICY, Policy(), {}), before[2]]
    assert codes(check(before, after)) == ["VAL002", "VAL011"]


def test_an_id_keeps_its_type_until_its_turndown_is_done() -> None:
    change = AssetChange(AssetId("x"), None, policy("x"))

    def found(*leaving: Asset) -> list[Diagnostic]:
        predecessor = MappingPredecessor({WEB.id: WEB}, REGISTRY, leaving)
        return validate(DeltaProposal(Partition("test"), REGISTRY, Limits(), [change], predecessor))

    [refused] = found(service("x"))
    assert (refused.code, refused.subject) == ("VAL011", "x")
    assert not missing(refused, "sample.Policy", "sample.Service", "lehr why x")
    assert found(policy("x")) == [], "it comes back as what it was"
    assert found(service("y")) == []


def test_a_diagnostic_points_as_exactly_as_can_be_located() -> None:
    change = AssetChange(AssetId("r"), None, route("r", "wb"))
    asked: list[str] = []

    def locate(asset: Asset, pointer: str) -> Position:
        asked.append(f"{asset.id}{pointer}")
        return Position("assets/r.yaml", 7, 3)

    exact = DeltaProposal(
        Partition("p"), REGISTRY, Limits(), [change], MappingPredecessor({}, REGISTRY), locate=locate
    )
    assert [item.at for item in validate(exact)] == [Position("assets/r.yaml", 7, 3)]
    assert asked == ["r/payload/service"]


# --- dependencies -----------------------------------------------------------------------------


def test_an_asset_does_not_depend_on_itself() -> None:
    (found,) = check([], [service("a", depends_on=["a"])])
    assert (found.code, found.subject) == ("VAL003", "a")
    assert missing(found, " -> ")


def test_a_cycle_of_dependencies_is_named_once() -> None:
    cycle = [
        service("a", depends_on=["b"]),
        service("b", depends_on=["c", "d"]),
        service("c", depends_on=["a"]),
    ]
    (found,) = check([], [*cycle, service("d")])
    assert found.code == "VAL003"
    assert not missing(found, "a -> b -> c -> a")


def test_a_cycle_is_found_through_assets_that_have_not_changed() -> None:
    before = [service("a"), service("b", depends_on=["a"]), service("c", depends_on=["b"])]
    (found,) = check(before, [service("a", depends_on=["c"]), *before[1:]])
    assert found.code == "VAL003"
    assert not missing(found, "a -> c -> b -> a")


def test_of_a_long_cycle_only_the_begin_is_told() -> None:
    ring = [service(f"s{number:03}", depends_on=[f"s{(number + 1) % 500:03}"]) for number in range(500)]
    (found,) = check([], ring)
    assert found.code == "VAL003"
    assert not missing(found, "s000 -> s001 -> ", " -> s018 -> (481 more) -> s000")


def test_cycles_that_share_an_asset_are_all_named() -> None:
    shared = [service("a", depends_on=["b", "c"]), service("b", depends_on=["a"])]
    found = check([], [*shared, service("c", depends_on=["a"]), service("d", depends_on=["a"])])
    assert sorted(item.what.partition(": ")[2] for item in found) == ["a -> b -> a", "a -> c -> a"]


def test_each_asset_is_come_to_once_however_long_the_chain_is() -> None:
    asked: list[AssetId] = []

    class Counting(DeltaProposal):
        def dependencies(self, id: AssetId) -> list[AssetId]:
            asked.append(id)
            return super().dependencies(id)

    chain = [service(f"s{number:03}", depends_on=[f"s{number + 1:03}"]) for number in range(500)]
    changes = [AssetChange(asset.id, None, asset) for asset in (*chain, service("s500"))]
    counting = Counting(Partition("test"), REGISTRY, Limits(), changes, MappingPredecessor({}, REGISTRY))
    assert list(depends_in_cycle(counting)) == []
    assert len(asked) <= 2 * len(changes)


def test_many_ways_to_one_asset_are_no_cycle() -> None:
    diamond = [
        service("a", depends_on=["b", "c"]),
        service("b", depends_on=["d"]),
        service("c", depends_on=["d"]),
    ]
    assert check([], [*diamond, service("d")]) == []


def test_depending_on_what_is_turned_down_is_a_warning() -> None:
    down, user = service("db", turndown=True), service("web", depends_on=["db"])
    for before, after in (([DB, user], [down, user]), ([down], [down, user])):
        (found,) = check(before, after)
        assert (found.code, found.subject, found.severity) == ("VAL004", "web", Severity.WARNING)
    assert check([DB, user], [down, service("web", depends_on=["db"], turndown=True)]) == []


# --- disappearance ----------------------------------------------------------------------------


def test_what_disappears_without_a_turndown_is_an_error_that_names_both_ways_out() -> None:
    (found,) = check([WEB, DB], [DB])
    assert (found.code, found.subject, found.at) == ("VAL010", "web", Position("assets/web.yaml"))
    assert not missing(found, "assets/web.yaml:1:1", "lehr.Turndown", "let_go: {web:")


def test_what_was_turned_down_governs_or_is_let_go_may_disappear() -> None:
    assert check([service("web", turndown=True), DB], [DB]) == []
    assert check([policy("p"), DB], [DB]) == []
    assert check([WEB, DB], [DB], Limits(let_go={"web": "moved"}, shrink=Shrink(percent=100))) == []


def test_a_turndown_that_comes_with_the_removal_is_too_late() -> None:
    before = [service("web"), DB]
    assert codes(check(before, [DB])) == ["VAL010"]


def test_many_disappearances_are_summed_up() -> None:
    before = [service(f"s{n:03}") for n in range(300)]
    found = check([*before, DB], [DB])
    assert codes(found) == ["VAL010"]
    assert not missing(found[0], "300 assets", "`s000`, `s001`", "`s009` and 290 more")
    assert not missing(found[0], "assets/s000.yaml, assets/s001.yaml, assets/s002.yaml", "297 more")


def test_an_id_keeps_its_type_unless_the_old_one_governs() -> None:
    web = make_asset(AssetId("web"), POLICY, Policy(), {})
    (found,) = check([WEB], [web])
    assert (found.code, found.subject) == ("VAL011", "web")
    assert check([web], [WEB]) == []


def test_letting_go_of_what_is_still_declared_is_a_warning() -> None:
    (found,) = check([WEB], [WEB, DB], Limits(let_go={"web": "moved", "long-gone": "moved"}))
    assert (found.code, found.subject, found.severity) == ("VAL012", "web", Severity.WARNING)


# --- shrinking --------------------------------------------------------------------------------

MANY = [service(f"s{n}") for n in range(20)]


def test_nothing_after_something_is_an_error_whatever_the_limits() -> None:
    everything = {str(asset.id): "moved" for asset in MANY}
    found = check(MANY, [], Limits(let_go=everything, shrink=Shrink(percent=100, floor=100)))
    assert codes(found) == ["VAL020"]
    assert check([], []) == []


def test_an_emptied_directory_gives_a_short_answer() -> None:
    assert codes(check(MANY, [], Limits())) == ["VAL020", "VAL010"]


def test_a_change_takes_away_no_more_than_the_limits_allow() -> None:
    down = [service(asset.id, turndown=True) for asset in MANY[:4]]
    gone = {str(asset.id): "moved" for asset in MANY[4:7]}
    tight = Limits(let_go=gone, shrink=Shrink(percent=30, floor=5))
    (found,) = check(MANY, [*down, *MANY[7:]], tight)
    assert found.code == "VAL021"
    assert not missing(found, "7 of 20", "30 %", "`shrink`")
    assert (
        check(MANY, [*down, *MANY[6:]], Limits(let_go={"s4": "", "s5": ""}, shrink=Shrink(percent=30))) == []
    )
    assert check(MANY, [*down, *MANY[7:]], Limits(let_go=gone, shrink=Shrink(percent=30, floor=7))) == []


def test_finishing_a_turndown_is_not_counted_again() -> None:
    down = [service(asset.id, turndown=True) for asset in MANY[:10]]
    assert check([*down, *MANY[10:]], MANY[10:], Limits(shrink=Shrink(percent=10, floor=0))) == []


# --- cost -------------------------------------------------------------------------------------


def test_only_what_changed_and_its_neighbours_are_looked_at() -> None:
    class Counting(MappingPredecessor):
        def __init__(self, assets: dict[AssetId, Asset]) -> None:
            super().__init__(assets, REGISTRY)
            self.asked: set[str] = set()

        def asset(self, id: AssetId) -> Asset | None:
            self.asked.add(id)
            return super().asset(id)

    crowd = {asset.id: asset for asset in (service(f"s{n}", depends_on=[f"s{n + 1}"]) for n in range(1000))}
    before = {**crowd, AssetId("s1000"): service("s1000"), WEB.id: WEB}
    predecessor = Counting(before)
    after = service("web", depends_on=["s998"])
    assert (
        validate(
            DeltaProposal(Partition("p"), REGISTRY, Limits(), [AssetChange(WEB.id, WEB, after)], predecessor)
        )
        == []
    )
    assert predecessor.asked == {"s998", "s999", "s1000"}
