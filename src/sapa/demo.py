"""A demo company's data: believable, the same at every run, made through the same actions as the API's."""

import random
from collections.abc import Callable, Iterator

from sapa.access import actions as access
from sapa.access.first_start import DEMO_COMPANY
from sapa.company import Company
from sapa.customers import actions as customers
from sapa.customers.types import AddressIn, CustomerPatch, Subscription
from sapa.db.pool import Database

CUSTOMERS = 2_000
BATCH = 100

FIRST_NAMES = (
    "Ayu Budi Citra Dewi Eko Fitri Galih Hana Indra Joko Kartika Lestari Made Nurul Oki Putri Rizky Sari Teguh Utami "
    "Vina Wahyu Yoga Zahra Agus Bayu Dian Eka Farhan Gita"
).split()
LAST_NAMES = (
    "Santoso Wijaya Pratama Hidayat Nugroho Saputra Kusuma Siregar Simanjuntak Hartono Setiawan Rahmawati Anggraini "
    "Permana Susanto Lubis Nasution Wibowo Handayani Maulana"
).split()
CITIES = (
    ("Jakarta Selatan", "DKI Jakarta", "12190"),
    ("Bandung", "Jawa Barat", "40111"),
    ("Surabaya", "Jawa Timur", "60271"),
    ("Yogyakarta", "DI Yogyakarta", "55281"),
    ("Semarang", "Jawa Tengah", "50132"),
    ("Medan", "Sumatera Utara", "20111"),
    ("Makassar", "Sulawesi Selatan", "90111"),
    ("Denpasar", "Bali", "80232"),
)
STREETS = ("Merdeka", "Sudirman", "Diponegoro", "Gajah Mada", "Ahmad Yani", "Kartini", "Veteran", "Melati")
TAGS = ("vip", "grosir", "member", "newsletter", "reseller")


async def fill(database: Database, report: Callable[[int, int], None]) -> Company:
    """Fills the demo company's test environment; what is there already stays as it is."""
    async with database.transaction() as tx:
        company = await access.find_or_create_company(tx, DEMO_COMPANY, "test")
    people = list(build_customers())
    for start in range(0, len(people), BATCH):
        async with database.transaction() as tx:
            for external_id, person in people[start : start + BATCH]:
                await customers.upsert(tx, company, external_id, person)
        report(min(start + BATCH, len(people)), len(people))
    return company


def build_customers() -> Iterator[tuple[str, CustomerPatch]]:
    """Each customer with the id it has in the imagined shop."""
    dice = random.Random(17)  # noqa: S311 - the same people every time
    for number in range(1, CUSTOMERS + 1):
        yield f"demo-{number:05d}", _person(dice, number)


def _person(dice: random.Random, number: int) -> CustomerPatch:
    first, last = dice.choice(FIRST_NAMES), dice.choice(LAST_NAMES)
    city, province, zip_code = dice.choice(CITIES)
    address = AddressIn(
        address1=f"Jl. {dice.choice(STREETS)} No. {dice.randint(1, 250)}",
        city=city,
        province=province,
        country="Indonesia",
        zip=zip_code,
    )
    return CustomerPatch(
        email=f"{first}.{last}.{number}@example.com".lower(),
        phone_number=f"+62812{number + 10_000_000:08d}",
        first_name=first,
        last_name=last,
        tags=sorted(dice.sample(TAGS, dice.randint(0, 2))),
        addresses=[address],
        additional_data={"visits": dice.randint(0, 40), "source": dice.choice(("toko", "online", "bazar"))},
        subscription_status=[Subscription("CRM", dice.choice(("subscribe", "subscribe", "unsubscribe")))],
    )
