"""The HTTP proxy for a server, as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say."""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from karpool.wire.problems import InputError

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def environment_proxy(server: str, environ: Mapping[str, str]) -> str:
    """The proxy for a server's address as HTTPS_PROXY, HTTP_PROXY and NO_PROXY say; empty: go there directly."""
    address = urlsplit(server)
    host = address.hostname or ""
    name = f"{address.scheme}_proxy"
    proxy = environ.get(name.upper()) or environ.get(name) or ""
    if not proxy or is_local(host):
        return ""
    port = address.port or _DEFAULT_PORTS.get(address.scheme, 0)
    exempt = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    if any(_covers(entry.strip().lower(), host, port) for entry in exempt.split(",") if entry.strip()):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not is_address(proxy):
        message = "expected an address such as http://proxy.example.com:3128; SOCKS does not work"
        raise InputError.at(name.upper(), message)
    return proxy


def is_address(text: str) -> bool:
    """Whether a text is the address of an HTTP server."""
    try:
        url = urlsplit(text)
        return url.scheme in _DEFAULT_PORTS and bool(url.hostname) and url.port != 0
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Whether a host is this machine, as far as its name or address says."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY (a name, a domain, an address, a network, `*`) covers a host."""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and ":" not in name:
        if int(number) != port:
            return False
        entry = name
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith("."))
