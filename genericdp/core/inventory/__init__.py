"""From udev devices to the devices that each resource offers."""
