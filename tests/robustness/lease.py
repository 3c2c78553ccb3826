"""A lease of the virtual cluster, and who competes for it, by the rules of `karpool.kube.election`."""

from dataclasses import dataclass
from typing import Final

from tests.robustness.recorder import HistoryRecorder

from karpool.kube.election import LeaseTimes

TIMES: Final = LeaseTimes()


class VirtualLease:
    """The lease as the server has it; every write gives it another version."""

    def __init__(self, recorder: HistoryRecorder) -> None:
        self._recorder = recorder
        self.holder = ""
        self.version = 0

    def write(self, holder: str) -> None:
        self.version += 1
        if holder != self.holder:
            self.holder = holder
            spec = {"holderIdentity": holder}
            self._recorder.note("Lease", "karpool/karpool", {"metadata": {"name": "karpool"}, "spec": spec})


@dataclass
class Elector:
    """One competitor. It counts from when it sent its last renewal; others from when they saw the lease change."""

    lease: VirtualLease
    identity: str
    leads_until: float = -1.0
    seen: int = -1
    seen_at: float = 0.0

    def leading(self, now: float) -> bool:
        return now < self.leads_until

    def try_to_lead(self, now: float, *, answered: bool) -> None:
        """Read the lease, and write it if that is allowed; without an answer nobody here knows that it was written."""
        lease = self.lease
        if lease.version != self.seen:
            self.seen, self.seen_at = lease.version, now
        if lease.holder not in ("", self.identity) and now - self.seen_at < TIMES.duration:
            self.leads_until = -1.0
            return
        lease.write(self.identity)
        if answered:
            self.seen, self.seen_at = lease.version, now
            self.leads_until = now + TIMES.renew_deadline

    def release(self) -> None:
        """Give the lease up, as a process does that is asked to stop."""
        self.leads_until = -1.0
        if self.lease.holder == self.identity:
            self.lease.write("")
