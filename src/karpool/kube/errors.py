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
    """A request that did not work: the HTTP status (0 without an answer), the API's reason, and what it was about."""

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
    """404: the object, or the whole kind, is not there."""


class ConflictError(ApiError):
    """409: the object changed meanwhile, is another one, or is there already."""

    @property
    def already_exists(self) -> bool:
        """Whether an object of that name was there already."""
        return self.reason == "AlreadyExists"


class GoneError(ApiError):
    """410: what a watch or a page was to go on from is no longer known."""


class TooManyRequestsError(ApiError):
    """429: asked to come back later, by the server's own limits or by a PodDisruptionBudget."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        about: str = "",
        retry_after: float | None = None,
        by_budget: bool = False,
    ) -> None:
        super().__init__(status, reason, message, about=about)
        self.retry_after = retry_after
        self.by_budget = by_budget


class ForbiddenError(ApiError):
    """403: this user may not do that."""


class UnauthorizedError(ApiError):
    """401: the server does not accept the credentials."""


class InvalidError(ApiError):
    """422: the object breaks a rule of the API."""


class ServerError(ApiError):
    """5xx: the server cannot answer now."""

    def __init__(
        self, status: int, reason: str, message: str, *, about: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(status, reason, message, about=about)
        self.retry_after = retry_after


class UnreachableError(ApiError):
    """No answer: a connection, a name or a certificate failed, or time ran out."""

    def __init__(self, message: str, *, about: str = "", sent: bool = True, lasting: bool = False) -> None:
        super().__init__(0, "Unreachable", message, about=about)
        self.sent = sent
        """Whether the server may have received the request."""
        self.lasting = lasting
        """Whether trying again is no use."""


class CredentialsError(ApiError):
    """The credentials cannot be had: a plugin failed, or a file is not there."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Credentials", message)


class UnreadableError(ApiError):
    """An answer that is not what an API server says."""

    def __init__(self, message: str, *, about: str = "") -> None:
        super().__init__(0, "Unreadable", message, about=about)


class NotLeadingError(ApiError):
    """A write that was not sent, because this process does not lead."""

    def __init__(self, *, about: str = "") -> None:
        super().__init__(0, "NotLeading", "not sent, because this replica does not lead", about=about)


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
}
_TOO_MANY: Final = 429


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct):
    """How an API server says what went wrong."""

    kind: str = ""
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def error_of(status: int, headers: Mapping[str, str], body: bytes | msgspec.Raw, about: str) -> ApiError:
    """The error that an answer, or an event of a watch, stands for; the body may be anything."""
    said = _read(body)
    status = status or said.code or _FIRST_SERVER_ERROR
    details = said.details or _Details()
    causes = details.causes or ()
    message = said.message or f"the server answered {status}"
    if status == _TOO_MANY:
        by_budget = any(cause.reason == "DisruptionBudget" for cause in causes)
        told = " ".join([message, *(cause.message for cause in causes if by_budget)])
        after = _retry_after(headers, details)
        return TooManyRequestsError(status, said.reason, told, about=about, retry_after=after, by_budget=by_budget)
    if status >= _FIRST_SERVER_ERROR:
        return ServerError(status, said.reason, message, about=about, retry_after=_retry_after(headers, details))
    return _BY_STATUS.get(status, ApiError)(status, said.reason, message, about=about)


def _read(body: bytes | msgspec.Raw) -> _Status:
    try:
        found = msgspec.json.decode(body, type=_Status)
    except UNDECODABLE:
        return _Status(message=bytes(body)[:_LONGEST_MESSAGE].decode(errors="replace"))
    return found if found.kind == "Status" else _Status()


def _retry_after(headers: Mapping[str, str], details: _Details) -> float | None:
    written = headers.get("Retry-After", "")
    if written.isdecimal():
        return float(written)
    return details.retry_after_seconds
