"""A dictionary of areas of the size of Indonesia's, with names that repeat as theirs do. The same at every run."""

from collections.abc import Iterator
from random import Random

from sapa.shipping.areas.types import AreaRow

PROVINCES, CITIES, DISTRICTS, VILLAGES = 38, 514, 7_285, 83_762

STARTS = (
    "Suka Sido Karang Tanjung Sumber Kampung Batu Sungai Tegal Pulau Gunung Muara Bangun Banjar Bukit Tanah Lubuk "
    "Pasir Pondok Rawa Simpang Teluk Ujung Wono Kali Kedung Kebon Ciba Cika Ciwa Purwo Margo Mekar Tirto Giri Bumi"
).split()
ENDS = (
    "mulyo jaya maju rejo sari agung baru indah makmur mukti harjo dadi raya tengah wangi asih luhur manah lama utara "
    "selatan barat timur hilir hulu dalam besar kecil panjang tinggi putih hitam merah jati waru bungur ranji lestari"
).split()
EXTRA = "I II III Satu Dua Baru Lama Kulon Wetan Kidul Lor Hilir Hulu Barat Timur Utara Selatan Tengah".split()
SYLLABLES = (
    "ba be bo da du ga gi ka ke ko la le lo ma me mo na ne pa pe ra re ri ro sa se si ta te ti to wa wi ya yu".split()
)
REGIONS = "Jawa Sumatera Kalimantan Sulawesi Nusa Papua Maluku Banten Bali Riau Lampung Jambi Aceh Bengkulu".split()


def build_areas() -> list[AreaRow]:
    random = Random(7)
    return list(_build(random))


def _build(random: Random) -> Iterator[AreaRow]:
    provinces = [11 + n for n in range(PROVINCES)]
    for n, code in enumerate(provinces):
        yield AreaRow(code, 1, 0, f"{REGIONS[n % len(REGIONS)]} {random.choice(EXTRA[-6:])}")
    cities = [provinces[n % PROVINCES] * 100 + 1 + n // PROVINCES for n in range(CITIES)]
    for code in cities:
        yield AreaRow(code, 2, code // 100, f"{random.choice(['Kabupaten', 'Kabupaten', 'Kota'])} {_name(random)}")
    districts = [cities[n % CITIES] * 100 + 1 + n // CITIES for n in range(DISTRICTS)]
    for code in districts:
        yield AreaRow(code, 3, code // 100, _name(random))
    for n in range(VILLAGES):
        code = districts[n % DISTRICTS] * 10_000 + 1_001 + n // DISTRICTS
        yield AreaRow(code, 4, code // 10_000, _name(random), f"{10_000 + n % DISTRICTS * 12 % 89_999:05}")


def _name(random: Random) -> str:
    """A common name, one of a few thousand, or one of its own."""
    kind = random.random()
    if kind < 0.5:
        name = random.choice(STARTS) + random.choice(ENDS)
    elif kind < 0.7:
        name = f"{random.choice(STARTS)} {random.choice(ENDS).title()}"
    else:
        name = "".join(random.choices(SYLLABLES, k=random.choice([2, 3, 3, 4]))).title()
    return f"{name} {random.choice(EXTRA)}" if random.random() < 0.2 else name
