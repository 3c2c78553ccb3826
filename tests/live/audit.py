"""The requests in the audit log of the API server, and what the rules of roles allow."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}
Json = dict[str, Any]


class Right(NamedTuple):
    """One verb on one resource, perhaps in one namespace or on one name only."""

    verb: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


class AuditedRequest(NamedTuple):
    """A request, and the status of its answer."""

    verb: str
    resource: str
    namespace: str
    name: str
    status: int

    def needs(self, right: Right) -> bool:
        """Whether it is this right that allows the request."""
        return (
            (self.verb, self.resource) == (right.verb, right.resource)
            and right.namespace in ("", self.namespace)
            and right.name in ("", self.name)
        )


def flags(folder: Path) -> list[str]:
    """Flags of an API server that writes down all requests."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"]


def requests_by(user: str, folder: Path, since: int = 0) -> Iterator[AuditedRequest]:
    """The requests of a user, after so many bytes of the log."""
    with (folder / "audit.log").open("rb") as log:
        log.seek(since)
        for line in log:
            entry = json.loads(line) if line.endswith(b"\n") else {}
            if entry.get("user", {}).get("username") == user and "objectRef" in entry:
                yield _request(entry)


def _request(entry: Json) -> AuditedRequest:
    about = entry["objectRef"]
    resource = _resource(about.get("apiGroup", ""), about["resource"], about.get("subresource", ""))
    status = entry.get("responseStatus", {}).get("code", 0)
    return AuditedRequest(entry["verb"], resource, about.get("namespace", ""), about.get("name", ""), status)


def rights(documents: Iterable[Json]) -> set[Right]:
    """Everything that the roles among these manifests allow."""
    roles = [document for document in documents if document["kind"] in ("ClusterRole", "Role")]
    return {right for role in roles for rule in role["rules"] for right in _of_rule(rule, role["metadata"])}


def _of_rule(rule: Json, metadata: Json) -> Iterator[Right]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            plural, _, subresource = resource.partition("/")
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames", [""]):
                    yield Right(verb, _resource(group, plural, subresource), metadata.get("namespace", ""), name)


def _resource(group: str, plural: str, subresource: str) -> str:
    whole = f"{plural}.{group}" if group else plural
    return f"{whole}/{subresource}" if subresource else whole
