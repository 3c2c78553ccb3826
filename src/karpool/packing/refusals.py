"""Why a pod found no place: asked after a run and before it is undone.

    with engine.what_if() as trial:
        placement = trial.place(rows)
        for pod in placement.unplaced:
            print(why_unplaced(engine, pod))

A kernel gives every node a code; nodes with equal codes share a message. Only what a pod requires is explained, for its
preferences were given up. Where its requirements have alternatives, the one that passed most checks counts.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np

from karpool.cluster.arrays import Array
from karpool.cluster.groups import labels_satisfy
from karpool.cluster.nodes import StateNode
from karpool.cluster.pod_classes import NO_CLASS, Signature
from karpool.model.labels import HOSTNAME
from karpool.model.managers import takes_no_pods
from karpool.model.operating_systems import NOT_FOR_WINDOWS, needs_windows, runs_windows
from karpool.model.requirements import Requirements
from karpool.model.scheduling import untolerated
from karpool.packing import refusal_messages as messages
from karpool.packing.engine import Engine
from karpool.packing.kernels import columns as c
from karpool.packing.kernels import refusals as k
from karpool.packing.new_node_devices import NewNodes
from karpool.packing.pool_refusals import cut_claim, pool_refusals
from karpool.packing.refusal_messages import NODES, POD, Refusal, RefusalRule

Reason = tuple[RefusalRule, str]


def why_unplaced(engine: Engine, pod_row: int, *, exempt: bool = False) -> str:
    """Why a pod of the last run found no place, in one line."""
    return messages.sentence(refusals(engine, pod_row, exempt=exempt))


def refusals(engine: Engine, pod_row: int, *, exempt: bool = False) -> tuple[Refusal, ...]:
    """Why a pod of the last run found no place: nodes first, the most frequent rule first, then pools as tried."""
    snapshot = engine.snapshot
    first = int(snapshot.pods.class_of[pod_row])
    if problem := snapshot.classes.constraints[first].refusal:
        return (Refusal(1, POD, RefusalRule.REFUSED, problem),)
    if cut := cut_claim(engine, pod_row):
        return (cut,)
    labels = int(snapshot.pods.labels_of[pod_row])
    levels = essential_levels(engine, first)
    ledger = None
    if pod_row in snapshot.pods.device_rows:
        ledger = engine.trial_ledger or engine.device_ledger()
        if problem := ledger.problem(pod_row):
            return (Refusal(1, POD, RefusalRule.DEVICES, problem),)
    nodes = _Nodes(engine, levels, labels, exempt=exempt)
    refused = nodes.refusals() if ledger is None else nodes.refusals(lambda node: ledger.refusal(pod_row, node))
    if not engine.memory["state"][c.EXISTING_ONLY]:
        others = pool_refusals(engine, levels, labels)
        refused += others if ledger is None else _without_devices(NewNodes(engine, ledger), pod_row, others)
    return tuple(refused)


def _without_devices(new_nodes: NewNodes, pod_row: int, others: list[Refusal]) -> list[Refusal]:
    """Why pools make no node for a pod with claims: devices first, then what refuses every pod of its kind."""
    lacking = {what: refusal for what, refusal in new_nodes.refusals(pod_row) if refusal is not None}
    return [lacking.get(entry.what, entry) for entry in others]


def essential_levels(engine: Engine, first: int) -> list[int]:
    """The classes of a pod that contain only what it requires: one for each alternative."""
    classes = engine.snapshot.classes
    chain = [first]
    while (following := int(classes.next[chain[-1]])) != NO_CLASS:
        chain.append(following)
    last = classes.levels[chain[-1]]
    return [
        number
        for number in chain
        if (level := classes.levels[number]).requirements == level.strict
        and (level.groups, level.tolerations) == (last.groups, last.tolerations)
    ]


class _Nodes:
    """Why the existing nodes refuse a pod."""

    def __init__(self, engine: Engine, levels: list[int], labels: int, *, exempt: bool) -> None:
        self.engine, self.snapshot = engine, engine.snapshot
        self.levels, self.labels = levels, labels
        self.codes = node_codes(engine, levels, labels, exempt=exempt)

    def refusals(self, devices: Callable[[int], str] | None = None) -> list[Refusal]:
        """One refusal for each reason, the most frequent first; `devices`: what a pod's claims lack on a node."""
        counts: Counter[Reason] = Counter()
        lacking = self.codes == k.FITS * k.STEP if devices is not None else np.zeros_like(self.codes, dtype=np.bool_)
        for code, count in zip(*np.unique(self.codes[(self.codes > 0) & ~lacking], return_counts=True), strict=True):
            counts[self._reason(int(code))] += int(count)
        if devices is not None:
            counts.update(
                (RefusalRule.DEVICES, why) for node in np.flatnonzero(lacking).tolist() if (why := devices(node))
            )
        ordered = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        return [Refusal(count, NODES, rule, detail) for (rule, detail), count in ordered]

    def _reason(self, code: int) -> Reason:
        check, detail = divmod(code, k.STEP)
        if check == k.SHAPE:
            return self._of_shape(detail, code)
        if check in (k.ATTACH, k.RESOURCE):
            most = int(self.engine.memory["free"][self.codes == code, detail].max())
            requested = int(self.snapshot.classes.requests[self.levels[0], detail])
            return messages.not_enough(self.snapshot.resources.names[detail], requested, most)
        if check == k.PORT:
            return RefusalRule.PORT, self._port(detail)
        if check == k.HOST:
            return RefusalRule.LABEL, self._host()
        if check == k.TOPOLOGY:
            return self._topology(*divmod(detail, 2))
        if check == k.CLOSED:
            return RefusalRule.CLOSED, "would accept it, but is closed to pods now"
        if check == k.UNREADABLE and self._without_machines(code):
            return RefusalRule.CLOSED, "takes no other pods, as it is a Fargate or a virtual node"
        if check == k.UNREADABLE and not self.snapshot.seals:
            return RefusalRule.CLOSED, "would accept it, but is about to go"
        if check == k.UNREADABLE:
            return RefusalRule.UNREADABLE, "would accept it, but something that bears on it cannot be read"
        # Only a pod that waits for reserved capacity keeps its preferences, and so refuses this node.
        return RefusalRule.RESERVED, "would accept it without its preferences, but the pod waits for reserved capacity"

    def _without_machines(self, code: int) -> bool:
        """Whether all nodes of a code are sealed for what they are."""
        nodes = [self.snapshot.nodes.get(int(row)).node for row in np.flatnonzero(self.codes == code)]
        return all(node is not None and takes_no_pods(node) for node in nodes)

    def _of_shape(self, shape: int, code: int) -> Reason:
        numbers = tuple(int(self.snapshot.classes.signature[level]) for level in self.levels)
        reason: Reason | None = self.engine.explained.get((numbers, shape))
        if reason is None:
            signatures = [self.snapshot.classes.signatures[number] for number in numbers]
            example = self.snapshot.nodes.get(int(np.argmax(self.codes == code)))
            reason = self.engine.explained[numbers, shape] = _unsuited(signatures, example)
        return reason

    def _port(self, row: int) -> str:
        """The port that a row of hosts counts; its key is ("port", number, protocol), perhaps with an address."""
        key = next(key for key, number in self.snapshot.topology.host_rows.items() if number == row)
        number, protocol = key[1:3] if isinstance(key, tuple) else ("?", "?")
        return f"host port {number}/{protocol} is taken"

    def _host(self) -> str:
        hosts = [self.snapshot.classes.levels[level].requirements.get(HOSTNAME) for level in self.levels]
        return f"requires {HOSTNAME} {messages.listing(dict.fromkeys(str(entry) for entry in hosts if entry), 'or')}"

    def _topology(self, place: int, unlabelled: int) -> Reason:
        own = self.snapshot.classes.owned.row(self.levels[0])
        group = self.snapshot.topology.groups[(own + self.snapshot.topology.kept_off_by.row(self.labels))[place]]
        if unlabelled:
            return messages.of_group(group), f"no label {group.key}, which {messages.rule_name(group)} needs"
        return messages.of_group(group), messages.broken(group)


