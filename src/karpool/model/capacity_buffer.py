"""CapacityBuffers: how much room a cluster keeps free, as a number of pods of some template."""

from karpool.model.pod import Amounts
from karpool.wire.objects import Condition, Object, Wire


class TemplateRef(Wire):
    """A PodTemplate of the buffer's namespace."""

    name: str


class ScalableRef(Wire):
    """A workload of the buffer's namespace whose pods the buffer has room for."""

    kind: str
    name: str
    api_group: str = ""


class CapacityBufferSpec(Wire):
    """Which pods there is to be room for, and for how many: a number, a share of a workload, or what limits hold."""

    provisioning_strategy: str = ""
    pod_template_ref: TemplateRef | None = None
    scalable_ref: ScalableRef | None = None
    replicas: int | None = None
    percentage: int | None = None
    limits: Amounts = {}


class CapacityBufferStatus(Wire):
    replicas: int | None = None
    pod_template_ref: TemplateRef | None = None
    pod_template_generation: int | None = None
    provisioning_strategy: str = ""
    conditions: tuple[Condition, ...] = ()


class CapacityBuffer(Object):
    spec: CapacityBufferSpec = CapacityBufferSpec()
    status: CapacityBufferStatus = CapacityBufferStatus()
