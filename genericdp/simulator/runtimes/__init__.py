"""The simulated container runtimes: containerd or CRI-O above runc."""
