"""Answers to those who ask the running daemon: `genericdp status`, `genericdp monitor`, Prometheus.

Does not belong here: what the answers say. `genericdp.core.status` decides that.
"""
