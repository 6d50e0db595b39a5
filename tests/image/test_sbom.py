"""The bill of materials, and the labels: what scanners and registries read."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from debian import depends
from labels import labels, revision
from sbom import sbom
from tests.image.packages import a_package, the_product

ROOT = Path(__file__).resolve().parents[2]
DIGEST = f"sha256:{'cd' * 32}"


def a_bill(digest: str = DIGEST) -> dict[str, Any]:
    product = the_product()
    python = a_package("python3", Source="python3-defaults", Version="3.13.5-1", Depends="libc6 (>= 2.4)")
    libc = a_package("libc6", Source="glibc (2.41-12)", Version="1:2.41-12+b1", Architecture="amd64")
    text = sbom(
        [libc, product, python], product, architecture="amd64", digest=digest, created="2026-01-01T00:00:00Z"
    )
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_scanner_finds_each_package_under_its_package_url_with_its_source() -> None:
    urls = {each["name"]: each["purl"] for each in a_bill()["components"] if "purl" in each}
    assert urls == {
        "genericdp": "pkg:deb/debian/genericdp@0.1.0-1?arch=all&distro=debian-13",
        "inotify_simple": "pkg:pypi/inotify-simple@2.0.1",
        "libc6": "pkg:deb/debian/libc6@1:2.41-12%2Bb1?arch=amd64&distro=debian-13&upstream=glibc%402.41-12",
        "python3": "pkg:deb/debian/python3@3.13.5-1?arch=all&distro=debian-13&upstream=python3-defaults",
    }


def test_the_licences_are_those_of_the_copyright_file() -> None:
    licences = {each["name"]: each.get("licenses") for each in a_bill()["components"]}
    assert licences["genericdp"] == [
        {"license": {"name": "Apache-2.0"}},
        {"license": {"name": "BSD-2-Clause"}},
    ]
    assert licences["libc6"] is None


def test_what_needs_what_is_named_among_what_is_there() -> None:
    bill = a_bill()
    named = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert named == {
        "image": ["genericdp", "debian"],
        "genericdp": ["inotify_simple", "python3"],
        "libc6": [],
        "python3": ["libc6"],
    }
    refs = {"image", *(each["bom-ref"] for each in bill["components"])}
    assert {*named}.union(*named.values()) <= refs


def test_a_bill_names_its_image_and_each_image_has_a_bill_of_its_own() -> None:
    bill = a_bill()
    assert bill == a_bill()
    assert bill["serialNumber"] != a_bill(f"sha256:{'ef' * 32}")["serialNumber"]
    assert bill["metadata"]["component"]["purl"] == (
        f"pkg:oci/genericdp@sha256%3A{'cd' * 32}?arch=amd64&tag=0.1.0"
    )


def test_the_labels_say_what_the_package_says() -> None:
    assert labels(the_product(), "0123abc") == {
        "org.opencontainers.image.title": "genericdp",
        "org.opencontainers.image.description": "a package",
        "org.opencontainers.image.url": "https://genericdp.io",
        "org.opencontainers.image.source": "https://genericdp.io",
        "org.opencontainers.image.vendor": "A Maintainer <maintainer@example.com>",
        "org.opencontainers.image.version": "0.1.0",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.created": "2026-01-01T00:00:00Z",
        "org.opencontainers.image.revision": "0123abc",
    }
    assert "org.opencontainers.image.revision" not in labels(the_product(), "")


def test_sources_that_are_no_clone_have_no_revision(tmp_path: Path) -> None:
    assert revision(tmp_path) == ""


def test_packages_and_chart_name_the_same_homepage() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    chart = yaml.safe_load((ROOT / "packaging/kubernetes/chart/Chart.yaml").read_text(encoding="utf-8"))
    (of_deb,) = re.findall(r"^Homepage: (.*)$", (ROOT / "packaging/debian/control").read_text(), re.MULTILINE)
    (of_rpm,) = re.findall(r"^URL: +(.*)$", (ROOT / "packaging/genericdp.spec").read_text(), re.MULTILINE)
    assert {project["urls"]["Homepage"], chart["home"], of_deb, of_rpm} == {"https://genericdp.io"}


def test_of_alternatives_the_first_one_is_downloaded() -> None:
    product = the_product(Depends="python3 (>= 3.11), python3:any, udev | systemd, libc6")
    assert depends(product) == ["libc6", "python3", "udev"]
