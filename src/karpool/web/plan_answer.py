"""A plan as the console draws it: the plan's document, the cluster that it begins with, and the nodes that it makes."""

from typing import Any, NamedTuple

from karpool.disruption.context import DecisionContext
from karpool.disruption.plan import Plan, Planner
from karpool.report.groups.group_words import drain_words
from karpool.report.plans.assemble import draw
from karpool.report.plans.document import DrawnNode, PlanDocument
from karpool.report.plans.plan_words import stop_words, summary_words, unpriced_words
from karpool.web.questions import Answer, DecidedCluster, Progress
from karpool.web.rows import NODE_FIELDS, POD_FIELDS, Row, Tables, node_row, pod_row

_MEBIBYTE = 2**20


class Planned(NamedTuple):
    """A plan that was made: for which cluster, and the context at its end."""

    cluster: DecidedCluster
    after: DecisionContext
    plan: Plan
    answer: Answer


def planned(cluster: DecidedCluster, progress: Progress) -> Planned:
    """The whole plan of now."""
    context = cluster.subject.context()
    today = cluster_rows(context)
    known = set(context.snapshot.nodes.rows)
    planner = Planner(context, progress, afresh=cluster.subject.context)
    plan = planner.plan(bound=True)
    new = {node.name: _size(node) for node in draw(planner.context) if node.name not in known}
    document = cluster.document(plan)
    words = {"words": _sentences(document), "unpriced": unpriced_words(document), "brakes": stop_words(document)}
    return Planned(cluster, planner.context, plan, {"plan": document, **words, "today": today, "newNodes": new})


def _sentences(document: PlanDocument) -> tuple[str, ...]:
    """What `karpool plan` says of a plan; where prices come from stands at the top of the page."""
    drains = (drain_words(document.drains),) if document.groups else ()
    return (*summary_words(document), *drains)


def cluster_rows(context: DecisionContext) -> dict[str, Any]:
    """All nodes and pods of a context, as rows; the numbers are good in this answer only."""
    tables = Tables()
    snapshot = context.snapshot
    nodes, pods = list[Row](), list[Row]()
    for number, row in enumerate(context.rows(), 1):
        nodes.append(node_row(number, snapshot.nodes.get(row), context.catalog, tables))
        for pod in snapshot.pods_on(row):
            pods.append(pod_row(len(pods) + 1, snapshot.pods.get(pod), number, tables))
    return {
        "nodeFields": NODE_FIELDS,
        "podFields": POD_FIELDS,
        "nodes": nodes,
        "pods": pods,
        **tables.since((0, 0)),
    }


def _size(node: DrawnNode) -> dict[str, Any]:
    """What a new node holds, and its daemons, of which no command speaks."""
    return {
        "cpu": node.cpu,
        "memory": node.memory / _MEBIBYTE,
        "zone": "",
        "daemons": [
            (pod.name, round(pod.cpu * node.cpu, 4), round(pod.memory * node.memory / _MEBIBYTE, 2))
            for pod in node.pods
            if pod.daemon
        ],
    }
