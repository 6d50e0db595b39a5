"""Limits that the kernel sets and several layers check."""

#: The longest path of a unix socket, in bytes (unix(7): 108 with the zero at the end).
SOCKET_PATH_LIMIT = 107
