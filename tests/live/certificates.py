"""A certificate authority for one test cluster, made with the openssl program."""

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SETTINGS = """\
[req]
distinguished_name = name
[name]
[authority]
basicConstraints = critical, CA:true
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[server]
subjectAltName = IP:127.0.0.1, DNS:localhost
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
[client]
extendedKeyUsage = clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path


class Authority:
    """Signs the certificates of servers on the loopback interface and of any user."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._settings = folder / "openssl.cnf"
        self._settings.write_text(SETTINGS)
        self.own = self._make("authority", "/CN=karpool-tests", "authority", signed=False)

    def server(self) -> Certificate:
        return self._make("server", "/CN=localhost", "server")

    def client(self, user: str, groups: Sequence[str] = ()) -> Certificate:
        """A certificate by which the API server knows this user and these groups."""
        subject = "".join(f"/O={_escaped(group)}" for group in groups) + f"/CN={_escaped(user)}"
        return self._make(file_name(user, groups), subject, "client")

    def _make(self, name: str, subject: str, section: str, *, signed: bool = True) -> Certificate:
        made = Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-config", str(self._settings), "-extensions", section, "-days", "30", "-subj", subject]
        command += ["-out", str(made.certificate), "-keyout", str(made.key)]
        if signed:
            command += ["-CA", str(self.own.certificate), "-CAkey", str(self.own.key)]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - names are escaped
        return made


def file_name(user: str, groups: Sequence[str] = ()) -> str:
    """A name for the files of a user, one for each set of groups."""
    return re.sub(r"[^A-Za-z0-9.+-]", "_", "+".join([user, *groups]))


def _escaped(text: str) -> str:
    return re.sub(r"([/+=\\])", r"\\\1", text)
