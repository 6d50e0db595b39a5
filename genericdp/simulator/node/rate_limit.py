"""The rate limit of the kubelet's PodResources API: one token bucket for all clients."""

#: kubelet 1.36, `pkg/kubelet/apis/podresources`: DefaultQPS and DefaultBurstTokens.
CALLS_PER_SECOND = 100.0
BURST = 10


class TokenBucket:
    """A token bucket, full at first."""

    def __init__(self, now: float, *, rate: float = CALLS_PER_SECOND, burst: int = BURST) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._at = now

    def take(self, now: float) -> bool:
        """Take a token. Returns False when there is none: the call is rejected."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True
