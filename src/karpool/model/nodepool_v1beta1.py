"""NodePools and NodeClaims of `karpenter.sh/v1beta1`, rewritten as `v1` would have them."""

from typing import Any, Final

from karpool.model.rules.pools import value_at

API_VERSION: Final = "karpenter.sh/v1beta1"
_POLICIES: Final = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
_AWS: Final = "karpenter.k8s.aws"


def upgraded_pool(written: Any) -> Any:
    """A v1beta1 NodePool in the words of v1; what does not look like one is left for the decoder to refuse."""
    spec = value_at(written, "spec")
    if not isinstance(spec, dict):
        return written
    disruption = spec.get("disruption")
    claim = value_at(spec, "template", "spec")
    changed = dict(spec)
    if isinstance(disruption, dict):
        changed["disruption"] = _upgraded_disruption(disruption)
    if isinstance(claim, dict):
        moved = {"expireAfter": expiry} if (expiry := value_at(disruption, "expireAfter")) is not None else {}
        changed["template"] = {**spec["template"], "spec": {**_upgraded_claim(claim), **moved}}
    return {**written, "spec": changed}


def upgraded_node_claim(written: Any) -> Any:
    spec = value_at(written, "spec")
    return {**written, "spec": _upgraded_claim(spec)} if isinstance(spec, dict) else written


def _upgraded_disruption(disruption: dict[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in disruption.items() if key != "expireAfter"}
    policy = changed.get("consolidationPolicy")
    if isinstance(policy, str):
        changed["consolidationPolicy"] = _POLICIES.get(policy, policy)
    return changed


def _upgraded_claim(spec: dict[str, Any]) -> dict[str, Any]:
    changed = {key: value for key, value in spec.items() if key != "kubelet"}
    reference = changed.get("nodeClassRef")
    if isinstance(reference, dict) and "group" not in reference:
        version = reference.get("apiVersion")
        group = version.partition("/")[0] if isinstance(version, str) else _AWS
        kept = {key: value for key, value in reference.items() if key != "apiVersion"}
        changed["nodeClassRef"] = {"group": group, "kind": "EC2NodeClass", **kept}
    return changed
