"""What keeps the most money where it is, and what lifting it alone is worth.

The plan of today is followed to its end. Whatever holds nodes there is a blocker. No blocker can be worth more than the
price of the nodes that nothing but it holds: with these kept as they are, any fleet that it allows is a fleet of today.
(A rule about moves holds no node by itself; its bound is the price of all nodes that nothing else holds.) So blockers
are taken from the highest bound down, and for each the engine answers the what-if in which it is lifted. A search finds
one good end of many: a plan that ends cheaper without touching a node that the blocker held owes that to luck, which is
no worth of the blocker. A search in haste may miss nearly everything, so what it finds is only the least that a blocker
is worth. Blockers whose bound is below the worth of enough others need not be asked.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.decision_pass import DecisionPass
from karpool.disruption.plan import Progress
from karpool.disruption.policies import HAIR
from karpool.disruption.settings import DisruptionSettings
from karpool.disruption.what_if.answer import PlanEnd, Walked, WhatIf
from karpool.disruption.what_if.holds import Holder, holds_of, wide_rules
from karpool.disruption.what_if.knob import Knob
from karpool.disruption.what_if.quick import search_words
from karpool.model.owners import OwningWorkload
from karpool.model.pod import Pod


@dataclass(slots=True)
class Blocker:
    """One rule, the nodes that it holds at the end of today's plan, and for whom."""

    rule: Holder
    message: str
    nodes: list[Candidate] = field(default_factory=list)
    pods: dict[str, Pod] = field(default_factory=dict)
    workloads: dict[OwningWorkload, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LiftingWorth:
    """What lifting something is worth: $/h, how many nodes fewer there are, and how many evictions more it takes."""

    savings: float
    nodes: int
    evictions: int
    freed: int
    """How many of the nodes go that nothing else holds."""
    search: str
    """Which search found it."""


@dataclass(frozen=True, slots=True)
class Lift:
    """Blockers that are lifted together, all of one owner or just one; how much they can be worth, and are."""

    name: str
    blockers: tuple[Blocker, ...]
    alone: tuple[str, ...]
    """The nodes that nothing else holds."""
    bound: float | None
    """No more than this in $/h; None if a price is not known."""
    worth: LiftingWorth | None = None
    """None: not computed, because the bound is too low to matter, or because nothing lifts them."""
    settled: bool = False
    """Whether that is what it is worth; else, after a search in haste, it is worth at least that."""

    @property
    def least(self) -> float:
        """What it is known to be worth at least, in $/h."""
        return 0.0 if self.worth is None else self.worth.savings

    @property
    def wide(self) -> bool:
        """Whether nodes may go that it does not hold."""
        return any(blocker.rule.wide for blocker in self.blockers)

    @property
    def knobs(self) -> tuple[Knob, ...]:
        """What lifts them; none if one of them cannot be lifted."""
        knobs = [blocker.rule.knobs for blocker in self.blockers if blocker.rule.knobs]
        return tuple(dict.fromkeys(knob for several in knobs for knob in several))


@dataclass(frozen=True, slots=True)
class Blockers:
    """All blockers of a cluster, those that are worth most first, after a plan for today."""

    today: PlanEnd
    today_settings: DisruptionSettings
    """Those under which the plan for today was found."""
    held: int
    """How many nodes something holds at the end of that plan."""
    lifts: tuple[Lift, ...]


Naming = Callable[[Blocker], str]
"""The owner of a blocker; blockers of one name are lifted together. Empty: of nobody, lifted alone."""


def blockers_of(
    what_if: WhatIf,
    most: int,
    *,
    owner: Naming = lambda _: "",
    longer: WhatIf | None = None,
    refined: int = 0,
    progress: Progress | None = None,
    so_far: Callable[[Blockers], None] = lambda _: None,
) -> Blockers:
    """Find all blockers, and what the `most` with the highest bounds are worth; half of them may be about moves.

    `longer` answers where `what_if` does so in haste, for the first `refined` of these; both go on from its plan of
    today. `so_far` is told what is known as it becomes known: the bounds first, and then one worth after the other.
    """
    say = progress or (lambda _what, _done, _all: None)
    today, settings = (longer or what_if).best

    def known() -> Blockers:
        return Blockers(today.end, settings, holding.held, tuple(sorted(lifts, key=_by_worth)))

    holding = _Holding(today, what_if.question.settings)
    lifts = sorted(holding.lifts(owner), key=_by_bound)
    so_far(known())
    asked, refining = {True: 0, False: 0}, {True: 0, False: 0}
    for place, lift in enumerate(lifts):
        done = sum(asked.values())
        enough = done >= most or (lift.wide and 2 * asked[True] >= most)
        if lift.knobs and not enough and not _is_settled(lifts[:place], lift, most):
            say("Lifting blockers", done, min(most, len(lifts)))
            asked[lift.wide] += 1
            chosen = what_if
            spent = sum(refining.values()) >= refined or (lift.wide and 2 * refining[True] >= refined)
            if longer is not None and not spent:
                refining[lift.wide] += 1
                chosen = longer
            lifts[place] = _computed(chosen, today, lift)
            so_far(known())
    return known()


def _is_settled(before: Sequence[Lift], lift: Lift, most: int) -> bool:
    """Whether it is known that a lift is worth nothing, or less than enough others."""
    if lift.bound is None:
        return False
    better = sum(other.worth is not None and other.least >= lift.bound for other in before)
    return lift.bound <= HAIR or better >= most


def _computed(what_if: WhatIf, start: Walked, lift: Lift) -> Lift:
    """The lift with its worth."""
    if what_if.hasty:
        # From the end of the plan of today there is little left to plan, and no luck.
        then = what_if.onwards(lift.knobs, start)
        saved, there = start.end.after.price - then.end.after.price, then.there
        nodes, evictions = start.end.after.nodes - then.end.after.nodes, then.end.evictions
    else:
        answer = what_if.ask(lift.knobs)
        saved, there = answer.saved, answer.there
        nodes = answer.today.after.nodes - answer.then.after.nodes
        evictions = answer.then.evictions - answer.today.evictions
    staying = {node.name for node in there.objects.nodes}
    freed = sum(name not in staying for name in lift.alone)
    search = search_words(what_if.question.settings)
    if saved <= HAIR or not (lift.wide or freed):
        return replace(lift, worth=LiftingWorth(0.0, 0, 0, 0, search), settled=not what_if.hasty)
    whole = lift.bound is not None and saved >= lift.bound - HAIR
    worth = LiftingWorth(lift.bound if whole and lift.bound else saved, nodes, evictions, freed, search)
    return replace(lift, worth=worth, settled=whole or not what_if.hasty)


def _by_bound(lift: Lift) -> tuple[float, str, str]:
    # What nobody knows the price of may be worth anything.
    return (float("-inf") if lift.bound is None else -lift.bound, *_named(lift))


def _by_worth(lift: Lift) -> tuple[float, bool, float, str, str]:
    """What is known first; of what may be worth something, what may be worth most; at last what is worth nothing."""
    nothing = lift.settled and lift.least <= HAIR
    return (-lift.least, nothing, *_by_bound(lift))


def _named(lift: Lift) -> tuple[str, str]:
    return lift.name or lift.blockers[0].rule.object, lift.blockers[0].rule.code


class _Holding:
    """Which rules hold which nodes at the end of a plan."""

    def __init__(self, walked: Walked, settings: DisruptionSettings) -> None:
        context = replace(walked.there, settings=settings).context()
        decision_pass = DecisionPass(context)
        self._blockers: dict[Holder, Blocker] = {}
        self._by_node: dict[str, frozenset[Holder]] = {}
        self._nodes = [context.candidate(row) for row in context.rows()]
        for node in self._nodes:
            holds = holds_of(decision_pass, node)
            self._by_node[node.name] = frozenset(hold.rule for hold in holds)
            for hold in holds:
                blocker = self._blockers.setdefault(hold.rule, Blocker(hold.rule, hold.message))
                if not blocker.nodes or blocker.nodes[-1].name != node.name:
                    blocker.nodes.append(node)
                if hold.pod is not None and hold.workload is not None:
                    blocker.pods[hold.pod.key] = hold.pod
                    blocker.workloads[hold.workload] = None
        for rule, message in wide_rules(walked.there.objects.node_pools, context.settings):
            self._blockers.setdefault(rule, Blocker(rule, message))

    @property
    def held(self) -> int:
        """How many nodes are held by anything."""
        return sum(bool(rules) for rules in self._by_node.values())

    def lifts(self, owner: Naming) -> Iterable[Lift]:
        """Blockers of one owner together, and each of nobody's alone."""
        together: dict[str, list[Blocker]] = {}
        for blocker in self._blockers.values():
            name = owner(blocker)
            if name:
                together.setdefault(name, []).append(blocker)
            else:
                yield self._lift("", [blocker])
        for name, blockers in together.items():
            yield self._lift(name, blockers)

    def _lift(self, name: str, blockers: Sequence[Blocker]) -> Lift:
        rules = {blocker.rule for blocker in blockers if blocker.rule.knobs} or {blocker.rule for blocker in blockers}
        alone = [node for node in self._nodes if (held := self._by_node[node.name]) and held <= rules]
        free = [node for node in self._nodes if not self._by_node[node.name]]
        counted = [*alone, *free] if any(rule.wide for rule in rules) else alone
        return Lift(name, tuple(blockers), tuple(node.name for node in alone), _price(counted))


def _price(nodes: Sequence[Candidate]) -> float | None:
    """The price of nodes; None if that of one of them is not known."""
    if any(node.price is None for node in nodes):
        return None
    return sum(node.price or 0.0 for node in nodes)
