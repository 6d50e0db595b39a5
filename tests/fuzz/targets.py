"""All targets of the fuzzer."""

from tests.fuzz import calls, files, kubelets

TARGETS = (*files.TARGETS, *calls.TARGETS, *kubelets.TARGETS)
