"""The cluster that a plan ends with, as a question of its own, so that one can go on from there."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec.structs import replace as changed

from karpool.cluster.pod_table import NOWHERE
from karpool.disruption.context import DecisionContext
from karpool.disruption.what_if.question import Question
from karpool.model.pod import Pod


def reached(question: Question, context: DecisionContext) -> Question:
    """The question as the steps of a plan leave it in a context; pods that wait or are leaving still do."""
    nodes = context.snapshot.nodes
    states = [nodes.get(row) for _, row in sorted(nodes.rows.items())]
    there = question.with_objects(
        nodes=[state.node for state in states if state.node is not None],
        node_claims=[state.claim for state in states if state.claim is not None],
        pods=_pods(context),
    )
    return replace(there, catalog=context.catalog)


def _pods(context: DecisionContext) -> Iterator[Pod]:
    """Pods where the steps have put them; those that stand for headroom are made anew by whoever wants them."""
    pods, nodes = context.snapshot.pods, context.snapshot.nodes
    for row, pod in enumerate(pods.objects):
        if pod is None or pod.is_headroom:
            continue
        place = int(pods.node_of[row])
        if place == NOWHERE or context.expected(pod) or nodes.get(place).name == pod.spec.node_name:
            yield pod
        else:
            yield changed(pod, spec=changed(pod.spec, node_name=nodes.get(place).name))
