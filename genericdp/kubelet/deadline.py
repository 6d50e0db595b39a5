"""How long a call to the kubelet may take, whatever becomes of grpc."""

import asyncio

#: How much later than grpc to give up.
_LATER_S = 2.0


def enforced(timeout_s: float) -> asyncio.Timeout:
    """For a call with this timeout: a context that raises TimeoutError if grpc does not.

    Without a thread to run it, grpc's own deadline never comes.
    """
    return asyncio.timeout(timeout_s + _LATER_S)
