"""Which Node belongs to which NodeClaim, whatever arrives first.

A node's claim is the one with its provider id, else the one whose `status.nodeName` is the node's name; of several, the
first by name. A launched claim without a node has a row of its own until its node appears. A node that still has the
unregistered taint has no row until its claim knows it: the claim alone represents the machine.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from karpool.cluster.nodes import StateNode
from karpool.model.labels import UNREGISTERED_TAINT
from karpool.model.node import Node
from karpool.model.nodepool import NodeClaim

_Index = dict[str, set[str]]


@dataclass(frozen=True, slots=True)
class PairingChange:
    """What one change of a Node or a NodeClaim does to the rows: which go, and which are new or changed."""

    gone: frozenset[str]
    states: tuple[StateNode, ...]


class Pairing:
    """Nodes and NodeClaims, and the pairs that they make now."""

    def __init__(self, nodes: Iterable[Node] = (), claims: Iterable[NodeClaim] = ()) -> None:
        self.nodes: dict[str, Node] = {}
        self.claims: dict[str, NodeClaim] = {}
        self._nodes_by_provider: _Index = {}
        self._claims_by_provider: _Index = {}
        self._claims_by_node: _Index = {}
        self._claim_rows: dict[str, str] = {}
        self._node_rows: set[str] = set()
        for node in nodes:
            self.nodes[node.name] = node
            _add(self._nodes_by_provider, node.spec.provider_id, node.name)
        for claim in claims:
            self.claims[claim.name] = claim
            self._index_claim(claim)

    def states(self) -> tuple[StateNode, ...]:
        """Every row: nodes, then claims without a node. Changes are told against the rows that this returned."""
        return self._settle(self.nodes, self.claims).states

    def claim_of(self, node: Node) -> NodeClaim | None:
        """The claim behind a node."""
        names = self._claims_by_provider.get(node.spec.provider_id) or self._claims_by_node.get(node.name)
        return self.claims[min(names)] if names else None

    def node_of(self, claim: NodeClaim) -> Node | None:
        """The node of a claim; of several, the first by name."""
        return next((self.nodes[name] for name in sorted(self._nodes_near(claim)) if self._pairs(name, claim)), None)

    # -- changes -------------------------------------------------------------------------------------------------

    def set_node(self, name: str, node: Node | None) -> PairingChange:
        """Take note of a node that is new, has changed, or is gone."""
        before = self.nodes.get(name)
        near = self._claims_near(name, before)
        if before is not None:
            _discard(self._nodes_by_provider, before.spec.provider_id, name)
        if node is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = node
            _add(self._nodes_by_provider, node.spec.provider_id, name)
        return self._settle((name,), near | self._claims_near(name, node))

    def set_claim(self, name: str, claim: NodeClaim | None) -> PairingChange:
        """Take note of a claim that is new, has changed, or is gone."""
        before = self.claims.get(name)
        if before is not None and claim is not None and _same_references(before, claim):
            self.claims[name] = claim
            return self._settle((), (name,)) if name in self._claim_rows else self._settle(self._nodes_near(claim), ())
        claims, nodes = {name}, set[str]()
        if before is not None:
            nodes |= self._nodes_near(before)
            claims |= self._rivals(before)
            self._unindex_claim(before)
        if claim is None:
            self.claims.pop(name, None)
        else:
            self.claims[name] = claim
            self._index_claim(claim)
            nodes |= self._nodes_near(claim)
            claims |= self._rivals(claim)
        for other in nodes:
            claims |= self._claims_near(other, self.nodes[other])
        return self._settle(nodes, claims)

    def _settle(self, nodes: Iterable[str], claims: Iterable[str]) -> PairingChange:
        """Work out the rows of some nodes and claims anew."""
        before, states = set[str](), list[StateNode]()
        for name in nodes:
            if name in self._node_rows:
                before.add(name)
            state = self._node_state(name)
            if state is None:
                self._node_rows.discard(name)
            else:
                self._node_rows.add(name)
                states.append(state)
        for name in claims:
            if name in self._claim_rows:
                before.add(self._claim_rows.pop(name))
            state = self._claim_state(name)
            if state is not None:
                self._claim_rows[name] = state.name
                states.append(state)
        return PairingChange(frozenset(before.difference(state.name for state in states)), tuple(states))

    # -- rows ----------------------------------------------------------------------------------------------------

    def _node_state(self, name: str) -> StateNode | None:
        node = self.nodes.get(name)
        if node is None:
            return None
        claim = self.claim_of(node)
        return None if claim is None and is_unregistered(node) else StateNode(node, claim)

    def _claim_state(self, name: str) -> StateNode | None:
        claim = self.claims.get(name)
        if claim is None or not claim.status.provider_id:
            return None
        if any(self._pairs(node, claim) for node in self._nodes_near(claim)):
            return None
        return StateNode(None, claim, self._row_name(claim))

    def _row_name(self, claim: NodeClaim) -> str:
        """A name for a claim without a node; a stale one may name a node that belongs to another claim by now."""
        promised = claim.status.node_name
        if promised and promised not in self.nodes and min(self._claims_by_node[promised]) == claim.name:
            return promised
        if self._node_state(claim.name) is None and not self._claims_by_node.get(claim.name, set()) - {claim.name}:
            return claim.name
        return f"{claim.name} (NodeClaim {claim.metadata.uid})"

    def _pairs(self, node: str, claim: NodeClaim) -> bool:
        paired = self.claim_of(self.nodes[node])
        return paired is not None and paired.name == claim.name

    # -- who may depend on whom ----------------------------------------------------------------------------------

    def _nodes_near(self, claim: NodeClaim) -> set[str]:
        near = set(self._nodes_by_provider.get(claim.status.provider_id, ()))
        if claim.status.node_name in self.nodes:
            near.add(claim.status.node_name)
        return near

    def _claims_near(self, name: str, node: Node | None) -> set[str]:
        near = set(self._claims_by_node.get(name, ()))
        if name in self.claims:
            near.add(name)
        if node is not None:
            near.update(self._claims_by_provider.get(node.spec.provider_id, ()))
        return near

    def _rivals(self, claim: NodeClaim) -> set[str]:
        status = claim.status
        named = {status.node_name} & self.claims.keys()
        by_provider = self._claims_by_provider.get(status.provider_id, set())
        return named | by_provider | self._claims_by_node.get(status.node_name, set())

    def _index_claim(self, claim: NodeClaim) -> None:
        _add(self._claims_by_provider, claim.status.provider_id, claim.name)
        _add(self._claims_by_node, claim.status.node_name, claim.name)

    def _unindex_claim(self, claim: NodeClaim) -> None:
        _discard(self._claims_by_provider, claim.status.provider_id, claim.name)
        _discard(self._claims_by_node, claim.status.node_name, claim.name)


def join(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> list[StateNode]:
    """Nodes with their claims, and launched claims that have no node yet."""
    return list(Pairing(nodes, claims).states())


def with_claims(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> Iterator[tuple[Node, NodeClaim | None]]:
    """Every node, and the claim behind it, as `Pairing.claim_of` has it."""
    by_provider, by_node = dict[str, NodeClaim](), dict[str, NodeClaim]()
    for claim in claims:
        for index, key in ((by_provider, claim.status.provider_id), (by_node, claim.status.node_name)):
            if key and (key not in index or claim.name < index[key].name):
                index[key] = claim
    for node in nodes:
        yield node, by_provider.get(node.spec.provider_id) or by_node.get(node.name)


def is_unregistered(node: Node) -> bool:
    """Whether a node waits for its claim."""
    return any(taint.key == UNREGISTERED_TAINT for taint in node.spec.taints)


def _same_references(old: NodeClaim, new: NodeClaim) -> bool:
    return old.status.provider_id == new.status.provider_id and old.status.node_name == new.status.node_name


def _add(index: _Index, key: str, name: str) -> None:
    if key:
        index.setdefault(key, set()).add(name)


def _discard(index: _Index, key: str, name: str) -> None:
    names = index.get(key)
    if names is not None:
        names.discard(name)
        if not names:
            del index[key]
