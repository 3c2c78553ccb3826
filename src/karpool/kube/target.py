"""The API server to talk to: its address, the certificates to trust, and the credentials to use."""

import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from karpool.kube.credentials import Certificate, Credentials
from karpool.kube.errors import UnreachableError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An API server and how to reach it; its representation shows no secrets."""

    server: str
    credentials: Credentials = field(repr=False, compare=False)
    authority: bytes = field(default=b"", repr=False)
    """The certificates to trust, as PEM; none: those of the system."""
    verify: bool = True
    server_name: str = ""
    """The name in the server's certificate, if it is not that of the address."""
    proxy: str = field(default="", repr=False)
    namespace: str = "default"
    context: str = ""
    """Its name: the context of a kubeconfig, or `in-cluster`."""


def tls_context(target: Target, certificate: Certificate | None) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=target.authority.decode("ascii") or None)
        if not target.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        # The certificate authorities of clusters often lack extensions that newer Pythons require.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if certificate is not None:
            _load_certificate(context, certificate)
    except (ssl.SSLError, ValueError) as error:
        reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else "not PEM"
        message = f"the certificates for {target.context or target.server} cannot be used: {reason}"
        raise UnreachableError(message, sent=False, lasting=True) from None
    return context


def _load_certificate(context: ssl.SSLContext, certificate: Certificate) -> None:
    # OpenSSL takes a certificate and its key only from files.
    with tempfile.TemporaryDirectory(prefix="kube-") as folder:
        both = Path(folder, "client.pem")
        both.touch(mode=0o600)
        both.write_bytes(certificate.certificate + b"\n" + certificate.key)
        context.load_cert_chain(both, password="")
