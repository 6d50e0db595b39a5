"""All targets of the fuzzer."""

from tests.fuzz import calls, devices, files, kubelets, shortages, sockets

TARGETS = (
    *files.TARGETS,
    *calls.TARGETS,
    *kubelets.TARGETS,
    *sockets.TARGETS,
    *devices.TARGETS,
    *shortages.TARGETS,
)
