"""Limits of the operating system that several parts have to respect."""

#: The longest path of a unix socket, in bytes (unix(7): 108 with the final zero).
SOCKET_PATH_LIMIT = 107
