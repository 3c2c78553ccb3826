"""Where pods of commands that are under way are going; a new session does not know, and has the engine guess."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from karpool.controller.store import ClusterStore
from karpool.disruption.command import Command
from karpool.execution.actions import Action, CreateClaim


class _Move(NamedTuple):
    source: str
    target: str


class Destinations:
    """The moves of the commands that this session has started."""

    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._moves: dict[str, _Move] = {}

    def started(self, command: Command, actions: Sequence[Action]) -> None:
        """Note where a command moves its pods; its actions tell the names of its replacements."""
        self._forget()
        claims = [action.claim.name for action in actions if isinstance(action, CreateClaim)]
        for move in command.moves:
            if move.source is None or move.headroom:
                continue
            if isinstance(move.target, str):
                self._moves[move.pod] = _Move(move.source, move.target)
            elif move.target < len(claims):  # what pools launch later has no name yet
                self._moves[move.pod] = _Move(move.source, claims[move.target])

    def renamed(self, command: Command) -> Command:
        """A command whose pods go to nodes by the names that these have now, if they had only NodeClaims before."""
        moves = tuple(
            replace(move, target=self._node(move.target)) if isinstance(move.target, str) else move
            for move in command.moves
        )
        return replace(command, moves=moves)

    def by_pod(self) -> dict[str, str]:
        """By key of a pod: the name of the node that it is going to; forgotten when the node that it leaves is gone."""
        self._forget()
        return {pod: self._node(move.target) for pod, move in self._moves.items()}

    def _forget(self) -> None:
        self._moves = {pod: move for pod, move in self._moves.items() if move.source in self._store.nodes}

    def _node(self, target: str) -> str:
        claim = self._store.claims.get(target)
        return target if claim is None else claim.status.node_name or target
