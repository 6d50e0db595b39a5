"""Why a udev device is offered or not, and what a container gets."""
