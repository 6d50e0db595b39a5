"""The software bill of materials of an image, as CycloneDX 1.6.

It names each Debian package whose files are in the image, with its digest and the licences that its copyright
file declares. Scanners find known vulnerabilities by the package URLs.
"""

import json
import re
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from debian import Package


def sbom(
    packages: Sequence[Package], product: Package, *, architecture: str, digest: str, created: str
) -> str:
    """The document for the image with this digest, as JSON. `product` is one of the packages."""
    components = [_component(package) for package in packages]
    carried = {
        "type": "library",
        "name": "inotify_simple",
        "version": _carried_version(product),
        "purl": f"pkg:pypi/inotify-simple@{_carried_version(product)}",
        "bom-ref": "inotify_simple",
        "licenses": [{"license": {"id": "BSD-2-Clause"}}],
    }
    upstream = product.version.rpartition("-")[0]
    described = {
        "type": "container",
        "name": "genericdp",
        "version": upstream,
        "purl": f"pkg:oci/genericdp@{quote(digest, safe='')}?arch={architecture}&tag={upstream}",
        "bom-ref": "image",
        "licenses": [{"license": {"id": "Apache-2.0"}}],
    }
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, digest)}",
        "version": 1,
        "metadata": {"timestamp": created, "component": described},
        "components": [
            {"type": "operating-system", "name": "debian", "version": "13", "bom-ref": "debian"},
            *components,
            carried,
        ],
        "dependencies": _dependencies(packages, product),
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _component(package: Package) -> dict[str, Any]:
    fields = package.fields
    component = {
        "type": "library",
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
        "bom-ref": package.name,
        "description": fields["Description"],
        "hashes": [{"alg": "SHA-256", "content": package.sha256}],
        "publisher": fields["Maintainer"],
    }
    if declared := _licences(package):
        component["licenses"] = [{"license": {"name": each}} for each in declared]
    return component


def _purl(package: Package) -> str:
    """Its package URL (type deb). Scanners look for the source package in `upstream`."""
    fields = package.fields
    # Source: name (version), where they differ from those of the package.
    source, _, version = fields.get("Source", package.name).rstrip(")").partition(" (")
    upstream = f"{source}@{version}" if version else source
    found = f"pkg:deb/debian/{package.name}@{_quoted(package.version)}?arch={fields['Architecture']}"
    found += "&distro=debian-13"
    return found if upstream == package.name else f"{found}&upstream={_quoted(upstream)}"


def _quoted(part: str) -> str:
    return quote(part, safe=":~")


def _licences(package: Package) -> list[str]:
    """The short names in a machine-readable copyright file; empty if it is prose."""
    for path, file in package.files.items():
        if re.fullmatch(r"usr/share/doc/[^/]+/copyright", path):
            declared = re.findall(r"^License: *(\S.*)$", file.content.decode(errors="replace"), re.MULTILINE)
            return sorted({each.strip() for each in declared})
    return []


def _dependencies(packages: Sequence[Package], product: Package) -> list[dict[str, Any]]:
    """What needs what, among the packages of the image."""
    names = {package.name for package in packages}
    found: list[dict[str, Any]] = [{"ref": "image", "dependsOn": [product.name, "debian"]}]
    for package in packages:
        depends = re.sub(r"\([^)]*\)", "", package.fields.get("Depends", ""))
        wanted = re.findall(r"[a-z0-9][a-z0-9+.-]+", depends)
        carried = {"inotify_simple"} if package is product else set()
        found.append({"ref": package.name, "dependsOn": sorted((names & set(wanted)) | carried)})
    return found


def _carried_version(product: Package) -> str:
    """The version of the one library that Debian lacks, as it says itself."""
    source = product.files["usr/share/genericdp/inotify_simple.py"].content.decode()
    found: list[str] = re.findall(r"^__version__ = ['\"]([^'\"]+)", source, re.MULTILINE)
    return found[0]
