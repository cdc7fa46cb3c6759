"""Provinces → cities → districts with their centre → sub-districts with their postal code."""

from collections.abc import Mapping, Sequence

Villages = Sequence[tuple[str, str]]
Districts = Mapping[tuple[int, str, float, float], Villages]

PLACES: Mapping[tuple[int, str], Mapping[tuple[int, str], Districts]] = {
    (31, "DKI Jakarta"): {
        (3171, "Kota Jakarta Pusat"): {
            (317101, "Gambir", -6.1714, 106.8175): [
                ("Gambir", "10110"),
                ("Cideng", "10150"),
                ("Petojo Utara", "10130"),
            ],
            (317106, "Menteng", -6.1963, 106.8346): [
                ("Menteng", "10310"),
                ("Pegangsaan", "10320"),
                ("Cikini", "10330"),
                ("Kebon Sirih", "10340"),
                ("Gondangdia", "10350"),
            ],
            (317107, "Tanah Abang", -6.2043, 106.8117): [
                ("Gelora", "10270"),
                ("Bendungan Hilir", "10210"),
                ("Petamburan", "10260"),
            ],
        },
        (3172, "Kota Jakarta Utara"): {
            (317201, "Penjaringan", -6.1215, 106.7836): [("Penjaringan", "14440"), ("Pluit", "14450")],
            (317206, "Kelapa Gading", -6.1604, 106.9055): [
                ("Kelapa Gading Barat", "14240"),
                ("Pegangsaan Dua", "14250"),
            ],
        },
        (3173, "Kota Jakarta Barat"): {
            (317302, "Grogol Petamburan", -6.1637, 106.7889): [
                ("Grogol", "11450"),
                ("Tomang", "11440"),
                ("Tanjung Duren Utara", "11470"),
            ],
            (317305, "Kebon Jeruk", -6.1926, 106.7698): [("Kebon Jeruk", "11530"), ("Kedoya Selatan", "11520")],
        },
        (3174, "Kota Jakarta Selatan"): {
            (317401, "Tebet", -6.2297, 106.8493): [
                ("Tebet Barat", "12810"),
                ("Tebet Timur", "12820"),
                ("Manggarai", "12850"),
            ],
            (317402, "Setiabudi", -6.2166, 106.8302): [
                ("Setiabudi", "12910"),
                ("Karet", "12920"),
                ("Kuningan Timur", "12950"),
            ],
            (317407, "Kebayoran Baru", -6.2431, 106.7997): [
                ("Gunung", "12120"),
                ("Melawai", "12160"),
                ("Senayan", "12190"),
            ],
        },
        (3175, "Kota Jakarta Timur"): {
            (317503, "Jatinegara", -6.2262, 106.8679): [("Bali Mester", "13310"), ("Kampung Melayu", "13320")],
            (317507, "Duren Sawit", -6.2360, 106.9153): [("Duren Sawit", "13440"), ("Pondok Bambu", "13430")],
        },
    },
    (32, "Jawa Barat"): {
        (3271, "Kota Bogor"): {
            (327103, "Bogor Tengah", -6.5950, 106.7934): [("Paledang", "16122"), ("Pabaton", "16121")],
        },
        (3273, "Kota Bandung"): {
            (327302, "Coblong", -6.8838, 107.6152): [
                ("Dago", "40135"),
                ("Lebak Gede", "40132"),
                ("Cipaganti", "40131"),
            ],
            (327307, "Sukajadi", -6.8886, 107.5917): [
                ("Sukabungah", "40162"),
                ("Pasteur", "40161"),
                ("Cipedes", "40162"),
            ],
            (327309, "Sumur Bandung", -6.9168, 107.6158): [("Braga", "40111"), ("Merdeka", "40113")],
            (327311, "Lengkong", -6.9344, 107.6229): [("Malabar", "40262"), ("Turangga", "40264")],
        },
        (3275, "Kota Bekasi"): {
            (327504, "Bekasi Selatan", -6.2607, 106.9770): [("Pekayon Jaya", "17148"), ("Kayuringin Jaya", "17144")],
        },
        (3276, "Kota Depok"): {
            (327606, "Beji", -6.3757, 106.8186): [("Beji", "16421"), ("Pondok Cina", "16424")],
        },
    },
    (33, "Jawa Tengah"): {
        (3372, "Kota Surakarta"): {
            (337205, "Banjarsari", -7.5472, 110.8184): [("Manahan", "57139"), ("Mangkubumen", "57139")],
            (337201, "Laweyan", -7.5660, 110.7960): [("Laweyan", "57148"), ("Purwosari", "57142")],
        },
        (3374, "Kota Semarang"): {
            (337401, "Semarang Tengah", -6.9811, 110.4200): [("Sekayu", "50132"), ("Miroto", "50134")],
            (337411, "Banyumanik", -7.0675, 110.4197): [("Banyumanik", "50264"), ("Srondol Wetan", "50263")],
        },
    },
    (34, "DI Yogyakarta"): {
        (3404, "Kabupaten Sleman"): {
            (340407, "Depok", -7.7616, 110.3967): [
                ("Caturtunggal", "55281"),
                ("Condongcatur", "55283"),
                ("Maguwoharjo", "55282"),
            ],
            (340406, "Mlati", -7.7340, 110.3590): [("Sinduadi", "55284"), ("Sendangadi", "55285")],
        },
        (3471, "Kota Yogyakarta"): {
            (347103, "Gondokusuman", -7.7865, 110.3830): [("Terban", "55223"), ("Kotabaru", "55224")],
            (347112, "Kraton", -7.8077, 110.3614): [("Kadipaten", "55132"), ("Patehan", "55133")],
        },
    },
    (35, "Jawa Timur"): {
        (3573, "Kota Malang"): {
            (357305, "Lowokwaru", -7.9420, 112.6190): [("Dinoyo", "65144"), ("Jatimulyo", "65141")],
        },
        (3578, "Kota Surabaya"): {
            (357807, "Genteng", -7.2600, 112.7450): [("Genteng", "60275"), ("Embong Kaliasin", "60271")],
            (357808, "Gubeng", -7.2780, 112.7530): [("Gubeng", "60281"), ("Airlangga", "60286")],
            (357804, "Wonokromo", -7.2980, 112.7380): [("Darmo", "60241"), ("Wonokromo", "60243")],
        },
    },
    (36, "Banten"): {
        (3671, "Kota Tangerang"): {
            (367101, "Tangerang", -6.1780, 106.6319): [("Sukasari", "15118"), ("Cikokol", "15117")],
        },
        (3674, "Kota Tangerang Selatan"): {
            (367401, "Serpong", -6.3160, 106.6640): [("Serpong", "15310"), ("Rawa Buntu", "15318")],
        },
    },
    (12, "Sumatera Utara"): {
        (1271, "Kota Medan"): {
            (127120, "Medan Petisah", 3.5936, 98.6640): [("Petisah Tengah", "20112"), ("Sekip", "20113")],
        },
    },
    (51, "Bali"): {
        (5103, "Kabupaten Badung"): {
            (510301, "Kuta", -8.7237, 115.1752): [("Kuta", "80361"), ("Legian", "80361")],
        },
        (5171, "Kota Denpasar"): {
            (517101, "Denpasar Selatan", -8.6905, 115.2210): [("Sanur", "80228"), ("Renon", "80226")],
            (517103, "Denpasar Barat", -8.6630, 115.1970): [("Pemecutan", "80119"), ("Dauh Puri", "80113")],
        },
    },
    (73, "Sulawesi Selatan"): {
        (7371, "Kota Makassar"): {
            (737109, "Panakkukang", -5.1490, 119.4400): [("Panaikang", "90231"), ("Masale", "90231")],
        },
    },
}
