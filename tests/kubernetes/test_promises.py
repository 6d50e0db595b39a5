"""What SECURITY.md and docs/kubernetes.md promise about the pods, for every rendering that is kept."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from genericdp.cli.verbs.probe import PATIENCE_S
from genericdp.core.rules.settings import Settings
from tests.kubernetes.renderings import RENDERINGS, Object, pod_templates, read

KEPT = sorted(RENDERINGS.glob("*.yaml"))

#: The directories of the host that a pod may see, and whether it may write there.
WRITABLE = {"/var/lib/kubelet/device-plugins", "/dev", "/var/lib/genericdp", "/run/cdi"}
READ_ONLY = {
    "/var/lib/kubelet/pod-resources",
    "/var/lib/k0s/kubelet/pod-resources",
    "/run/udev",
    "/etc/genericdp/rules.d",
}
#: Only for the rules that stop containers, where they are turned on.
RUNTIME = {"/run/containerd", "/run/k3s/containerd"}
#: Rendering -> other directories for the same things, which its values name.
OTHER_WRITABLE = {
    "chart-everything": {"/var/lib/devices/links", "/var/lib/devices/state"},
    "chart-others": {"/var/cdi/dynamic"},
}
OTHER_READ_ONLY = {"chart-others": {"/opt/rules.d"}}
#: The probes, and what each asks.
PROBES = {"startupProbe": "health", "livenessProbe": "health", "readinessProbe": "readiness"}
#: Rendering -> other probes, which its values name; None: none.
OWN_PROBES: Mapping[str, Mapping[str, Any]] = {
    "chart-others": {
        "startupProbe": {
            "httpGet": {"host": "127.0.0.1", "port": 19101, "path": "/healthz"},
            "periodSeconds": 2,
            "timeoutSeconds": 5,
            "failureThreshold": 60,
        }
    },
    "chart-own-network": {
        "startupProbe": None,
        "livenessProbe": {
            "exec": {"command": ["genericdp", "--version"]},
            "periodSeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 4,
        },
    },
    "chart-removed": {"livenessProbe": None},
}
#: Where the daemon listens for probes.
RUN_DIR = Settings().run_dir
#: With the value usbReset. Only a privileged container may open USB devices.
PRIVILEGED = RENDERINGS / "chart-usb-reset.yaml"


def daemon_sets(path: Path) -> list[Object]:
    return [thing for thing in read(path) if thing["kind"] == "DaemonSet"]


def containers(path: Path) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Each container, and the spec of its pod."""
    for template in pod_templates(read(path)):
        spec = template["spec"]
        for container in [*spec.get("initContainers", ()), *spec["containers"]]:
            yield container, spec


each_rendering = pytest.mark.parametrize("path", KEPT, ids=lambda path: str(path.stem))


@each_rendering
def test_a_container_may_do_nothing_but_belong_to_root(path: Path) -> None:
    found = [*containers(path)]
    assert found
    for container, _ in found:
        context = container["securityContext"]
        if path != PRIVILEGED:
            assert context["privileged"] is False
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_a_privileged_container_has_only_what_the_api_server_permits_it() -> None:
    for container, _ in containers(PRIVILEGED):
        context = container["securityContext"]
        assert context["privileged"] is True
        assert {"allowPrivilegeEscalation", "capabilities"}.isdisjoint(context)


@each_rendering
def test_a_pod_shares_only_the_network_with_the_host(path: Path) -> None:
    for _, spec in containers(path):
        assert {"hostPID", "hostIPC", "hostUsers", "shareProcessNamespace"}.isdisjoint(spec)


@each_rendering
def test_a_pod_cannot_use_the_api_server(path: Path) -> None:
    for thing in read(path):
        if thing["kind"] == "ServiceAccount":
            assert thing["automountServiceAccountToken"] is False
    for _, spec in containers(path):
        assert spec["automountServiceAccountToken"] is False


@each_rendering
def test_only_listed_directories_of_the_host_are_mounted_and_only_some_can_be_written(path: Path) -> None:
    stops_containers = path.stem in (
        "kustomize-restart",
        "kustomize-all",
        "kustomize-own",
        "chart-everything",
    )
    read_only = READ_ONLY | OTHER_READ_ONLY.get(path.stem, set()) | (RUNTIME if stops_containers else set())
    writable = WRITABLE | OTHER_WRITABLE.get(path.stem, set())
    for container, spec in containers(path):
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            host = volumes[mount["name"]].get("hostPath", {}).get("path")
            if host is not None:
                assert host in writable | read_only
                assert mount.get("readOnly", False) is (host not in writable), host
        assert {mount["name"] for mount in container.get("volumeMounts", ())} <= set(volumes)
        assert len(volumes) == len(spec.get("volumes", ()))
        places = [mount["mountPath"] for mount in container.get("volumeMounts", ())]
        assert len({*places}) == len(places)


@each_rendering
def test_a_pod_that_surges_on_the_hosts_network_declares_no_port(path: Path) -> None:
    for thing in daemon_sets(path):
        assert thing["spec"]["updateStrategy"] == {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        }
        for container in thing["spec"]["template"]["spec"]["containers"]:
            assert "ports" not in container


@each_rendering
def test_only_root_in_the_pod_can_answer_a_probe(path: Path) -> None:
    """Anybody on the node can take a port of the host before genericdp does."""
    own = OWN_PROBES.get(path.stem, {})
    for thing in daemon_sets(path):
        spec = thing["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        (run,) = (mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == RUN_DIR)
        assert "emptyDir" in next(volume for volume in spec["volumes"] if volume["name"] == run)
        for name, asks in PROBES.items():
            if name in own:
                assert container.get(name) == own[name]
                continue
            probe = container[name]
            assert {"httpGet", "tcpSocket", "grpc"}.isdisjoint(probe)
            assert probe["exec"] == {"command": ["/usr/bin/genericdp", "probe", asks]}
            assert probe["timeoutSeconds"] > PATIENCE_S


@each_rendering
def test_a_selector_never_changes_and_finds_no_other_pods(path: Path) -> None:
    selectors = []
    for thing in daemon_sets(path):
        selector = thing["spec"]["selector"]
        assert [*selector] == ["matchLabels"]
        labels = selector["matchLabels"]
        assert not {name for name in labels if "version" in name or "chart" in name}
        assert labels.items() <= thing["spec"]["template"]["metadata"]["labels"].items()
        selectors.append(labels)
    templates = [thing["spec"]["template"]["metadata"]["labels"] for thing in daemon_sets(path)]
    for selector in selectors:
        assert len([labels for labels in templates if selector.items() <= labels.items()]) == 1


@each_rendering
def test_a_subpath_is_mounted_only_from_what_restarts_the_pod(path: Path) -> None:
    # The kubelet updates no subPath (kubernetes/kubernetes issue 50345).
    for container, _ in containers(path):
        assert {m["name"] for m in container.get("volumeMounts", ()) if "subPath" in m} <= {"settings"}


@each_rendering
def test_a_namespace_permits_the_pods(path: Path) -> None:
    for thing in read(path):
        if thing["kind"] == "Namespace":
            labels = thing["metadata"]["labels"]
            found = {
                name: labels[f"pod-security.kubernetes.io/{name}"] for name in ("enforce", "audit", "warn")
            }
            assert {*found.values()} == {"privileged"}


@each_rendering
def test_no_limit_slows_the_daemon_down(path: Path) -> None:
    for thing in daemon_sets(path):
        (container,) = thing["spec"]["template"]["spec"]["containers"]
        assert "cpu" not in container.get("resources", {}).get("limits", {})
