"""How far random tests go: a quarter of their examples in `make test`, all of them in `make test-long`."""

from hypothesis import settings

# How long an example takes says something of the machine, and nothing of the product.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("long", deadline=None, max_examples=100)


def is_long() -> bool:
    return settings.get_current_profile_name() == "long"


def examples(count: int) -> int:
    """So many in `make test-long`; for tests whose examples take longer than most."""
    return count if is_long() else -(-count // 4)
