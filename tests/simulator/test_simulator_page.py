"""docs/simulator.md is true: its examples run, with genericdp as the plugin under test."""

import re
import subprocess
import sys
from pathlib import Path

from genericdp.simulator.kubelet import Kubelet

ROOT = Path(__file__).resolve().parents[2]
CONFTEST, TESTS, ASYNC = re.findall(
    r"```python\n(.*?)```", (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8"), re.DOTALL
)

#: A plugin for the examples: its one device exists on every machine.
MY_PLUGIN = f"""#!/bin/sh
directory=${{1#--kubelet-dir=}}
cat >"$directory.rules.toml" <<'TOML'
[[resource]]
name = "vendor.example/thing"
match = {{ DEVNAME = "/dev/null" }}
container_path = "/dev/thing"
allow_dangerous = true
TOML
cat >"$directory.toml" <<TOML
kubelet_dir = "$directory"
link_dir = "$directory.links"
state_dir = "$directory.state"
TOML
exec {sys.executable} -m genericdp run --config "$directory.toml" --rules "$directory.rules.toml"
"""


def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    plugin = tmp_path / "my-plugin"
    plugin.write_text(MY_PLUGIN)
    plugin.chmod(0o755)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_page.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "--rootdir",
        ".",
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert f"{TESTS.count('def test_')} passed" in result.stdout, result.stdout + result.stderr


def test_the_program_of_the_page_runs() -> None:
    result = subprocess.run([sys.executable, "-c", ASYNC], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"register at /tmp/k-\w+/device-plugins/kubelet.sock\n", result.stdout)


def test_every_name_of_the_page_exists() -> None:
    text = (ROOT / "docs" / "simulator.md").read_text(encoding="utf-8")
    table = text.partition("## What can be done")[2].partition("## What it is")[0]
    named = set(re.findall(r"`(?:faults\.)?([a-z_]+)[(`]", table)) - {"root", "wipe"}
    options = {
        "generation",
        "runtime",
        "seed",
        "policy",
        "numa_nodes",
        "device_ownership",
        "cgroup",
        "cdi_dirs",
    }
    from_kubelet = {name for name in named - options if not hasattr(Kubelet, name)}
    assert from_kubelet <= {
        "hold",
        "refuse_registrations",
        "end_streams",
        "remove_socket",
        "remove_directory",
        "make_directory",
        "node_status",
        "registrations",
        "health_pushes",
        "kubelet",
    }
