"""What an API server refuses in CapacityBuffers."""

from collections.abc import Iterator

from karpool.model.capacity_buffer import CapacityBuffer
from karpool.wire.problems import Flaw


def refused_buffer(buffer: CapacityBuffer) -> Iterator[Flaw]:
    spec = buffer.spec
    if spec.pod_template_ref is not None and spec.scalable_ref is not None:
        message = "is not allowed together with podTemplateRef; remove one of the two"
        yield Flaw("spec.scalableRef", "CapacityBuffer", message)
    if spec.pod_template_ref is not None and spec.replicas is None and not spec.limits:
        yield Flaw("spec", "CapacityBuffer", "a podTemplateRef needs replicas or limits, to say how much room to keep")
    for field, number in (("replicas", spec.replicas), ("percentage", spec.percentage)):
        if number is not None and number < 0:
            yield Flaw(f"spec.{field}", "CapacityBuffer", f"{number} is negative; write 0 or more")
