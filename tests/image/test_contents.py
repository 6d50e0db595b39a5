"""What is in the image, decided by path."""

import pytest
import yaml

from assembly import CONFIG
from contents import files, frame, kept, used
from tests.bench.daemon import environment_of_the_unit
from tests.image.manifest import BASE
from tests.image.packages import a_package
from tree import EmptyDirectory, File

DYNLOAD = "usr/lib/python3.13/lib-dynload"
LIBRARIES = "usr/lib/x86_64-linux-gnu"


@pytest.mark.parametrize(
    "path",
    [
        "usr/bin/genericdp",
        "usr/bin/python3",
        "usr/bin/python3.13",
        "usr/share/genericdp/genericdp/daemon.py",
        "usr/lib/genericdp/rules.d/README",
        "etc/genericdp/genericdp.toml",
        "usr/lib/python3.13/asyncio/tasks.py",
        "usr/lib/python3/dist-packages/grpc/_cython/cygrpc.cpython-313-x86_64-linux-gnu.so",
        f"{DYNLOAD}/_asyncio.cpython-313-x86_64-linux-gnu.so",
        f"{LIBRARIES}/libudev.so.1",
        "usr/lib/arm-linux-gnueabihf/libc.so.6",
        "usr/lib64/ld-linux-x86-64.so.2",
        "usr/lib/os-release",
        "usr/share/common-licenses/GPL-3",
        "usr/share/doc/python3.13/copyright",
        "usr/share/doc/libstdc++6",
    ],
)
def test_what_genericdp_needs_and_every_licence_is_in_the_image(path: str) -> None:
    assert kept(path)


@pytest.mark.parametrize(
    "path",
    [
        "usr/bin/sh",
        "usr/bin/dash",
        "usr/bin/python3.13-config",
        "usr/sbin/ldconfig",
        "usr/bin/dpkg",
        "var/lib/dpkg/status",
        "etc/shadow",
        "usr/share/man/man1/genericdp.1.gz",
        "usr/share/doc/genericdp/README.md",
        "usr/share/doc/genericdp/examples/copyright",
        "usr/lib/systemd/system/genericdp.service",
        "usr/lib/udev/rules.d/90-genericdp.rules",
        "usr/libexec/genericdp/node-removed",
        f"{LIBRARIES}/gconv/ISO8859-1.so",
        f"{LIBRARIES}/libmvec.so.1",
        f"{LIBRARIES}/libnss_files.so.2",
        f"{DYNLOAD}/_sqlite3.cpython-313-x86_64-linux-gnu.so",
        f"{DYNLOAD}/_testcapi.cpython-313-x86_64-linux-gnu.so",
        "usr/lib/python3.13/test/support/__init__.py",
        "usr/lib/python3.13/ensurepip/_bundled/pip-25.0-py3-none-any.whl",
        "usr/lib/python3.13/__pycache__/os.cpython-313.pyc",
        "usr/lib/python3/dist-packages/debpython/version.py",
    ],
)
def test_no_shell_no_installer_no_test_and_no_page_is_in_the_image(path: str) -> None:
    assert not kept(path)


def test_packages_of_which_nothing_is_used_leave_no_trace() -> None:
    names = [package.name for package in used([a_package("python3"), a_package("dpkg"), a_package("libc6")])]
    assert names == ["libc6", "python3"]


def test_scanners_find_an_entry_for_each_package() -> None:
    found = files([a_package("libc6", Version="2.41-12", Architecture="amd64")])
    assert (
        found["var/lib/dpkg/status.d/libc6"]
        .content.decode()
        .startswith("Package: libc6\nStatus: install ok installed\nVersion: 2.41-12\nArchitecture: amd64\n")
    )


def test_a_link_to_a_file_that_is_not_in_the_image_is_not_in_it_either() -> None:
    package = a_package(
        "python3-minimal",
        {
            "usr/bin/python3": File(target="python3.13"),
            "usr/bin/python3.13": "ELF",
            f"{LIBRARIES}/libmvec.so.1": "ELF",
            f"{LIBRARIES}/libmath.so": File(target="libmvec.so.1"),
            f"{LIBRARIES}/libfirst.so": File(target="/lib/x86_64-linux-gnu/libmath.so"),
        },
    )
    assert {path for path in files([package]) if path.startswith("usr/")} == {
        "usr/bin/python3",
        "usr/bin/python3.13",
    }


def test_only_programs_and_the_dynamic_linker_can_be_executed() -> None:
    package = a_package(
        "all",
        {
            "usr/bin/genericdp": "#!",
            f"{LIBRARIES}/ld-linux-x86-64.so.2": "ELF",
            f"{LIBRARIES}/libc.so.6": "ELF",
            "usr/lib/python3.13/pdb.py": "#!",
        },
    )
    executable = {path for path, file in files([package]).items() if file.executable}
    assert executable == {"usr/bin/genericdp", f"{LIBRARIES}/ld-linux-x86-64.so.2"}


def test_everything_that_the_daemonset_mounts_has_a_place_in_the_read_only_root() -> None:
    daemon_set = yaml.safe_load((BASE / "daemonset.yaml").read_text(encoding="utf-8"))
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    wanted = {mount["mountPath"].lstrip("/") for mount in container["volumeMounts"]}
    places = {path for path, what in frame({}).items() if isinstance(what, EmptyDirectory)}
    # The package has these two.
    assert wanted - places == {"usr/lib/genericdp/rules.d", "etc/genericdp/genericdp.toml"}


def test_the_root_is_that_of_a_merged_usr_with_one_user() -> None:
    tree = frame({"usr/bin/genericdp": File(), "usr/lib/os-release": File()})
    assert {path: what.target for path, what in tree.items() if isinstance(what, File) and what.target} == {
        "bin": "usr/bin",
        "lib": "usr/lib",
    }
    passwd = tree["etc/passwd"]
    assert isinstance(passwd, File)
    assert passwd.content == b"root:x:0:0:root:/:/usr/sbin/nologin\n"


def test_the_daemon_gets_the_environment_that_systemd_gives_it() -> None:
    environment = dict(line.split("=", 1) for line in CONFIG["Env"])
    assert environment_of_the_unit().items() <= environment.items()
    assert "GLIBC_TUNABLES" in environment_of_the_unit()
