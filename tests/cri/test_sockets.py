"""Which socket a container runtime is looked for on."""

from pathlib import Path

import pytest

from genericdp.cri import sockets
from genericdp.cri.sockets import RuntimeUnavailableError, candidates


def test_the_sockets_that_exist_are_candidates_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [str(tmp_path / name) for name in "cab"]
    monkeypatch.setattr(sockets, "SOCKETS", tuple(paths))
    for path in (paths[0], paths[2]):
        Path(path).touch()
    assert candidates("") == (paths[0], paths[2])
    assert candidates(paths[2]) == (paths[2],)


def test_without_a_socket_it_says_which_setting_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "SOCKETS", ())
    hint = (
        "set 'runtime_socket' in genericdp.toml to the kubelet's --container-runtime-endpoint;"
        " in a pod, also mount the socket's directory"
    )
    for setting, text in (
        ("", "no container runtime socket was found"),
        (f"{tmp_path}/x", f"the container runtime's socket '{tmp_path}/x' does not exist"),
    ):
        with pytest.raises(RuntimeUnavailableError) as caught:
            candidates(setting)
        assert (str(caught.value), caught.value.hint) == (text, hint)


def test_a_socket_that_the_unit_hides_is_a_matter_of_the_drop_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("genericdp.cri.sockets.os.stat", refuse)
    with pytest.raises(RuntimeUnavailableError) as caught:
        candidates("/run/containerd/containerd.sock")
    assert str(caught.value) == (
        "not permitted to use the container runtime's socket '/run/containerd/containerd.sock'"
    )
    assert caught.value.hint == (
        "install the drop-in runtime.conf of the systemd unit; it gives genericdp access equivalent to root"
    )
