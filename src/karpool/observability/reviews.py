"""Who may read a page: the API server is asked about the token of a request, as controller-runtime's filter does.

A TokenReview says whose token it is, a SubjectAccessReview whether they may `get` the path, which a ClusterRole allows
with `nonResourceURLs`. Answers are kept for a minute. While the API server cannot be asked, those who were allowed a
short while ago still are, because that is when metrics are needed.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from aiohttp import web

from karpool.kube.api_objects import UserInfo
from karpool.kube.client import Client
from karpool.kube.errors import ApiError, ForbiddenError
from karpool.kube.resources import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS
from karpool.wire.problems import one_line

_log = structlog.get_logger()
KEPT_SECONDS: Final = 60.0
"""How long an answer of the API server counts."""
REFUSED_SECONDS: Final = 10.0
"""How long a refusal counts: a role that was just given should be noticed."""
OUTAGE_SECONDS: Final = 600.0
"""How long somebody who was allowed is, while the API server cannot be asked."""
_MOST_KEPT: Final = 256
_CONCURRENT: Final = 4
_MOST_WAITING: Final = 32
_ANSWER_SECONDS: Final = 5.0
_LOG_SECONDS: Final = 60.0
_HINT: Final = "apply the role that comes with the manifests in deploy/"


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """An answer to a request: 200 lets it pass, anything else is sent with the text."""

    status: int
    text: str = ""


ALLOWED: Final = ReviewAnswer(200)


@dataclass(frozen=True, slots=True)
class _Kept:
    verdict: ReviewAnswer
    at: float


class TokenReviews:
    """Asks the API server who sends a request, and whether they may; gives the refusal, or None."""

    def __init__(self, client: Client, clock: Callable[[], float] = time.monotonic) -> None:
        """The client is open, and may be that of a replica that does not lead: a review changes nothing."""
        self._client = client.ungated()
        self._clock = clock
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._slots = asyncio.Semaphore(_CONCURRENT)
        self._waiting = 0
        self._logs_again_at = 0.0

    async def __call__(self, request: web.Request) -> web.Response | None:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            return _refusal(ReviewAnswer(401, "a token is needed: Authorization: Bearer <token>"))
        verdict = await self._verdict(token.strip(), request.path, request.method.lower())
        return None if verdict is ALLOWED else _refusal(verdict)

    async def _verdict(self, token: str, path: str, verb: str) -> ReviewAnswer:
        # Tokens are secrets: only a hash is kept.
        key = hashlib.sha256(f"{verb} {path} {token}".encode(errors="replace")).digest()
        kept = self._kept.get(key)
        if kept is not None and self._clock() - kept.at < (
            KEPT_SECONDS if kept.verdict is ALLOWED else REFUSED_SECONDS
        ):
            return kept.verdict
        if self._waiting >= _MOST_WAITING:
            return ReviewAnswer(503, "too many tokens are being checked")
        self._waiting += 1
        try:
            async with self._slots, asyncio.timeout(_ANSWER_SECONDS):
                verdict = await self._reviewed(token, path, verb)
        except (ApiError, TimeoutError) as error:
            return self._in_an_outage(kept, error)
        finally:
            self._waiting -= 1
        self._keep(key, verdict)
        return verdict

    def _in_an_outage(self, kept: _Kept | None, error: Exception) -> ReviewAnswer:
        said = one_line(str(error)) or "no answer in time"
        if self._clock() >= self._logs_again_at:
            self._logs_again_at = self._clock() + _LOG_SECONDS
            _log.warning(
                "token not checked", error=said, **({"hint": _HINT} if isinstance(error, ForbiddenError) else {})
            )
        if kept is not None and kept.verdict is ALLOWED and self._clock() - kept.at < OUTAGE_SECONDS:
            return ALLOWED
        return ReviewAnswer(503, "the API server cannot be asked about the token")

    async def _reviewed(self, token: str, path: str, verb: str) -> ReviewAnswer:
        review = await self._client.create(TOKEN_REVIEWS, {"spec": {"token": token}})
        if not review.status.authenticated:
            return ReviewAnswer(401, "the token is not valid")
        user = review.status.user
        access = await self._client.create(SUBJECT_ACCESS_REVIEWS, {"spec": _access(user, path, verb)})
        if access.status.allowed and not access.status.denied:
            return ALLOWED
        return ReviewAnswer(403, f"{one_line(user.username)} may not {verb} {path}")

    def _keep(self, key: bytes, verdict: ReviewAnswer) -> None:
        self._kept[key] = _Kept(verdict, self._clock())
        self._kept.move_to_end(key)
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)


def _access(user: UserInfo, path: str, verb: str) -> dict[str, Any]:
    return {
        "user": user.username,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
        "nonResourceAttributes": {"path": path, "verb": verb},
    }


def _refusal(verdict: ReviewAnswer) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if verdict.status == web.HTTPUnauthorized.status_code else {}
    return web.Response(status=verdict.status, text=f"{verdict.text}\n", headers=headers)
