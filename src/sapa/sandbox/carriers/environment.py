"""Shipping's test environment: every provider is connected to its simulator, with nothing stored."""

from collections.abc import Sequence

from sapa.context import AppContext
from sapa.sandbox.accounts import build_secret, find_company_id
from sapa.sandbox.areas import SUB_DISTRICTS, list_areas, list_paths
from sapa.shipping.carriers.interface import AreaPath, Carrier, CarrierArea
from sapa.shipping.carriers.registry import CARRIERS, list_adapters


class SandboxShipping:
    coverage_days = 1
    has_movable_clock = True
    breaks_circuits = False
    """Simulators fail on request, one shipment at a time."""

    def find_adapter(self, provider: str) -> str | None:
        return next((carrier.name for carrier in list_adapters(provider)), None)

    def find_token_owner(self, context: AppContext, token: str) -> tuple[int, str] | None:
        for adapter in CARRIERS if context.settings.secret_key else ():
            company_id = find_company_id(context, token, _purpose(adapter))
            if company_id is not None:
                return company_id, adapter
        return None

    def build_token(self, context: AppContext, company_id: int, adapter: str) -> str:
        """Simulators compute it themselves."""
        return build_secret(context, company_id, _purpose(adapter))

    def build_credentials(self, context: AppContext, company_id: int, carrier: Carrier) -> dict[str, str]:
        return {
            field.name: build_secret(context, company_id, f"{carrier.name}/{field.name}") for field in carrier.fields
        }

    async def get_address(self, context: AppContext, carrier: Carrier) -> str:
        """Never a carrier's real address, whatever is stored."""
        return f"{await context.loopback.address()}/sandbox/{carrier.name}"

    def find_sub_districts(self, district_id: int) -> Sequence[CarrierArea] | None:
        places = list_areas(SUB_DISTRICTS, district_id)
        return [CarrierArea(place.id, place.name, place.parent_id, place.zip) for place in places]

    def list_places(self, provider: str) -> Sequence[AreaPath] | None:
        return list_paths()


def _purpose(adapter: str) -> str:
    return f"hook/{adapter}"
