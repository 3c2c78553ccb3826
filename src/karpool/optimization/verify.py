"""A proof checked anew, in exact numbers: plain loops that share nothing with the code that found it."""

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from karpool.cluster.arrays import Array
from karpool.optimization.problem import SPREAD, TOGETHER, FleetProblem
from karpool.optimization.proof import InvalidProofError, Proof

_Key = tuple[tuple[int, ...], int, bool, int]
"""What pods need of a machine: requests, signature, whether they may go to nodes that take no others, and their group
if there are rules about how many of them a host may have."""


def verify(problem: FleetProblem, proof: Proof) -> Fraction:
    """The price in $/h that a proof shows no fleet to be below; an error if it shows nothing."""
    return _Checker(problem, proof).proven()


class _Checker:
    def __init__(self, problem: FleetProblem, proof: Proof) -> None:
        wanted = (problem.groups.signature, problem.spreads.present, problem.kinds.room, problem.nodes.free)
        given = (proof.value, proof.premium, proof.kind_rates, proof.node_rates)
        if [numbers.shape for numbers in given] != [numbers.shape for numbers in wanted]:
            raise InvalidProofError("the proof is about another problem")
        self.problem, self.proof = problem, proof
        values = _numbers(proof.value)
        self.spread = {int(rule): self._premiums(int(rule)) for rule in np.flatnonzero(proof.premium.any(axis=1))}
        self.rules = [self._host_rules(group) for group in range(len(values))]
        self.keys = [self._key(group) for group in range(len(values))]
        self.count: dict[_Key, int] = defaultdict(int)
        self.worth: dict[_Key, Fraction] = {}
        for group, key in enumerate(self.keys):
            self.worth[key] = min(self.worth.get(key, values[group]), values[group])
        nodes = problem.nodes
        for node in np.flatnonzero(nodes.movable).tolist():
            for group, pods in self._own(node):
                self.count[self.keys[group]] += pods

    def _own(self, node: int) -> list[tuple[int, int]]:
        """The groups of a node's pods, and how many there are of each."""
        nodes = self.problem.nodes
        part = range(int(nodes.pods.start[node]), int(nodes.pods.start[node + 1]))
        return [(int(nodes.pods.items[at]), int(nodes.pod_count[at])) for at in part]

    def _key(self, group: int) -> _Key:
        groups = self.problem.groups
        asked = tuple(int(amount) for amount in groups.requests[group])
        spread = any(rule in self.spread for rule in self.problem.spreads.counts.row(group).tolist())
        apart = group if self.rules[group] or spread else -1
        return asked, int(groups.loose_signature[group]), bool(groups.exempt[group]), apart

    def _host_rules(self, group: int) -> list[tuple[int, int, bool]]:
        """The rules that say how many pods one host may have: rows, limits, and whether pods count themselves."""
        hosts = self.problem.hosts
        own = hosts.counts.row(group).tolist()
        return [
            (int(hosts.caps.items[at]), int(hosts.most[at]), int(hosts.caps.items[at]) in own)
            for at in range(int(hosts.caps.start[group]), int(hosts.caps.start[group + 1]))
            if hosts.required[at]
        ]

    def _premiums(self, rule: int) -> list[Fraction]:
        """By domain: what its pods are worth more there; none may have any if their number there is not certain."""
        spreads = self.problem.spreads
        spread = spreads.mode[rule] == SPREAD and spreads.eligible[rule].any()
        if not spreads.steady[rule] or not (spread or spreads.mode[rule] == TOGETHER):
            raise InvalidProofError(f"nobody knows how many pods of rule {rule} a domain has in the end")
        return _numbers(np.abs(self.proof.premium[rule]), np.sign(self.proof.premium[rule]))

    def _spread(self, rule: int) -> Fraction:
        """The least that the premiums of a rule come to: its pods in each domain are the average, down or up."""
        spreads, nodes = self.problem.spreads, self.problem.nodes
        stay, moving = [int(count) for count in spreads.present[rule]], 0
        for node in np.flatnonzero(nodes.movable).tolist():
            for group, pods in self._own(node):
                if rule in spreads.counts.row(group).tolist():
                    domain = int(nodes.domain[node, spreads.key[rule]])
                    if domain < 0 or (spreads.mode[rule] == SPREAD and not spreads.eligible[rule, domain]):
                        raise InvalidProofError(f"pods of rule {rule} are where they do not count")
                    stay[domain] -= pods
                    moving += pods
        ends = self._together(rule, stay, moving) if spreads.mode[rule] == TOGETHER else self._evenly(rule, stay)
        premiums = zip(self.spread[rule], ends, strict=True)
        return sum((min(premium * fewest, premium * most) for premium, (fewest, most) in premiums), Fraction(0))

    def _evenly(self, rule: int, stay: Sequence[int]) -> list[tuple[int, int]]:
        """By domain: the fewest and the most pods that may move and end there."""
        spreads = self.problem.spreads
        eligible, present = spreads.eligible[rule].tolist(), spreads.present[rule].tolist()
        counts = list(itertools.compress(present, eligible))
        skew, domains = int(spreads.skew[rule]), len(counts)
        even = skew == 1 and max(counts) - min(counts) <= 1 and domains >= spreads.least_domains[rule]
        fewest = sum(counts) // domains if even else 0
        # The last pod that came to a domain found at most `skew` more than the least there, itself included.
        most = (sum(counts) - skew) // domains + skew
        return [
            (max(0, fewest - fixed), max(0, max(count, most) - fixed)) if counted else (0, 0)
            for fixed, count, counted in zip(stay, present, eligible, strict=True)
        ]

    def _together(self, rule: int, stay: Sequence[int], moving: int) -> list[tuple[int, int]]:
        """The same if pods can only be where some are today, as some of them never move."""
        if not any(stay):
            raise InvalidProofError(f"all pods of rule {rule} may move, and then they may be anywhere")
        homes = [count > 0 for count in self.problem.spreads.present[rule].tolist()]
        least = moving if sum(homes) == 1 else 0
        return [(least, moving) if home else (0, 0) for home in homes]

    def _here(self, key: _Key, domain: Sequence[int]) -> Fraction:
        """What a pod is worth on a machine in these domains; where the domain is open, in the best one."""
        spreads = self.problem.spreads
        found = self.worth[key]
        for rule in spreads.counts.row(key[3]).tolist() if key[3] >= 0 else ():
            if rule in self.spread:
                at = domain[int(spreads.key[rule])]
                found += self.spread[rule][at] if at >= 0 else max(self.spread[rule])
        return found

    def proven(self) -> Fraction:
        """What all pods are worth, without what nodes that are paid for can hold of that."""
        needed = sum((self.worth[key] * pods for key, pods in self.count.items()), Fraction(0))
        needed += sum((self._spread(rule) for rule in self.spread), Fraction(0))
        bought = sum((self._kind(kind) for kind in range(len(self.problem.kinds.price))), Fraction(0))
        stays = sum((self._node(node) for node in range(len(self.problem.nodes.price))), Fraction(0))
        return needed - bought + stays

    def _kind(self, kind: int) -> Fraction:
        """What all nodes of a kind could be worth above their price."""
        problem = self.problem
        fitting = [key for key in self.count if problem.suits_kind[key[1], kind]]
        allowed = {key: self._allowed(key, {}, 0) for key in fitting}
        worth = {key: self._here(key, problem.kinds.domain[kind].tolist()) for key in fitting}
        held = self._most(problem.kinds.room[kind].tolist(), _numbers(self.proof.kind_rates[kind]), allowed, worth)
        gain = max(Fraction(0), held - Fraction(float(problem.kinds.price[kind])))
        if not gain:
            return gain
        if np.isinf(problem.kinds.most[kind]):
            raise InvalidProofError(
                f"pods on a node of kind {kind} could be worth {float(gain):.3g} more than it costs"
            )
        return gain * int(problem.kinds.most[kind])

    def _node(self, node: int) -> Fraction:
        """What a node adds to the bound: its price if it stays, without what its room and its own pods are worth."""
        nodes, suits = self.problem.nodes, self.problem.suits_shape
        fitting = [key for key in self.count if suits[key[1], nodes.shape[node]] and (nodes.takes[node] or key[2])]
        present = dict(enumerate(self.problem.hosts.present[:, node].tolist()))
        own: dict[_Key, int] = defaultdict(int)
        for group, pods in self._own(node) if nodes.movable[node] else ():
            own[self.keys[group]] += pods
        allowed = {key: self._allowed(key, present, own[key]) for key in fitting}
        worth = {key: self._here(key, nodes.domain[node].tolist()) for key in {*fitting, *own}}
        guests = self._most(nodes.free[node].tolist(), _numbers(self.proof.node_rates[node]), allowed, worth)
        price = Fraction(float(nodes.price[node]))
        if not nodes.movable[node]:
            return price - guests
        held = sum((worth[key] * pods for key, pods in own.items()), Fraction(0))
        return min(Fraction(0), price - held - guests)

    def _most(
        self,
        room: Sequence[int],
        rates: Sequence[Fraction],
        allowed: Mapping[_Key, int],
        worth: Mapping[_Key, Fraction],
    ) -> Fraction:
        """The most that pods on a machine can be worth; `allowed`: how many of each may come."""
        asked = [sum(key[0][at] * pods for key, pods in allowed.items()) for at in range(len(room))]
        space = [min(max(0, amount), most) for amount, most in zip(room, asked, strict=True)]
        most = sum((rate * amount for rate, amount in zip(rates, space, strict=True)), Fraction(0))
        for key, pods in allowed.items():
            beyond = worth[key] - sum(rate * asked for rate, asked in zip(rates, key[0], strict=True))
            if beyond > 0:
                copies = [amount // asked for amount, asked in zip(space, key[0], strict=True) if asked]
                most += beyond * min([*copies, pods])
        return most

    def _allowed(self, key: _Key, present: Mapping[int, int], own: int) -> int:
        """How many pods rules let come to a machine on which so many count already, and so many are at home."""
        most = self.count[key] - own
        for row, limit, counts_itself in self.rules[key[3]] if key[3] >= 0 else ():
            if present.get(row, 0) > limit:
                return 0
            if counts_itself:
                most = min(most, limit + 1 - present.get(row, 0))
        return most


def _numbers(values: Array, signs: Array | None = None) -> list[Fraction]:
    for value in values.tolist():
        if not np.isfinite(value) or value < 0:
            raise InvalidProofError(f"{value} is not a number that a proof may have")
    found = [Fraction(value) for value in values.tolist()]
    return found if signs is None else [value * int(sign) for value, sign in zip(found, signs, strict=True)]
