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
from karpool.kube.exec_plugin import API_VERSIONS, ExecPlugin, PluginCredentials
from karpool.kube.kubeconfig_files import (
    ExecConfig,
    KubeconfigCluster,
    KubeconfigEntry,
    KubeconfigUser,
    certificate_authority,
)

_INTERACTIVE: Final = ("Never", "IfAvailable", "Always")
_EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"


def user_credentials(user: KubeconfigEntry[KubeconfigUser], cluster: KubeconfigEntry[KubeconfigCluster]) -> Credentials:
    own = _own_credentials(user, cluster)
    headers = _impersonation_headers(user.value)
    if headers and "Impersonate-User" not in headers:
        raise user.wrong("as", "is missing; it is required where as-uid, as-groups or as-user-extra are used")
    if not all(is_header(value) for value in headers.values()):
        raise user.wrong("as", "expected lines of text in as, as-uid, as-groups and as-user-extra")
    return Impersonating(own, headers) if headers else own


def _own_credentials(user: KubeconfigEntry[KubeconfigUser], cluster: KubeconfigEntry[KubeconfigCluster]) -> Credentials:
    value = user.value
    if value.exec is not None:
        return PluginCredentials(_plugin(user, value.exec, cluster))
    if value.auth_provider is not None:
        raise user.wrong("auth-provider", "is not supported; use a credential plugin (exec) instead")
    certificates = _certificates(user)
    if value.token_file:
        return TokenFile(user.path(value.token_file), certificates)
    if token := value.token.strip():
        if not is_header(token):
            raise user.wrong("token", "expected one line of text")
        return FixedCredentials(bearer(token)["Authorization"], certificates)
    if value.username:
        return FixedCredentials(basic(value.username, value.password), certificates)
    return FixedCredentials(certificates=certificates)


def _certificates(user: KubeconfigEntry[KubeconfigUser]) -> CertificateFiles | None:
    value = user.value
    has_certificate = bool(value.client_certificate or value.client_certificate_data)
    has_key = bool(value.client_key or value.client_key_data)
    if has_certificate != has_key:
        missing, given = (
            ("client-key", "client-certificate") if has_certificate else ("client-certificate", "client-key")
        )
        raise user.wrong(missing, f"is missing; it goes together with {given}")
    if not has_certificate:
        return None
    certificate = user.data("client-certificate-data", value.client_certificate_data)
    key = user.data("client-key-data", value.client_key_data)
    return CertificateFiles(certificate or user.path(value.client_certificate), key or user.path(value.client_key))


def _impersonation_headers(user: KubeconfigUser) -> CIMultiDict[str]:
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
    user: KubeconfigEntry[KubeconfigUser], config: ExecConfig, cluster: KubeconfigEntry[KubeconfigCluster]
) -> ExecPlugin:
    if not config.command:
        raise user.wrong("exec.command", "is missing; name the program to run")
    if config.api_version not in API_VERSIONS:
        raise user.wrong("exec.apiVersion", f"is not supported; use {' or '.join(API_VERSIONS)}")
    if config.interactive_mode not in ("", *_INTERACTIVE):
        raise user.wrong("exec.interactiveMode", f"use one of {', '.join(_INTERACTIVE)}")
    return ExecPlugin(config, user.file.parent, _cluster_info(cluster) if config.provide_cluster_info else None)


def _cluster_info(cluster: KubeconfigEntry[KubeconfigCluster]) -> dict[str, Any]:
    value = cluster.value
    info: dict[str, Any] = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(certificate_authority(cluster)).decode("ascii"),
        "proxy-url": value.proxy_url,
        "config": next(
            (entry.get("extension") for entry in value.extensions if entry.get("name") == _EXEC_EXTENSION), None
        ),
    }
    return {key: entry for key, entry in info.items() if entry}
