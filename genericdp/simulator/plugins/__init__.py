"""The plugins that are connected to the simulated kubelet, and how they register."""
