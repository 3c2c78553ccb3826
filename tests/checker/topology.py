"""Rules between a pod and other pods: spread, affinity, anti-affinity."""

from collections.abc import Mapping, Sequence

from karpool.model.labels import HOSTNAME
from karpool.model.pod import Pod
from karpool.model.scheduling import PodAffinity, PodAffinityTerm, SpreadConstraint
from karpool.model.selectors import LabelSelector, SelectorExpression
from tests.checker.facts import BoundPod, Machine, Option, State, expression_holds
from tests.checker.nodes import label_problem, taint_problem


def spread_problem(pod: Pod, candidate: Machine, state: State, *, cautious: bool) -> str | None:
    """The spread constraint that the pod would break; only those that forbid scheduling count."""
    hard = [c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule"]
    for constraint in hard:
        key = constraint.topology_key
        here = candidate.domains(key)
        if len(here) != 1:
            return f"spread over {key}, which is {'undecided' if here else 'missing'} here"
        counts = _counts(pod, constraint, hard, candidate, state)
        if cautious:
            counts = {**dict.fromkeys(_offered(pod, constraint, state), 0), **counts}
        (domain,) = here
        fewest = min(counts.values(), default=0)
        if len(counts) < (constraint.min_domains or 1):
            fewest = 0
        selects = _spread_selects(pod, constraint, pod)
        skew = counts.get(domain, 0) + selects - fewest
        if skew > constraint.max_skew:
            return f"spread over {key}: {skew} more in {domain} than elsewhere, {constraint.max_skew} allowed"
    return None


def _counts(
    pod: Pod, constraint: SpreadConstraint, hard: Sequence[SpreadConstraint], candidate: Machine, state: State
) -> dict[str, int]:
    """Matching pods in each domain that has a node which counts."""
    machines = {**state.machines, candidate.name: candidate}
    counting = {
        name
        for name, m in machines.items()
        if _counts_for(pod, constraint, m) and all(m.domains(c.topology_key) for c in hard)
    }
    there = [name for name in sorted(counting) if not machines[name].leaving and not machines[name].expected]
    counts = {_only(machines[name], constraint.topology_key): 0 for name in there}
    for bound in _staying(state):
        if bound.machine.name in counting and _spread_selects(pod, constraint, bound.pod):
            domain = _only(bound.machine, constraint.topology_key)
            counts[domain] = counts.get(domain, 0) + 1
    return {domain: count for domain, count in counts.items() if domain}


def _only(machine: Machine, key: str) -> str:
    domains = machine.domains(key)
    return next(iter(domains)) if len(domains) == 1 else ""


def _counts_for(pod: Pod, constraint: SpreadConstraint, machine: Machine) -> bool:
    """Whether the constraint's policies let the machine count."""
    if constraint.node_taints_policy == "Honor" and taint_problem(pod, machine.taints):
        return False
    if constraint.node_affinity_policy == "Ignore":
        return True
    return all(label_problem(pod, option, machine.name) is None for option in machine.options)


def _offered(pod: Pod, constraint: SpreadConstraint, state: State) -> set[str]:
    """Domains that exist only as long as a new machine could be opened in them; new hosts always can."""
    key = constraint.topology_key
    if key == HOSTNAME:
        return {"a new host"}
    return {
        option.labels[key]
        for template in state.templates
        if constraint.node_taints_policy == "Ignore" or taint_problem(pod, template.taints) is None
        for option in template.options
        if key in option.labels and (constraint.node_affinity_policy == "Ignore" or _allows_value(pod, key, option))
    }


def _allows_value(pod: Pod, key: str, option: Option) -> bool:
    """Whether what the pod says of this one label permits the option's value."""
    if pod.spec.node_selector.get(key, option.labels[key]) != option.labels[key]:
        return False
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    if affinity is None or affinity.required is None:
        return True
    return any(
        all(expression_holds(e, option.labels) for e in term.match_expressions if e.key == key)
        for term in affinity.required.node_selector_terms
    )


def _spread_selects(owner: Pod, constraint: SpreadConstraint, other: Pod) -> bool:
    if owner.metadata.namespace != other.metadata.namespace or constraint.label_selector is None:
        return False
    labels = owner.metadata.labels
    same = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    theirs = other.metadata.labels
    return constraint.label_selector.matches(theirs) and all(theirs.get(key) == value for key, value in same.items())


def affinity_problem(pod: Pod, candidate: Machine, state: State, *, cautious: bool) -> str | None:
    """The required affinity that nothing near fulfils.

    As kube-scheduler counts: a pod is a friend if it fits every term, and the first of a group of friends may start
    anywhere, as long as there is no friend in the whole cluster.
    """
    terms = _terms(pod.spec.affinity.pod_affinity if pod.spec.affinity else None)
    friends = [bound for bound in _staying(state) if all(_selects(term, pod, bound.pod, state) for term in terms)]
    for term in terms:
        if not candidate.domains(term.topology_key):
            return f"affinity over {term.topology_key}, which is missing here"
    if not friends and all(_selects(term, pod, pod, state) for term in terms):
        return None
    for term in terms:
        here = candidate.domains(term.topology_key)
        near = here <= {_only(bound.machine, term.topology_key) for bound in friends}
        shared = not cautious and any(bound.machine.name == candidate.name for bound in friends)
        if not near and not shared:
            return f"affinity: no pod that matches within {term.topology_key} {'/'.join(sorted(here))}"
    return None


def anti_affinity_problem(pod: Pod, candidate: Machine, state: State) -> str | None:
    """A pod that this one must stay away from, or that must stay away from this one."""
    for bound in _staying(state):
        for owner, other in ((pod, bound.pod), (bound.pod, pod)):
            for term in _terms(owner.spec.affinity.pod_anti_affinity if owner.spec.affinity else None):
                meet = candidate.domains(term.topology_key) & bound.machine.domains(term.topology_key)
                if meet and _selects(term, owner, other, state):
                    where = f"{term.topology_key} {'/'.join(sorted(meet))}"
                    return f"anti-affinity of {owner.key} to {other.key} within {where}"
    return None


def _staying(state: State) -> list[BoundPod]:
    """Pods that are being deleted are neighbours no more."""
    return [bound for bound in state.bound_pods if not bound.pod.terminating]


def _terms(affinity: PodAffinity | None) -> tuple[PodAffinityTerm, ...]:
    return affinity.required if affinity else ()


def _selects(term: PodAffinityTerm, owner: Pod, other: Pod, state: State) -> bool:
    """Whether a term of the owner is about the other pod."""
    if not _in_namespaces(term, owner, other.metadata.namespace, state.namespaces) or term.label_selector is None:
        return False
    labels = owner.metadata.labels
    same = [SelectorExpression(key=k, operator="In", values=(labels[k],)) for k in term.match_label_keys if k in labels]
    differs = [
        SelectorExpression(key=k, operator="NotIn", values=(labels[k],))
        for k in term.mismatch_label_keys
        if k in labels
    ]
    extra = LabelSelector(match_expressions=(*same, *differs))
    return term.label_selector.matches(other.metadata.labels) and extra.matches(other.metadata.labels)


def _in_namespaces(term: PodAffinityTerm, owner: Pod, namespace: str, known: Mapping[str, Mapping[str, str]]) -> bool:
    if not term.namespaces and term.namespace_selector is None:
        return namespace == owner.metadata.namespace
    if namespace in term.namespaces:
        return True
    return term.namespace_selector is not None and term.namespace_selector.matches(known.get(namespace, {}))