def node_codes(engine: Engine, levels: list[int], labels: int, *, exempt: bool) -> Array:
    """For every row of a node the code of what refuses the pod there; zero for rows that are no destination."""
    best = np.zeros_like(engine.memory["codes"])
    for number in levels:
        k.explain_nodes(engine.memory.table, number, labels, int(exempt))
        np.maximum(best, engine.memory["codes"], out=best)
    return best


def _unsuited(signatures: list[Signature], node: StateNode) -> Reason:
    """The taint, label or volume for which a node suits none of some alternative signatures."""
    taint = untolerated(node.taints, signatures[0].tolerations)
    if taint is not None:
        return RefusalRule.TAINT, f"taint {taint}"
    if runs_windows(node.labels) and not any(needs_windows(signature.requirements) for signature in signatures):
        return RefusalRule.SYSTEM, NOT_FOR_WINDOWS
    missed = [_missed_label(node, signature.requirements) for signature in signatures]
    if all(missed):
        return RefusalRule.LABEL, f"requires {messages.listing(dict.fromkeys(missed), 'or')}"
    kept_off = (signature for signature, label in zip(signatures, missed, strict=True) if not label)
    places = dict.fromkeys(place for s in kept_off for reach in s.volumes if (place := _missed(node, reach)))
    return RefusalRule.VOLUME, f"its volumes require {messages.listing(places, 'or')}"


def _missed_label(node: StateNode, requirements: Requirements) -> str:
    """The first requirement that a node misses; its name only if it has all labels, as it is rarely what to change."""
    return _missed(node, requirements.without(HOSTNAME)) or _missed(node, requirements)


def _missed(node: StateNode, requirements: Requirements) -> str:
    """The first requirement that a node's labels miss, as text; empty if they miss none."""
    alone = ((key, allowed, Requirements(((key, allowed),))) for key, allowed in requirements.items())
    return next((f"{key} {allowed}" for key, allowed, rule in alone if not labels_satisfy(node.labels, rule)), "")
