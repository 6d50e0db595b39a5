"""Everything that speaks to the kubelet: messages, one plugin per resource, its registration.

Does not belong here: which devices there are and what a container gets. `core` decides that.
"""
