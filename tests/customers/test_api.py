import httpx

from tests.factories import make_customer


async def test_a_customer_is_created_and_read_back(api: httpx.AsyncClient) -> None:
    made = await make_customer(api, firstName="Ayu")
    answer = await api.get(f"/customers/{made['id']}")
    assert answer.status_code == 200
    assert answer.json() == {"data": made}
