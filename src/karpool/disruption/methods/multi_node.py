"""Multi-node consolidation: nodes of a bin that go together, with nothing or something cheaper in their place."""

from collections.abc import Sequence
from typing import Final

from karpool.disruption.candidates.candidate import Candidate
from karpool.disruption.command import Cause, Command
from karpool.disruption.decision_pass import DecisionPass, lasting
from karpool.disruption.fleet_search.global_search import GlobalSearch
from karpool.disruption.methods.evaluate import footprint_of
from karpool.disruption.methods.partition import bins
from karpool.disruption.methods.search import Judged, Proposal, strategy
from karpool.disruption.policies import Verdict
from karpool.disruption.reasons import ReasonCode
from karpool.disruption.refusal_cache import Footprint
from karpool.disruption.settings import GLOBAL, MOST_EFFORT, DisruptionSettings
from karpool.model.reasons import Reason

_SEVERAL: Final = 2


def multi_node(decision_pass: DecisionPass) -> tuple[Command, ...]:
    """The set of nodes that the search strategy finds in the first bin that has one; the largest bin comes first."""
    settings = decision_pass.context.settings
    if settings.search == GLOBAL:
        memo = decision_pass.context.memo
        if memo.living_search is not None:
            commands = memo.living_search.commands(decision_pass)
        else:
            memo.global_search = memo.global_search or GlobalSearch()
            commands = memo.global_search.commands(decision_pass)
        if commands or _held(decision_pass):
            return commands
    search = strategy(settings.search)
    candidates = decision_pass.consolidatable()
    kept = decision_pass.within_budgets(candidates, Cause.UNDERUTILIZED)
    for members in bins(candidates, settings.partition, kept=kept):
        if len(members) < _SEVERAL:
            continue
        key = ("multi", tuple(node.row for node in members))
        reason = decision_pass.refusals.get(key)
        if reason is None:
            judge = _Judge(decision_pass)
            command = search(members, judge)
            if command is not None:
                return (command,)
            decision_pass.verdicts += judge.rejected
            reason = Reason(ReasonCode.NO_GROUP, _no_group(settings), _subject(members[0]))
            if judge.repeatable:
                decision_pass.refusals.put(key, reason, judge.footprint)
        decision_pass.group_refusals.update((node.row, reason) for node in members)
    return ()


def _subject(member: Candidate) -> str:
    return f"NodePool {member.pool_name}" if member.pool is None else member.pool.subject


def _held(decision_pass: DecisionPass) -> bool:
    """Whether consolidation waits for a global search."""
    living = decision_pass.context.memo.living_search
    decision_pass.postponed = living is not None and living.holds
    return decision_pass.postponed


def _no_group(settings: DisruptionSettings) -> str:
    """Why nodes stay that no set includes, and what looks at more sets."""
    if settings.search != GLOBAL:
        hint = f"; try --search {GLOBAL}"
    elif settings.effort < MOST_EFFORT:
        hint = f"; try --effort {MOST_EFFORT}"
    else:
        hint = ""
    return f"no set of nodes that includes this one was found that something cheaper could replace{hint}"


class _Judge:
    """Judges proposals, and remembers what its refusals depend on."""

    def __init__(self, decision_pass: DecisionPass) -> None:
        self._pass = decision_pass
        self.repeatable = True
        """Whether a refusal is valid as long as its footprint: what a pool approves changes with each of its nodes."""
        self.rejected: list[Verdict] = []
        """What pools said of the last move that a Balanced pool rejected."""
        self.footprint = Footprint(frozenset(), frozenset(), frozenset(), opened=False)

    def __call__(self, proposals: Sequence[Proposal]) -> Judged | None:
        evaluator = self._pass.evaluator
        scan = evaluator.scan_sets(proposals)
        for place in scan.promising():
            command = self._approved(*proposals[place])
            if command is not None:
                return Judged(place, command)
        self.footprint = self.footprint.union(footprint_of(scan, len(proposals)))
        return None

    def _approved(self, candidates: Sequence[Candidate], most_new_nodes: int) -> Command | None:
        command = self._pass.evaluator.consolidate(candidates, most_new_nodes).command
        refused = None if command is None else self._pass.not_worth_it(command, candidates)
        if command is None or refused is None:
            return command
        if refused.code == ReasonCode.BALANCED_SCORE_TOO_LOW:
            self.rejected = self._pass.judged(command, candidates)
        self.repeatable = self.repeatable and lasting(refused)
        return None
