"""What the customers of a run are called, where they live and what they buy."""

FIRST_NAMES = """
    Adi Aditya Agus Ahmad Aisyah Ajeng Amelia Andi Anggun Anisa Arief Arini Asep Astuti Ayu Bagus Bambang Bayu Bima
    Budi Cahya Chandra Citra Damar Dewi Dian Dimas Dinda Dwi Edi Eka Endah Fajar Farhan Fitri Galih Gita Hadi Hana
    Hendra Ika Ilham Indah Intan Irfan Joko Kadek Kartika Ketut Komang Kurnia Laras Lestari Lina Made Maya Mega
    Mulyadi Nadia Nanda Nita Novi Nur Nyoman Panji Pradipta Puji Putra Putri Putu Rahma Rani Ratna Rendra Retno Rina
    Rini Rizky Sari Satria Sekar Sinta Siti Slamet Sri Surya Tasya Teguh Tiara Tri Utami Vina Wahyu Wati Wayan Wulan
    Yanti Yoga Yudi Yuni Zahra
""".split()

LAST_NAMES = """
    Abdullah Adiputra Alamsyah Anggraini Ardiansyah Aritonang Astuti Basuki Batubara Cahyono Damanik Darmawan
    Dewantara Fauzi Firmansyah Ginting Gunawan Habibie Hadiwijaya Hakim Halim Handayani Harahap Hardjono Hartono
    Hasibuan Herlambang Hidayat Hutabarat Hutagalung Hutapea Irawan Iskandar Jatmiko Kartawijaya Kuncoro Kurniawan
    Kusuma Kusumawati Laksmana Lesmana Limbong Lubis Mahendra Manullang Manurung Maulana Mulyani Munandar Nababan
    Nainggolan Nasution Nugraha Nugroho Oktaviani Pakpahan Panggabean Pangestu Pardede Permadi Permata Pranata
    Prasetya Prasetyo Pratama Pratiwi Prawira Purba Purnama Puspita Rachmawati Rahardjo Rahayu Rajagukguk Ramadhan
    Rangkuti Riyanto Safitri Samosir Santoso Saputra Saragih Sasmita Setiawan Siagian Sihombing Silalahi Simanjuntak
    Simatupang Sinaga Siregar Sitompul Sitorus Situmorang Soekarno Subagyo Sudirman Suganda Sugiarto Suharto Sukardi
    Sulistyo Sunarto Supriyadi Suryadi Susanto Sutanto Sutrisno Syahputra Tambunan Tampubolon Tanjung Tarigan Utomo
    Wardhana Wibisono Wibowo Wicaksono Widjaja Widodo Wijaya Winarto Wirawan Wulandari Yudhoyono Yulianto Zulkarnain
""".split()

CITIES = ["Bandung", "Denpasar", "Jakarta", "Makassar", "Malang", "Medan", "Padang", "Palembang", "Semarang",
          "Surabaya", "Surakarta", "Yogyakarta"]  # fmt: skip

TAGS = ["vip", "reseller", "newsletter", "bandung", "jakarta", "first-order"]

GOODS = ["Kopi Gayo 250 g", "Kopi Toraja 250 g", "Teh Melati", "Batik Parang", "Batik Mega Mendung", "Tas Anyaman",
         "Sambal Roa", "Keripik Tempe", "Madu Hutan", "Gula Aren", "Sarung Tenun", "Sabun Sereh"]  # fmt: skip
