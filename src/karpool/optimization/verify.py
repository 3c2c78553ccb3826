"""A proof checked anew, in exact numbers: plain loops that share nothing with the code that found it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from karpool.optimization.problem import FleetProblem
from karpool.optimization.proof import InvalidProofError, Proof

_Key = tuple[tuple[int, ...], int, bool]
"""What pods need of a machine: requests, signature, and whether they may go to nodes that take no others."""


def verify(problem: FleetProblem, proof: Proof) -> Fraction:
    """The price in $/h that a proof shows no fleet to be below; an error if it shows nothing."""
    _check_shapes(problem, proof)
    values = [_number(value) for value in proof.value]
    groups, nodes, kinds = problem.groups, problem.nodes, problem.kinds
    keys: list[_Key] = [
        (tuple(map(int, groups.requests[at])), int(groups.loose_signature[at]), bool(groups.exempt[at]))
        for at in range(len(values))
    ]
    own: list[dict[int, int]] = []
    for node in range(len(nodes.price)):
        part = range(int(nodes.pods.start[node]), int(nodes.pods.start[node + 1]))
        own.append({int(nodes.pods.items[at]): int(nodes.pod_count[at]) for at in part})
    count: dict[_Key, int] = defaultdict(int)
    worth: dict[_Key, Fraction] = {}
    for group, key in enumerate(keys):
        count[key] += sum(own[node].get(group, 0) for node in range(len(own)) if nodes.movable[node])
        worth[key] = min(worth.get(key, values[group]), values[group])

    width = nodes.free.shape[1]
    asked = [sum(key[0][resource] * pods for key, pods in count.items()) for resource in range(width)]

    def on_machine(room: Iterable[int], rates: Sequence[Fraction], fitting: Iterable[_Key]) -> Fraction:
        space = [min(max(0, int(amount)), most) for amount, most in zip(room, asked, strict=True)]
        most = sum((rate * amount for rate, amount in zip(rates, space, strict=True)), Fraction(0))
        for key in fitting:
            copies = [amount // each for amount, each in zip(space, key[0], strict=True) if each]
            beyond = worth[key] - sum(rate * each for rate, each in zip(rates, key[0], strict=True))
            most += max(Fraction(0), beyond) * min([*copies, count[key]])
        return most

    proven = sum((worth[key] * count[key] for key in count), Fraction(0))
    for kind in range(len(kinds.price)):
        rates = [_number(rate) for rate in proof.kind_rates[kind]]
        gain = on_machine(kinds.room[kind], rates, [key for key in count if problem.suits_kind[key[1], kind]])
        gain -= _number(kinds.price[kind])
        if gain > 0 and np.isinf(kinds.most[kind]):
            raise InvalidProofError(
                f"pods on a node of kind {kind} could be worth {float(gain):.3g} more than it costs"
            )
        proven -= max(Fraction(0), gain) * (int(kinds.most[kind]) if gain > 0 else 0)
    for node in range(len(nodes.price)):
        rates = [_number(rate) for rate in proof.node_rates[node]]
        fitting = [
            key for key in count if problem.suits_shape[key[1], nodes.shape[node]] and (nodes.takes[node] or key[2])
        ]
        guests = on_machine(nodes.free[node], rates, fitting)
        price = _number(nodes.price[node])
        if nodes.movable[node]:
            held = sum((worth[keys[group]] * pods for group, pods in own[node].items()), Fraction(0))
            proven -= max(Fraction(0), held + guests - price)
        else:
            proven += price - guests
    return proven


def _number(value: float) -> Fraction:
    if not np.isfinite(value) or value < 0:
        raise InvalidProofError(f"{value} is not a number that a proof may have")
    return Fraction(float(value))


def _check_shapes(problem: FleetProblem, proof: Proof) -> None:
    wanted = (problem.groups.signature.shape, problem.kinds.room.shape, problem.nodes.free.shape)
    if (proof.value.shape, proof.kind_rates.shape, proof.node_rates.shape) != wanted:
        raise InvalidProofError("the proof is about another problem")
