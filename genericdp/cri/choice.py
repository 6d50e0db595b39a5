"""Which of a node's container runtimes is the kubelet's: Docker's containerd may serve CRI beside it.

The rules of this file:

* The kubelet's runtime has pods that the kubelet lists. If several have some, the one that made one last has
  the kubelet: a kubelet that changes its runtime leaves pods in the old one, and makes them again.
* It is not known while none has such a pod, as before the first one of a node. Then all that answer count.
* One that is late may be that of the kubelet, so no other is taken for it unless that one has the pods.
"""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from genericdp.core.rules.settings import Settings
from genericdp.core.status.holdings import PodName
from genericdp.cri.runtime import ContainerRuntime, RuntimeSlowError, channel_to
from genericdp.cri.sockets import NOT_THAT_ONE, RuntimeUnavailableError, candidates
from genericdp.kubelet import podresources
from genericdp.kubelet.podresources import Listed


@dataclass(frozen=True, slots=True)
class Choice:
    """The container runtimes that may be the kubelet's.

    runtimes  one if it is known; otherwise all that answer, in the order of their sockets
    known     whether it is known
    listed    what the kubelet lists; None if it does not answer
    """

    runtimes: tuple[ContainerRuntime, ...]
    known: bool
    listed: Listed | None

    @property
    def lacks_pods(self) -> bool:
        """Whether none of them has a pod, although the kubelet lists some."""
        return not self.known and self.listed is not None and bool(self.listed.pods)


@asynccontextmanager
async def chosen(settings: Settings) -> AsyncIterator[Choice]:
    """The runtime on the socket of the setting `runtime_socket`, or those on the sockets that exist.

    Raises RuntimeUnavailableError if none answers.
    """
    async with AsyncExitStack() as stack:
        found = [
            ContainerRuntime(socket, await stack.enter_async_context(channel_to(socket)))
            for socket in candidates(settings.runtime_socket)
        ]
        listed = await podresources.listed(settings.pod_resources_socket)
        pods = listed.pods if listed is not None else frozenset()
        answers = await asyncio.gather(*(_met(each, pods) for each in found))
        made = {each: answer for each, answer in zip(found, answers, strict=True) if isinstance(answer, int)}
        if made:
            yield Choice((max(made, key=made.__getitem__),), known=True, listed=listed)
            return
        late = next((answer for answer in answers if isinstance(answer, RuntimeSlowError)), None)
        if late is not None:
            if len(found) > 1:
                late.hint = NOT_THAT_ONE
            raise late
        failures = [answer for answer in answers if isinstance(answer, RuntimeUnavailableError)]
        if len(failures) == len(found):
            raise failures[0]
        others = tuple(each for each, answer in zip(found, answers, strict=True) if answer is None)
        yield Choice(others, known=False, listed=listed)


async def _met(
    runtime: ContainerRuntime, pods: Collection[PodName]
) -> "int | RuntimeUnavailableError | None":
    """When it made the last of these pods, None without one, or why it cannot be asked."""
    try:
        await runtime.meet()
        return await runtime.made_last(pods)
    except RuntimeUnavailableError as error:
        return error
