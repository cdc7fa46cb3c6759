"""What differs for shipping between a live company and a test environment. It is decided once, in `get_environment`."""

import secrets
from collections.abc import Sequence
from typing import Protocol

from sapa.context import AppContext
from sapa.ports import Port
from sapa.shipping.carriers.interface import AreaPath, Carrier, CarrierArea
from sapa.values.company import Company


class ShippingEnvironment(Protocol):
    """How a company reaches carriers."""

    @property
    def coverage_days(self) -> int:
        """How many days a carrier's list of areas stays fresh."""

    @property
    def has_movable_clock(self) -> bool:
        """Whether the company's clock can be set back, so that stored events may lie in its future."""

    @property
    def breaks_circuits(self) -> bool:
        """Whether a carrier that keeps failing is not called for a while."""

    def find_adapter(self, provider: str) -> str | None:
        """The adapter that serves a provider without a stored account."""

    def find_token_owner(self, context: AppContext, token: str) -> tuple[int, str] | None:
        """The company and the adapter of a callback token that is not stored."""

    def build_token(self, context: AppContext, company_id: int, adapter: str) -> str:
        """The last path segment of the callback address."""

    def build_credentials(self, context: AppContext, company_id: int, carrier: Carrier) -> dict[str, str]:
        """Credentials that the environment supplies."""

    async def get_address(self, context: AppContext, carrier: Carrier) -> str:
        """The base URL of the carrier's API."""

    def find_sub_districts(self, district_id: int) -> Sequence[CarrierArea] | None:
        """The sub-districts of a district; None if only the coverage cache can list them."""

    def list_places(self, provider: str) -> Sequence[AreaPath] | None:
        """All places that a search looks through; None if it looks through the dictionary."""


class LiveShipping:
    coverage_days = 7
    has_movable_clock = False
    breaks_circuits = True

    def find_adapter(self, provider: str) -> str | None:
        return None

    def find_token_owner(self, context: AppContext, token: str) -> tuple[int, str] | None:
        return None

    def build_token(self, context: AppContext, company_id: int, adapter: str) -> str:
        return secrets.token_urlsafe(24)

    def build_credentials(self, context: AppContext, company_id: int, carrier: Carrier) -> dict[str, str]:
        return {}

    async def get_address(self, context: AppContext, carrier: Carrier) -> str:
        return context.settings.upstreams.get(carrier.name) or carrier.address

    def find_sub_districts(self, district_id: int) -> Sequence[CarrierArea] | None:
        return None

    def list_places(self, provider: str) -> Sequence[AreaPath] | None:
        return None


LIVE: ShippingEnvironment = LiveShipping()
TEST: Port[ShippingEnvironment] = Port("shipping's test environment")


def get_environment(company: Company) -> ShippingEnvironment:
    return TEST.installed if company.is_test else LIVE
