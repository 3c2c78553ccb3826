"""Who may read the console's pages from a browser, and what a browser may do with them.

A page on the loopback interface has no password: any web site that somebody visits could try to read it, by a name of
its own that leads to 127.0.0.1, or by a request from its page. So names in `Host` and origins of requests are checked.
"""

from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from karpool.observability.serving import Address, Handler

_DIRECTIVES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
HEADERS: Final = {
    "Content-Security-Policy": "; ".join(_DIRECTIVES),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def checked(handler: Handler, address: Address) -> Handler:
    """A handler that answers only requests of its own pages; `address`: where it is served."""

    async def handle(request: web.Request) -> web.StreamResponse:
        problem = why_refused(request, address)
        if problem is not None:
            return web.Response(status=403, text=f"{problem}\n", headers=HEADERS)
        return await handler(request)

    return handle


def why_refused(request: web.Request, address: Address) -> str | None:
    """What is wrong with who asks; None if nothing is."""
    host = request.headers.get("Host", "")
    if address.loopback and _name(host) not in {*_LOCAL_NAMES, address.host}:
        return "this page is served as localhost only, and was asked for by another name"
    origin = request.headers.get("Origin")
    if origin is not None and _netloc(origin) != host:
        return "this page answers no requests of other pages"
    site = request.headers.get("Sec-Fetch-Site", "none")
    opened = request.headers.get("Sec-Fetch-Mode") == "navigate" and request.headers.get("Sec-Fetch-Dest") == "document"
    if site not in ("none", "same-origin") and not opened:
        return "this page answers no requests of other pages"
    return None


def _netloc(origin: str) -> str | None:
    """Name and port of an origin; None if it cannot be read."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name in a `Host`, without its port; empty if it cannot be read."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
