"""Claims on devices as users meet them: left alone unless an option says otherwise."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from karpool.cli.main import cli

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: {name}
  labels: {{karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: c-4x-amd64-linux,
    karpenter.sh/registered: "true",
    karpenter.sh/initialized: "true", karpenter.sh/capacity-type: on-demand, kubernetes.io/hostname: {name},
    topology.kubernetes.io/zone: test-zone-a, kubernetes.io/arch: amd64, kubernetes.io/os: linux}}
spec: {{providerID: "kwok://{name}"}}
status:
  allocatable: {{cpu: "4", memory: 8Gi, pods: "64"}}
  conditions: [{{type: Ready, status: "True"}}]
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{name: {name}, labels: {{karpenter.sh/nodepool: default}}}}
spec: {{nodeClassRef: {{group: g, kind: k, name: n}}, requirements: []}}
status:
  providerID: "kwok://{name}"
  nodeName: {name}
  conditions: [{{type: Initialized, status: "True", lastTransitionTime: "2026-01-01T00:00:00Z"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: {name}-gpus}}
spec:
  driver: gpu.example.com
  nodeName: {name}
  pool: {{name: {name}, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: gpu-0, attributes: {{model: {{string: a100}}}}}}]
"""
REST = """
apiVersion: v1
kind: Pod
metadata:
  name: x
  namespace: default
  ownerReferences: [{kind: ReplicaSet, name: x, apiVersion: apps/v1, controller: true}]
spec:
  nodeName: a
  containers: [{name: c, resources: {requests: {cpu: "1"}}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
status: {phase: Running, resourceClaimStatuses: [{name: gpu, resourceClaimName: x-gpu}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: x-gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
status:
  allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: a, device: gpu-0}]},
    nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}
  reservedFor: [{resource: pods, name: x, uid: ""}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "a100"'}}]}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template: {spec: {nodeClassRef: {group: g, kind: k, name: n}, requirements: []}}
  disruption: {consolidateAfter: 0s, budgets: [{nodes: "100%"}]}
  limits: {cpu: "0"}
---
apiVersion: v1
kind: Pod
metadata: {name: y, namespace: default, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec: {nodeName: b, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
status: {phase: Running}
"""


@pytest.mark.parametrize(("option", "moved"), [((), {}), (("--ignore-dra-requests", "false"), {"default/x": "b"})])
def test_a_pod_with_claims_moves_only_if_claims_are_looked_at(
    tmp_path: Path, option: tuple[str, ...], moved: dict[str, str]
) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text("---".join([*(NODE.format(name=name) for name in "ab"), REST]))
    common = ("-f", str(file), "--catalog", "kwok", "--effort", "0", "--at", "2026-11-15T12:00:00Z", *option)
    planned = CliRunner().invoke(cli, ["plan", *common, "--output", "json"])
    assert planned.exit_code == 0, planned.stderr
    commands = json.loads(planned.stdout)["commands"]
    assert {place["pod"]: place["to"] for command in commands for place in command["placements"]} == moved
    explained = CliRunner().invoke(cli, ["explain", "a", *common])
    assert explained.exit_code == 0, explained.stderr
    assert ("--ignore-dra-requests" in explained.stdout) is not bool(moved)
