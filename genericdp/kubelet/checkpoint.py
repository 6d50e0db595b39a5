"""Reads the checkpoint of the kubelet's device manager, `kubelet_internal_checkpoint`.

The rules of this file:

* It is not an API. What cannot be read counts as empty, and then only PodResources says who holds what.
* It names every container that got devices, also the init containers that PodResources leaves out (kubelet
  1.36, `podDevices.toCheckpointData`).
* The kubelet writes it after each list of a plugin and each allocation, so it may name pods that have gone.
  Those have no directory any more.
"""

import json
import os
from typing import Any

NAME = "kubelet_internal_checkpoint"


def ids_in(directory: str) -> frozenset[str]:
    """The ids that containers of existing pods got, of all resources.

    directory  the kubelet's device plugin directory; the directories of the pods are beside it, in `pods`
    """
    pods = os.path.join(os.path.dirname(os.path.normpath(directory)), "pods")
    found: set[str] = set()
    try:
        existing = {entry.name for entry in os.scandir(pods)}
        with open(os.path.join(directory, NAME), encoding="utf-8") as file:
            entries = json.load(file)["Data"]["PodDeviceEntries"]
        for entry in entries or ():
            if entry["PodUID"] in existing:
                found.update(_ids(entry["DeviceIDs"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return frozenset()
    return frozenset(found)


def _ids(by_numa_node: Any) -> list[str]:
    """The ids of an entry: NUMA node -> ids (kubelet 1.20 and later), or a list of ids."""
    lists = by_numa_node.values() if isinstance(by_numa_node, dict) else (by_numa_node,)
    return [id_ for ids in lists for id_ in ids]
