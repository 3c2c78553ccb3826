"""Where notices go: a URL that is a secret, of which nothing but the host is ever shown."""

from dataclasses import dataclass, field
from typing import Final

from yarl import URL

from karpool.kube.proxies import is_local
from karpool.observability.notices import NoticeFormat
from karpool.wire.problems import InputError

_SLACK_HOSTS: Final = ("hooks.slack.com", "hooks.slack-gov.com")
_SLACK_PATH: Final = "/slack"


@dataclass(frozen=True, slots=True)
class WebhookAddress:
    """A receiver and its format. The path holds the secret of most receivers: it is in no text of this value."""

    url: URL = field(repr=False)
    form: NoticeFormat

    @property
    def host(self) -> str:
        return self.url.host or ""

    def __str__(self) -> str:
        return self.host

    @classmethod
    def read(cls, text: str, option: str, *, form: NoticeFormat | None, allow_http: bool = False) -> "WebhookAddress":
        """The address in a URL; an error names the option and what is wrong, and never the URL."""
        try:
            url = URL(text.strip())
            url.raw_path_qs.encode("ascii")
            port = url.port
        except ValueError:
            raise InputError.at(option, "is not a URL; write https://HOST/PATH") from None
        if url.scheme not in ("http", "https") or not url.host or port is None:
            raise InputError.at(option, "is not a URL of a web server; write https://HOST/PATH")
        if url.scheme == "http" and not allow_http and not is_local(url.host):
            why = f"sends to {url.host} without encryption; write https, or add --notify-allow-http"
            raise InputError.at(option, why)
        return cls(url, form or _detected(url))


def _detected(url: URL) -> NoticeFormat:
    """Slack's format for Slack, and for paths by which others say that they take it."""
    slack = url.host in _SLACK_HOSTS or url.path.rstrip("/").endswith(_SLACK_PATH)
    return NoticeFormat.SLACK if slack else NoticeFormat.JSON
