"""Writing the smallest rule that takes exactly the devices that an operator points at."""
