"""The credentials that a user of a kubeconfig has."""

import base64
from typing import Any, Final
from urllib.parse import quote

from multidict import CIMultiDict

from karpool.kube.credentials import (
    CertificateFiles,
    Credentials,
    FixedCredentials,
    Impersonating,
    TokenFile,
    basic,
    bearer,
    is_header,
)
from karpool.kube.exec_plugin import API_VERSIONS, Plugin, PluginCredentials
from karpool.kube.kubeconfig_files import ExecConfig, KubeconfigCluster, KubeconfigEntry, KubeconfigUser

_INTERACTIVE: Final = ("Never", "IfAvailable", "Always")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


def user_credentials(user: KubeconfigEntry[KubeconfigUser], cluster: KubeconfigEntry[KubeconfigCluster]) -> Credentials:
    """What proves who the user is, and for whom the user asks."""
    own = _own_credentials(user, cluster)
    named = _impersonated(user.value)
    if named and "Impersonate-User" not in named:
        raise user.wrong("as", "is missing; it is required where as-uid, as-groups or as-user-extra are used")
    if not all(is_header(value) for value in named.values()):
        raise user.wrong("as", "expected lines of text in as, as-uid, as-groups and as-user-extra")
    return Impersonating(own, named) if named else own


def _own_credentials(user: KubeconfigEntry[KubeconfigUser], cluster: KubeconfigEntry[KubeconfigCluster]) -> Credentials:
    written = user.value
    if written.exec is not None:
        return PluginCredentials(_plugin(user, written.exec, cluster))
    if written.auth_provider is not None:
        raise user.wrong("auth-provider", "is not supported; use a credential plugin (exec) instead")
    certificates = _certificates(user)
    if written.token_file:
        return TokenFile(user.path(written.token_file), certificates)
    if token := written.token.strip():
        if not is_header(token):
            raise user.wrong("token", "expected one line of text")
        return FixedCredentials(bearer(token)["Authorization"], certificates)
    if written.username:
        return FixedCredentials(basic(written.username, written.password), certificates)
    return FixedCredentials(certificates=certificates)


def _certificates(user: KubeconfigEntry[KubeconfigUser]) -> CertificateFiles | None:
    written = user.value
    has_certificate = bool(written.client_certificate or written.client_certificate_data)
    has_key = bool(written.client_key or written.client_key_data)
    if has_certificate != has_key:
        missing, given = (
            ("client-key", "client-certificate") if has_certificate else ("client-certificate", "client-key")
        )
        raise user.wrong(missing, f"is missing; it goes together with {given}")
    if not has_certificate:
        return None
    certificate = user.data("client-certificate-data", written.client_certificate_data)
    key = user.data("client-key-data", written.client_key_data)
    return CertificateFiles(certificate or user.path(written.client_certificate), key or user.path(written.client_key))


def _impersonated(user: KubeconfigUser) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    if user.as_:
        headers["Impersonate-User"] = user.as_
    if user.as_uid:
        headers["Impersonate-Uid"] = user.as_uid
    for group in user.as_groups:
        headers.add("Impersonate-Group", group)
    for key, values in user.as_user_extra.items():
        for value in values:
            headers.add(f"Impersonate-Extra-{quote(key, safe='')}", value)
    return headers


def _plugin(
    user: KubeconfigEntry[KubeconfigUser], written: ExecConfig, cluster: KubeconfigEntry[KubeconfigCluster]
) -> Plugin:
    if not written.command:
        raise user.wrong("exec.command", "is missing; name the program to run")
    if written.api_version not in API_VERSIONS:
        raise user.wrong("exec.apiVersion", f"is not supported; use {' or '.join(API_VERSIONS)}")
    mode = written.interactive_mode or "IfAvailable"
    if mode not in _INTERACTIVE:
        raise user.wrong("exec.interactiveMode", f"use one of {', '.join(_INTERACTIVE)}")
    return Plugin(
        api_version=written.api_version,
        command=written.command,
        arguments=written.args,
        environment={variable.name: variable.value for variable in written.env},
        folder=user.file.parent,
        interactive=mode,
        install_hint=written.install_hint,
        cluster=_cluster_told(cluster) if written.provide_cluster_info else None,
    )


def _cluster_told(cluster: KubeconfigEntry[KubeconfigCluster]) -> dict[str, Any]:
    """What a plugin is told of the cluster."""
    written = cluster.value
    authority = cluster.content(
        "certificate-authority", written.certificate_authority_data, written.certificate_authority
    )
    told: dict[str, Any] = {
        "server": written.server,
        "tls-server-name": written.tls_server_name,
        "insecure-skip-tls-verify": written.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode("ascii"),
        "proxy-url": written.proxy_url,
        "config": next(
            (entry.get("extension") for entry in written.extensions if entry.get("name") == _EXEC_EXTENSION), None
        ),
    }
    return {key: value for key, value in told.items() if value}
