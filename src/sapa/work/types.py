"""What the worker remembers of long work."""

from msgspec import Struct


class Rotation(Struct, frozen=True):
    """How far the installation's secrets are sealed with a new key."""

    key_id: str
    requested_at: str
    finished_at: str | None
    sealed_table: str
    company_id: int
    position: str
    resealed: int
    unreadable: int
