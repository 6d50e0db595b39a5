"""Pods on the simulated node: admission to running containers, and what the node tells about them."""
