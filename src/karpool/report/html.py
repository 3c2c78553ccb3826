"""Self-contained HTML pages: style, script and data inside, no network.

Everything that came from the cluster is data: it travels as JSON in a script element that no browser executes, and the
page's script writes it as text only. A content security policy allows the page's own style and script by their hash.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib import resources
from string import Template
from typing import Any

import msgspec


def render_page(template: str, style: str, scripts: Sequence[str], data: dict[str, Any], **fields: str) -> str:
    """A page from assets of this package; `fields` are HTML that the template places, escaped by the caller."""
    css, script = _asset(style), "\n".join(map(_asset, scripts))
    policy = f"default-src 'none'; style-src {_csp_hash(css)}; script-src {_csp_hash(script)}; base-uri 'none'"
    return Template(_asset(template)).substitute(
        policy=policy, style=css, script=script, data=_script_json(data), **fields
    )


def about(cluster: str, prices: str) -> str:
    """Which cluster a page is about, and where its prices come from, for its head; what is not known is left out."""
    named = f'<b class="cluster-name">{escape(cluster)}</b>' if cluster else ""
    priced = f"<span>{escape(prices)}</span>" if prices else ""
    return named + priced


@cache
def _asset(name: str) -> str:
    return (resources.files("karpool.report") / "assets" / name).read_text(encoding="utf-8")


def _csp_hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _script_json(data: dict[str, Any]) -> str:
    """JSON that can neither end the script element it stands in nor open a comment there."""
    text = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
