"""Finds the API server to talk to: from kubeconfig files as kubectl reads them, or from the pod this runs in."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from karpool.kube.credentials import TokenFile
from karpool.kube.kubeconfig_files import (
    Kubeconfig,
    KubeconfigCluster,
    KubeconfigContext,
    KubeconfigEntry,
    KubeconfigUser,
    certificate_authority,
    read_kubeconfig,
)
from karpool.kube.kubeconfig_users import user_credentials
from karpool.kube.proxies import environment_proxy, is_address
from karpool.kube.target import Target
from karpool.wire.problems import InputError, Problem

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
IN_CLUSTER: Final = "in-cluster"


class NoClusterError(InputError):
    """There is neither a kubeconfig nor the service account of a pod."""


def find_target(
    context: str | None = None,
    kubeconfig: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Target:
    """The cluster that a kubeconfig names, else the one this process runs in."""
    environ = os.environ if environ is None else environ
    if kubeconfig is not None and not kubeconfig.exists():
        raise InputError.at(str(kubeconfig), "does not exist")
    files = [kubeconfig] if kubeconfig is not None else [file for file in _default_files(environ) if file.exists()]
    config = read_kubeconfig(files)
    if config.contexts:
        return _of_context(config, context, environ)
    if kubeconfig is not None:
        raise InputError.at(str(kubeconfig), "has no contexts; it names no cluster")
    if context is None and environ.get("KUBERNETES_SERVICE_HOST") and (service_account / "token").exists():
        return _in_cluster(environ, service_account)
    if environ.get("KUBECONFIG") and not files:
        raise InputError.at("KUBECONFIG", f"names {environ['KUBECONFIG']}, which does not exist")
    message = "no cluster is known here; set KUBECONFIG or make ~/.kube/config, as for kubectl"
    raise NoClusterError(Problem(file="kubeconfig", rule="NoCluster", message=message))


def context_names(kubeconfig: Path | None = None, *, environ: Mapping[str, str] | None = None) -> list[str]:
    """The contexts of a kubeconfig, or of those that kubectl would read."""
    files = [kubeconfig] if kubeconfig is not None else _default_files(os.environ if environ is None else environ)
    return sorted(read_kubeconfig([file for file in files if file.exists()]).contexts)


def _default_files(environ: Mapping[str, str]) -> list[Path]:
    named = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    home = environ.get("HOME", "")
    return named or ([Path(home, ".kube", "config")] if home else [])


def _of_context(config: Kubeconfig, context_name: str | None, environ: Mapping[str, str]) -> Target:
    name = config.current if context_name is None else context_name
    context = config.contexts.get(name)
    if context is None:
        known = ", ".join(sorted(config.contexts))
        message = f"has no context {name!r}; choose one of: {known}"
        if not name:
            message = f"has no current-context; choose one with --context: {known}"
        raise InputError.at(str(config), message)
    cluster = config.clusters.get(context.value.cluster)
    if cluster is None:
        raise context.wrong("cluster", f"names the cluster {context.value.cluster!r}, which is not there")
    return _target(name, context, cluster, _user(config, context), environ)


def _user(config: Kubeconfig, context: KubeconfigEntry[KubeconfigContext]) -> KubeconfigEntry[KubeconfigUser]:
    name = context.value.user
    if not name:
        return KubeconfigEntry(KubeconfigUser(), context.file, "no user")
    if name not in config.users:
        raise context.wrong("user", f"names the user {name!r}, who is not there")
    return config.users[name]


def _target(
    name: str,
    context: KubeconfigEntry[KubeconfigContext],
    cluster: KubeconfigEntry[KubeconfigCluster],
    user: KubeconfigEntry[KubeconfigUser],
    environ: Mapping[str, str],
) -> Target:
    value = cluster.value
    authority = certificate_authority(cluster)
    if authority and value.insecure_skip_tls_verify:
        raise cluster.wrong("insecure-skip-tls-verify", "is not allowed together with certificate-authority")
    server = _server(cluster)
    return Target(
        server=server,
        credentials=user_credentials(user, cluster),
        authority=authority,
        verify=not value.insecure_skip_tls_verify,
        server_name=value.tls_server_name,
        proxy=_proxy(cluster) or environment_proxy(server, environ),
        namespace=context.value.namespace or "default",
        context=name,
    )


def _server(cluster: KubeconfigEntry[KubeconfigCluster]) -> str:
    server = cluster.value.server.rstrip("/")
    if not is_address(server) or "@" in server:
        raise cluster.wrong("server", "expected an address such as https://10.0.0.1:6443")
    return server


def _proxy(cluster: KubeconfigEntry[KubeconfigCluster]) -> str:
    proxy = cluster.value.proxy_url
    if proxy and not is_address(proxy):
        raise cluster.wrong(
            "proxy-url", "expected an address such as http://proxy.example.com:3128; SOCKS is not supported"
        )
    return proxy


def _in_cluster(environ: Mapping[str, str], folder: Path) -> Target:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace_file = folder / "namespace"
    try:
        authority = (folder / "ca.crt").read_bytes()
        namespace = namespace_file.read_text().strip() if namespace_file.exists() else ""
    except OSError as error:
        raise InputError.at(str(error.filename), f"cannot be read: {error.strerror}") from error
    return Target(
        server=server,
        credentials=TokenFile(folder / "token"),
        authority=authority,
        proxy=environment_proxy(server, environ),
        namespace=namespace or "default",
        context=IN_CLUSTER,
    )
