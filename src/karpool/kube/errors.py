"""What can go wrong with a request to an API server: a type for each case, and one line for a person."""

from collections.abc import Mapping
from typing import Final

import msgspec

from karpool.wire.problems import one_line

# What decoding raises for bytes that are not what they should be.
UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LONGEST_MESSAGE: Final = 400
_FIRST_SERVER_ERROR: Final = 500


class ApiError(Exception):
    """A request that failed: the HTTP status (0 without a response), the API's reason, and the request."""

    retry_after: float | None = None
    """How many seconds the server asks to wait."""

    def __init__(self, status: int, reason: str, message: str, *, about: str = "") -> None:
        self.status = status
        self.reason = reason
        self.message = one_line(message.strip())[:_LONGEST_MESSAGE]
        self.about = about
        super().__init__(status, reason, message, about)

    def __str__(self) -> str:
        code = f" ({self.status} {self.reason})".replace(" )", ")") if self.status else ""
        return f"{self.about}: {self.message}{code}" if self.about else f"{self.message}{code}"


class NotFoundError(ApiError):
    """404: there is no such object, or no such kind."""


class ConflictError(ApiError):
    """409: the object has changed, has another uid, or exists already."""

    @property
    def already_exists(self) -> bool:
        return self.reason == "AlreadyExists"


class GoneError(ApiError):
    """410: the resource version or page token has expired."""


class TooManyRequestsError(ApiError):
    """429: refused for now, by the server's rate limits or by a PodDisruptionBudget."""

    by_budget = False
    """Whether a PodDisruptionBudget refuses an eviction."""


class ForbiddenError(ApiError):
    """403: the user is not allowed to do that."""


class UnauthorizedError(ApiError):
    """401: the server does not accept the credentials."""


class InvalidError(ApiError):
    """422: the object breaks a rule of the API."""


class ServerError(ApiError):
    """5xx: the server fails."""


class UnreachableError(ApiError):
    """No response: a connection, a name or a certificate failed, or the request timed out."""

    def __init__(self, message: str, *, about: str = "", sent: bool = True, lasting: bool = False) -> None:
        super().__init__(0, "Unreachable", message, about=about)
        self.sent = sent
        """Whether the server may have received the request."""
        self.lasting = lasting
        """Whether a retry is useless."""


class CredentialsError(ApiError):
    """There are no credentials: a plugin failed, or a file cannot be read."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Credentials", message)


class UnreadableError(ApiError):
    """A response that is not that of an API server."""

    def __init__(self, message: str, *, about: str = "") -> None:
        super().__init__(0, "Unreadable", message, about=about)


class NotLeadingError(ApiError):
    """A write that was not sent, because this process is not the leader."""

    def __init__(self, *, about: str = "") -> None:
        super().__init__(0, "NotLeading", "not sent, because this replica does not lead", about=about)


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct):
    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def error_of(status: int, headers: Mapping[str, str], body: bytes | msgspec.Raw, about: str) -> ApiError:
    """The error in a response, or in an event of a watch; the body may be anything."""
    answer = _status(body)
    status = status or answer.code or _FIRST_SERVER_ERROR
    details = answer.details or _Details()
    causes = details.causes or ()
    message = answer.message or f"the server answered {status}"
    if by_budget := any(cause.reason == "DisruptionBudget" for cause in causes):
        message = " ".join([message, *(cause.message for cause in causes)])
    kind = ServerError if status >= _FIRST_SERVER_ERROR else _BY_STATUS.get(status, ApiError)
    error = kind(status, answer.reason, message, about=about)
    header = headers.get("Retry-After", "")
    error.retry_after = float(header) if header.isdecimal() else details.retry_after_seconds
    if isinstance(error, TooManyRequestsError):
        error.by_budget = by_budget
    return error


def _status(body: bytes | msgspec.Raw) -> _Status:
    try:
        status = msgspec.json.decode(body, type=_Status)
    except UNDECODABLE:
        return _Status(message=bytes(body)[:_LONGEST_MESSAGE].decode(errors="replace"))
    return status if status.kind == "Status" else _Status()
