"""NodePools that keep every rule, and NodePools that break one: for our own rules and for those of the API server."""

from typing import Any

CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
TEMPLATE = "spec.template.spec"
DISRUPTION = "spec.disruption"


def pool_manifest(
    *,
    claim: dict[str, Any] | None = None,
    disruption: dict[str, Any] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    template = {
        "metadata": {"labels": labels or {}},
        "spec": {"nodeClassRef": CLASS, "requirements": [], **(claim or {})},
    }
    written = {"template": template, "disruption": disruption or {}, **spec}
    metadata = {"name": "p", "annotations": annotations or {}}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": metadata, "spec": written}


def wanting(operator: str, *values: str, key: str = "k", **more: Any) -> dict[str, Any]:
    return {"claim": {"requirements": [{"key": key, "operator": operator, "values": list(values), **more}]}}


def budget(**fields: Any) -> dict[str, Any]:
    return {"disruption": {"budgets": [fields]}}


ALLOWED: list[dict[str, Any]] = [
    {"weight": 1},
    {"weight": 100},
    {"replicas": 0, "limits": {"nodes": 5}},
    {"disruption": {"consolidateAfter": "Never", "consolidationPolicy": "Balanced"}},
    {"disruption": {"consolidateAfter": "1h30m10s", "consolidationGracePeriod": "10m"}},
    {"disruption": {"budgets": []}},
    budget(nodes="0", reasons=["Empty", "Drifted", "Underutilized"]),
    budget(nodes="100%", schedule="@daily", duration="8h0m0s"),
    budget(nodes="3", schedule="0 9 * * mon-fri", duration="90m"),
    {"claim": {"expireAfter": "Never", "terminationGracePeriod": "30m"}},
    wanting("In", "spot", "on-demand", key="karpenter.sh/capacity-type", minValues=2),
    wanting("Gte", "0", key="karpenter.k8s.aws/instance-cpu"),
    wanting("NotIn", "a"),
    wanting("Exists", minValues=50),
    wanting("NotIn", "spot", key="karpenter.sh/capacity-type", minValues=2),
    wanting("Exists", key="karpenter.sh/capacity-type", minValues=3),
    wanting("In", "cr-1", key="karpenter.sh/reservation-id"),
    wanting("In", "", key="example.com/Team_1.x"),
    {"labels": {"example.com/team": "a", "karpenter.sh/capacity-type": "spot", "karpenter.sh.example.com/x": ""}},
    {"limits": {"cpu": "1.5", "memory": "800Gi", "nodes": 10, "example.com/gpu": "2e3"}},
    {
        "claim": {
            "taints": [{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoExecute"}],
            "startupTaints": [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}],
        }
    },
    {"annotations": {"karpool.sh/balanced-k": "1.5", "karpool.sh/minimum-savings": "5%"}},
    {"annotations": {"karpool.sh/minimum-savings": "0.05", "karpool.sh/budgets": '[{"nodes": "5"}]'}},
]

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"weight": 0}, "spec.weight", "0 is out of range; write 1 to 100, or leave it out"),
    ({"weight": 101}, "spec.weight", "101 is out of range; write 1 to 100, or leave it out"),
    ({"weight": "50"}, "spec.weight", "expected a whole number, got text"),
    ({"replicas": -1}, "spec.replicas", "-1 is negative; write 0 or more"),
    ({"replicas": 1, "weight": 5}, "spec.weight", "is not allowed together with replicas; remove one of the two"),
    (
        {"replicas": 1, "limits": {"cpu": 5}},
        "spec.limits.cpu",
        "is not allowed together with replicas; a static pool can only limit nodes",
    ),
    ({"limits": {"cpu": "-5"}}, "spec.limits.cpu", "'-5' is negative; write zero or more"),
    ({"limits": {"cpu": -5}}, "spec.limits.cpu", "'-5' is negative; write zero or more"),
    (
        {"limits": {"cpu": "5x"}},
        "spec.limits.cpu",
        "'5x' is not a quantity; write a number with an optional suffix, such as 500m, 1.5 or 2Gi",
    ),
    (
        wanting("Near", "a"),
        f"{TEMPLATE}.requirements[0].operator",
        "'Near' is not an operator; use one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte",
    ),
    (wanting("In"), f"{TEMPLATE}.requirements[0].values", "In needs at least one value"),
    (
        wanting("Gt", "1", "2"),
        f"{TEMPLATE}.requirements[0].values",
        "Gt needs exactly one value, a whole number of 0 or more; 2 are given",
    ),
    (
        wanting("Lte", "-1"),
        f"{TEMPLATE}.requirements[0].values[0]",
        "Lte needs a whole number of 0 or more, not '-1'",
    ),
    (
        wanting("In", "a", "b", minValues=3),
        f"{TEMPLATE}.requirements[0].minValues",
        "3 is more than the number of values (2); lower it or list more values",
    ),
    (wanting("Exists", minValues=0), f"{TEMPLATE}.requirements[0].minValues", "0 is out of range; write 1 to 50"),
    (wanting("Exists", minValues=51), f"{TEMPLATE}.requirements[0].minValues", "51 is out of range; write 1 to 50"),
    (wanting("Exists", key=""), f"{TEMPLATE}.requirements[0].key", "is empty; name a label key"),
    (
        {"claim": {"requirements": [{"key": f"k{n}", "operator": "Exists"} for n in range(101)]}},
        f"{TEMPLATE}.requirements",
        "101 requirements are too many; at most 100 are allowed",
    ),
    (
        {"claim": {"requirements": [{"key": "k"}]}},
        f"{TEMPLATE}.requirements[0].operator",
        "is missing; it is required here",
    ),
    (
        {"claim": {"taints": [{"key": "k", "effect": "Never"}]}},
        f"{TEMPLATE}.taints[0].effect",
        "'Never' is not allowed; use one of NoSchedule, PreferNoSchedule, NoExecute",
    ),
    (
        {"claim": {"expireAfter": "1.5h"}},
        f"{TEMPLATE}.expireAfter",
        "'1.5h' is not allowed; write whole h, m and s such as 30s or 1h30m, or Never",
    ),
    (
        {"claim": {"expireAfter": "9999999h"}},
        f"{TEMPLATE}.expireAfter",
        "'9999999h' is longer than any duration may be (about 292 years)",
    ),
    (
        {"claim": {"terminationGracePeriod": "Never"}},
        f"{TEMPLATE}.terminationGracePeriod",
        "Never is not allowed here; write a duration such as 30m, or leave the field out",
    ),
    (
        {"disruption": {"consolidateAfter": "5x"}},
        f"{DISRUPTION}.consolidateAfter",
        "'5x' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidateAfter": "-5s"}},
        f"{DISRUPTION}.consolidateAfter",
        "'-5s' is not allowed; write whole h, m and s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidateAfter": 30}},
        f"{DISRUPTION}.consolidateAfter",
        "expected a duration such as 30s, 1h30m or Never",
    ),
    (
        {"disruption": {"consolidationGracePeriod": "soon"}},
        f"{DISRUPTION}.consolidationGracePeriod",
        "'soon' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"disruption": {"consolidationPolicy": "whenEmpty"}},
        f"{DISRUPTION}.consolidationPolicy",
        "'whenEmpty' is not a policy; use one of WhenEmpty, WhenEmptyOrUnderutilized, Balanced",
    ),
    (
        budget(nodes="120%"),
        f"{DISRUPTION}.budgets[0].nodes",
        "'120%' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
    (
        budget(nodes=-1),
        f"{DISRUPTION}.budgets[0].nodes",
        "'-1' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
    (
        budget(reasons=["Bored"]),
        f"{DISRUPTION}.budgets[0].reasons[0]",
        "'Bored' is not a reason; use one of Underutilized, Empty, Drifted, Unhealthy",
    ),
    (
        budget(schedule="@daily"),
        f"{DISRUPTION}.budgets[0].duration",
        "is missing; a schedule needs a duration such as 8h",
    ),
    (
        budget(duration="8h"),
        f"{DISRUPTION}.budgets[0].schedule",
        "is missing; a duration needs a schedule such as '0 9 * * mon-fri'",
    ),
    (
        budget(schedule="now", duration="8h"),
        f"{DISRUPTION}.budgets[0].schedule",
        "'now' is not a schedule; write five cron fields, or @daily and the like",
    ),
    (
        budget(schedule="@daily", duration="30s"),
        f"{DISRUPTION}.budgets[0].duration",
        "'30s' is not allowed; write whole hours and minutes such as 8h or 1h30m",
    ),
    (
        budget(reasons=["Empty"] * 51),
        f"{DISRUPTION}.budgets[0].reasons",
        "51 reasons are too many; at most 50 are allowed",
    ),
    (
        {"disruption": {"budgets": [{"nodes": "1"}] * 51}},
        f"{DISRUPTION}.budgets",
        "51 budgets are too many; at most 50 are allowed",
    ),
    (
        {"annotations": {"karpool.sh/consolidation-grace-period": "5x"}},
        "metadata.annotations[karpool.sh/consolidation-grace-period]",
        "'5x' is not a duration; write numbers with units h, m, s such as 30s or 1h30m, or Never",
    ),
    (
        {"annotations": {"karpool.sh/balanced-k": "0"}},
        "metadata.annotations[karpool.sh/balanced-k]",
        "'0' is not allowed; write a number above 0 such as 2",
    ),
    (
        {"annotations": {"karpool.sh/minimum-savings": "lots"}},
        "metadata.annotations[karpool.sh/minimum-savings]",
        "'lots' is not allowed; write dollars an hour such as 0.05, or a percentage of at most 100 such as 5%",
    ),
    (
        {"annotations": {"karpool.sh/budgets": '[{"nodes": "120%"}]'}},
        "metadata.annotations[karpool.sh/budgets][0].nodes",
        "'120%' is not a number of nodes; write 0 or more, or 0% to 100%",
    ),
]

CONTROLLER: list[tuple[dict[str, Any], str, str]] = [
    ({"claim": {"nodeClassRef": None}}, f"{TEMPLATE}.nodeClassRef", "NodeClassRef"),
    ({"claim": {"nodeClassRef": {**CLASS, "name": ""}}}, f"{TEMPLATE}.nodeClassRef.name", "NodeClassRef"),
    ({"claim": {"requirements": None}}, f"{TEMPLATE}.requirements", "MissingField"),
    (wanting("Exists", key="not a key"), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("Exists", key="UPPER.example/x"), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("Exists", key="x" * 64), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("Exists", key=f"{'x' * 254}/x"), f"{TEMPLATE}.requirements[0].key", "LabelKey"),
    (wanting("In", "x" * 64), f"{TEMPLATE}.requirements[0].values[0]", "LabelValue"),
    (wanting("Exists", key="karpenter.sh/nodepool"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("Exists", key="kubernetes.io/hostname"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("Exists", key="sub.karpenter.sh/x"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    (wanting("In", "free", key="karpenter.sh/capacity-type"), f"{TEMPLATE}.requirements[0].values", "CapacityType"),
    (
        wanting("In", "spot", "free", key="karpenter.sh/capacity-type", minValues=2),
        f"{TEMPLATE}.requirements[0].minValues",
        "MinValuesTooMany",
    ),
    (wanting("DoesNotExist", key="karpenter.sh/capacity-type"), f"{TEMPLATE}.requirements[0].values", "CapacityType"),
    (
        wanting("NotIn", "spot", "reserved", "on-demand", key="karpenter.sh/capacity-type"),
        f"{TEMPLATE}.requirements[0].values",
        "CapacityType",
    ),
    (
        wanting("Exists", key="karpenter.sh/capacity-type", minValues=4),
        f"{TEMPLATE}.requirements[0].minValues",
        "MinValuesTooMany",
    ),
    ({"labels": {"not a key": "x"}}, "spec.template.metadata.labels[not a key]", "LabelKey"),
    ({"labels": {f"{'x' * 254}/x": "x"}}, f"spec.template.metadata.labels[{'x' * 254}/x]", "LabelKey"),
    (
        {"labels": {"kubernetes.io/hostname": "x"}},
        "spec.template.metadata.labels[kubernetes.io/hostname]",
        "RestrictedLabel",
    ),
    (
        {"labels": {"karpenter.sh/nodepool": "x"}},
        "spec.template.metadata.labels[karpenter.sh/nodepool]",
        "RestrictedLabel",
    ),
    ({"labels": {"karpenter.sh/custom": "x"}}, "spec.template.metadata.labels[karpenter.sh/custom]", "RestrictedLabel"),
    ({"labels": {"k": "not a value"}}, "spec.template.metadata.labels[k]", "LabelValue"),
    ({"labels": {f"k{n}": "v" for n in range(101)}}, "spec.template.metadata.labels", "TooManyLabels"),
    (
        {
            "claim": {
                "taints": [{"key": "k", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "k", "value": "v", "effect": "NoSchedule"}],
            }
        },
        f"{TEMPLATE}.startupTaints[0]",
        "DuplicateTaint",
    ),
    (
        {"claim": {"taints": [{"key": "k", "effect": "NoExecute"}] * 2}},
        f"{TEMPLATE}.taints[1]",
        "DuplicateTaint",
    ),
    ({"claim": {"taints": [{"key": "", "effect": "NoExecute"}]}}, f"{TEMPLATE}.taints[0].key", "TaintKey"),
    ({"claim": {"taints": [{"key": "no key", "effect": "NoExecute"}]}}, f"{TEMPLATE}.taints[0].key", "TaintKey"),
    (
        {"claim": {"taints": [{"key": "k", "value": "no value", "effect": "NoExecute"}]}},
        f"{TEMPLATE}.taints[0].value",
        "LabelValue",
    ),
    (wanting("Exists", key="mykarpenter.sh/x"), f"{TEMPLATE}.requirements[0].key", "RestrictedLabel"),
    ({"claim": {"nodeClassRef": {**CLASS, "group": "x.io/v1"}}}, f"{TEMPLATE}.nodeClassRef.group", "NodeClassRef"),
    ({"limits": {"cpu": 1.5}}, "spec.limits.cpu", "Quantity"),
    (budget(nodes=5), f"{DISRUPTION}.budgets[0].nodes", "BudgetNodes"),
    (budget(nodes="5", reasons=["Empty", "Empty"]), f"{DISRUPTION}.budgets[0].reasons[1]", "BudgetReason"),
    (budget(schedule="0 0 31 2 *", duration="8h"), f"{DISRUPTION}.budgets[0].schedule", "Schedule"),
    (budget(schedule="61 * * * *", duration="8h"), f"{DISRUPTION}.budgets[0].schedule", "Schedule"),
]
