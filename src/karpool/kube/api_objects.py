"""Kinds that a controller needs for itself, such as Lease, Event and TokenReview; only fields in use."""

from datetime import UTC, datetime

from karpool.wire.objects import Object, Timestamp, Wire


class LeaseSpec(Wire):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0
    acquire_time: Timestamp | None = None
    renew_time: Timestamp | None = None


class Lease(Object):
    spec: LeaseSpec = LeaseSpec()


class ObjectReference(Wire):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class EventSource(Wire):
    component: str = ""


class Event(Object):
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""
    first_timestamp: Timestamp | None = None
    last_timestamp: Timestamp | None = None


class CustomResourceDefinition(Object):
    """A kind that was added to the API; only its metadata is read."""


class UserInfo(Wire):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class TokenReviewStatus(Wire):
    authenticated: bool = False
    user: UserInfo = UserInfo()


class TokenReview(Object):
    """Whose token it is; the answer is in the status of what is created."""

    status: TokenReviewStatus = TokenReviewStatus()


class SubjectAccessReviewStatus(Wire):
    allowed: bool = False
    denied: bool = False


class SubjectAccessReview(Object):
    """Whether somebody may do something; the answer is in the status of what is created."""

    status: SubjectAccessReviewStatus = SubjectAccessReviewStatus()


def micro_time(moment: datetime) -> str:
    """A time as a Lease wants it, with exactly six digits after the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
