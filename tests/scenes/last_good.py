"""Texts of rule files that are kept at once, as `Reloading` does it on a fast disk."""

from genericdp.errors import GenericdpError
from genericdp.files.last_good import LastGood


def save_next(last_good: LastGood) -> bool:
    """Save the next text or remove it, where that is due; False if nothing is. Raises GenericdpError."""
    due = last_good.next()
    if due is None:
        return False
    try:
        identity = last_good.carry_out(due)
    except GenericdpError:
        last_good.see_failed(due)
        raise
    last_good.see_done(due, identity)
    return True
