"""The settings files of kubelet, kube-proxy and the API server's audit log."""

from pathlib import Path
from typing import Any

from tests.cluster.machine.places import DNS_ADDRESS, NAME, NODE, NODE_ADDRESS, POD_NETWORK, Places


def kubelet(places: Places, resolver: Path) -> dict[str, Any]:
    """A KubeletConfiguration for a machine that is small, nearly full, and may lack rights of root."""
    keys, folder = places.certificates, places.state / "kubelet"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(keys / "ca.crt")}},
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(keys / "kubelet.crt"),
        "tlsPrivateKeyFile": str(keys / "kubelet.key"),
        "containerRuntimeEndpoint": f"unix://{places.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{NAME}",
        "failCgroupV1": False,
        "failSwapOn": False,
        # Lowering the score needs CAP_SYS_RESOURCE, which a container's or sandbox's root lacks.
        "oomScoreAdj": 0,
        "enforceNodeAllocatable": [],
        "clusterDomain": "cluster.local",
        "clusterDNS": [DNS_ADDRESS],
        "resolvConf": str(resolver),
        "makeIPTablesUtilChains": False,
        "podLogsDir": str(places.state / "pod-logs"),
        "volumePluginDir": str(folder / "volume-plugins"),
        # Images cannot be pulled again, so they are never collected.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        # Tests kill the same container several times a minute; by default it would stay away for 40 s then.
        "featureGates": {"KubeletCrashLoopBackOffMax": True},
        "crashLoopBackOff": {"maxContainerRestartPeriod": "2s"},
        # Starts of many pods at once are what the tests do all day.
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "kubeAPIQPS": 100,
        "kubeAPIBurst": 200,
    }


def proxy(places: Places) -> dict[str, Any]:
    """A KubeProxyConfiguration that leaves the machine's connection tracking as it is."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(places.certificates / "proxy.kubeconfig")},
        "hostnameOverride": NODE,
        "clusterCIDR": POD_NETWORK,
        "bindAddress": NODE_ADDRESS,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        "oomScoreAdj": 0,
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
    }


def audit_policy() -> dict[str, Any]:
    """Who tried to write to Knative Eventing's resources, without the bodies; nothing else."""
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "verbs": writes, "resources": [{"group": "eventing.knative.dev"}]},
            {"level": "None"},
        ],
    }
