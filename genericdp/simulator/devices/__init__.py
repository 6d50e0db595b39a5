"""The device manager of the simulated kubelet: which devices are listed, allocated and saved."""
