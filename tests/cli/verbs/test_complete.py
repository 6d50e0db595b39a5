"""`genericdp complete`: what the shells are told, and that it never complains."""

from pathlib import Path

import pytest

from genericdp.cli.main import main
from genericdp.cli.verbs import complete

RULES = """
[[resource]]
name = "fuse"
description = "file systems\tof pods"
match = { DEVNAME = "/dev/fuse" }

[[resource]]
name = "vendor.example/lte"
match = { ID_MODEL = "x" }
"""


@pytest.fixture
def rules(tmp_path: Path) -> str:
    tmp_path.chmod(0o755)
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    path.chmod(0o644)
    return str(path)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["complete", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_resources_are_those_of_the_rules_that_were_typed_as_short_as_may_be(
    rules: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = ["simulate", "--for", "5", "--rules", rules, "--allocate"]
    assert told(capsys, "resources", *typed) == "fuse\tfile systems\\tof pods\nvendor.example/lte\t\n"
    typed += ["--domain", "vendor.example", "--json"]
    assert told(capsys, "resources", *typed) == "fuse\tfile systems\\tof pods\nlte\t\n"


def test_what_may_be_explained_are_resources_and_devices_that_have_links(
    rules: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "links").mkdir()
    for name in ("modem_EC25@if02", "modem_EC25@usb", "fuse_fuse", ".new", "a b", "held+x_A", "shared+kfd"):
        (tmp_path / "links" / name).symlink_to("x")
    settings = tmp_path / "settings.toml"
    settings.write_text(f'link_dir = "{tmp_path}/links"\n')
    settings.chmod(0o644)
    assert told(capsys, "subjects", "explain", "--rules", rules, "--config", str(settings)) == (
        "fuse\tfile systems\\tof pods\nfuse_fuse\ta device\nmodem_EC25\ta device\nvendor.example/lte\t\n"
    )
    settings.write_text('link_dir = "/no/where"\n')
    assert told(capsys, "subjects", "--rules", rules, "--config", str(settings)) == (
        "fuse\tfile systems\\tof pods\nvendor.example/lte\t\n"
    )


@pytest.mark.parametrize("typed", [["--rules", "/nowhere"], ["--rules"], ["--config", "/nowhere", "--x"]])
def test_pressing_the_tab_key_prints_no_message(typed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "resources", *typed) == ""


def test_usb_devices_are_named_unless_their_names_are_more_than_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, attributes in {
        "1-1": {"idVendor": "0403", "idProduct": "6001", "serial": "A50285BI", "product": "FT232R\x1b[31m"},
        "1-2": {"idVendor": "0403", "idProduct": "6015", "serial": "$(reboot)"},
        "usb1": {"idVendor": "1d6b", "idProduct": "0002", "serial": "a b", "product": "xHCI"},
        "1-1:1.0": {"bInterfaceClass": "ff"},
    }.items():
        (tmp_path / name).mkdir()
        for attribute, value in attributes.items():
            (tmp_path / name / attribute).write_text(f"{value}\n")
    monkeypatch.setattr(complete, "_USB_DEVICES", str(tmp_path))
    assert told(capsys, "serials") == "A50285BI\tFT232R\\x1b[31m\n"
    assert (
        told(capsys, "usb", "explain", "--usb")
        == "0403:6001\tFT232R\\x1b[31m\n0403:6015\t\n1d6b:0002\txHCI\n"
    )


def test_subsystems_are_those_of_the_device_nodes_of_this_machine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = told(capsys, "subsystems", "list", "--subsystem").splitlines()

    assert "mem\t" in found
    assert "misc\t" in found
    assert found == sorted(set(found))


def test_it_is_nothing_for_people_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "complete " not in capsys.readouterr().out
    assert main(["complet"]) == 2
    assert "did you mean" not in capsys.readouterr().err
