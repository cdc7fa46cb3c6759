"""The conversations of a shop, made inside the database: every contact is a customer with one ticket of ten messages.
The newest five hundred tickets are active: people wait in three of five. A quarter has a label, a third a team."""

from bench.loyalty.owner import Connection
from bench.names import CITIES, FIRST_NAMES, GOODS
from sapa.support.types import LABEL_ID, SLA_POLICY_ID, TEAM_ID

MESSAGES_EACH = 10
ACTIVE = 500
LABELS = ["Grosir", "Komplain", "Pengiriman", "Retur", "Stok", "VIP"]
TEAMS = ["Gudang", "Keuangan", "Penjualan"]

# Chat words, the common ones first: the further a word stands, the rarer it is picked.
WORDS = """
    kak saya ada masih yang sudah mau bisa pesanan tidak halo terima kasih kirim berapa ini untuk kapan harga
    baik sampai barang stok belum tolong alamat warna ukuran bayar transfer resi ongkir paket kurir besok hari toko
    tanya juga dengan nanti dong lagi mohon tunggu segera cek kami silakan maaf foto rusak tukar kembali uang garansi
    nomor telepon diskon promo grosir reseller minimal order satu dua tiga kilo gram bungkus kotak kemasan rasa manis
    pahit gelap terang sangrai bubuk biji giling halus kasar alat seduh filter kertas cangkir gelas hadiah ulang tahun
    kartu ucapan pita jadwal libur buka tutup cabang ambil sendiri antar titip satpam tetangga rumah kantor gudang
    bandara pelabuhan kapal pesawat truk motor sepeda gerimis banjir macet lambat cepat tepat hilang ketemu komplain
    puas kecewa bintang ulasan rekomendasi langganan bulanan mingguan tagihan faktur pajak kuitansi stempel tanda
    tangan perjanjian konsinyasi
""".split()

_TAIL = "lpad(to_hex({}), 8, '0') || left(md5('{}' || {}), 16)"
_CUSTOMER = "'cust_01' || " + _TAIL.format("n", "customer", "n")
_CONTACT = "'ctc_01' || " + _TAIL.format("n", "contact", "n")
_TICKET = "'tkt_01' || " + _TAIL.format("n", "ticket", "n")

CONTACTS = f"""
    INSERT INTO contacts (company_id, id, customer_id, name)
    SELECT $1, {_CONTACT}, {_CUSTOMER}, ($3::text[])[n % cardinality($3::text[]) + 1]
      FROM generate_series(1, $2::bigint) AS n"""

IDENTITIES = f"""
    INSERT INTO contact_identities (company_id, kind, key, contact_id, spellings)
    SELECT $1, 'phone', '62811' || lpad(n::text, 8, '0'), {_CONTACT}, ARRAY['62811' || lpad(n::text, 8, '0')]
      FROM generate_series(1, $2::bigint) AS n"""

ADD_LABELS = """
    INSERT INTO ticket_labels (company_id, id, name, color)
    SELECT $1, id, name, '#0f766e' FROM unnest($2::text[], $3::text[]) AS named (id, name)"""

ADD_TEAMS = """
    INSERT INTO teams (company_id, id, name, agent_ids, auto_assign)
    SELECT $1, id, name, (SELECT array_agg(a.id) FROM agents a WHERE a.company_id = $1), false
      FROM unnest($2::text[], $3::text[]) AS named (id, name)"""

_INSTANT = "to_char(({}) AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"
_SLA = f"""json_build_object(
               'policyId', '{SLA_POLICY_ID.new()}',
               'firstResponseDue', {_INSTANT.format("at + interval '4 hours'")}, 'firstRespondedAt', NULL,
               'resolutionDue', {_INSTANT.format("at + interval '1 day'")}, 'breached', '[]'::json)"""

TICKETS = f"""
    INSERT INTO tickets (company_id, id, source, connection_id, contact_id, customer_id, identity, client_number,
                         connected_number, status, agent_id, waiting_since, number, last_message, last_message_at,
                         silent_since, resolved_at, resolved_reason, created_at, updated_at, label_ids, team_id,
                         priority, sla)
    SELECT $1, {_TICKET}, 'MSGAPP_CLOUD', 'none', {_CONTACT}, {_CUSTOMER}, '62811' || lpad(n::text, 8, '0'),
           '+62811' || lpad(n::text, 8, '0'), '+628110000000',
           CASE WHEN n > {ACTIVE} THEN 'resolved' WHEN n % 5 < 2 THEN 'open' ELSE 'assigned' END,
           CASE WHEN n > {ACTIVE} OR n % 5 >= 2 THEN (SELECT min(id) FROM agents WHERE company_id = $1) + n % 20 END,
           CASE WHEN n <= {ACTIVE} AND n % 5 < 3 THEN at END, 20, 'Masih ada kak?', at, at,
           CASE WHEN n > {ACTIVE} THEN at END, CASE WHEN n > {ACTIVE} THEN 'manual' END, at, at,
           CASE WHEN n % 4 = 0 THEN ($3::text[])[n % {len(LABELS)} + 1:n % {len(LABELS)} + 1] ELSE '{{}}' END,
           CASE WHEN n % 3 = 0 THEN ($4::text[])[n % {len(TEAMS)} + 1] END,
           CASE n % 10 WHEN 0 THEN 'urgent' WHEN 1 THEN 'high' ELSE 'normal' END,
           CASE WHEN n <= {ACTIVE} THEN {_SLA} END
      FROM (SELECT n, now() - n * interval '1 minute' AS at FROM generate_series(1, $2::bigint) AS n) AS numbered"""

MESSAGES = f"""
    INSERT INTO messages (company_id, id, direction, source, connection_id, contact_id, customer_id, identity_kind,
                          identity, client_number, connected_number, type, body, feature_source, status, created_at,
                          accepted_at, sent_at, delivered_at, read_at, replied_at, ticket_id)
    SELECT $1, gen_random_uuid(), CASE WHEN is_out THEN 'out' ELSE 'in' END, 'MSGAPP_CLOUD', 'none', {_CONTACT},
           {_CUSTOMER}, 'phone', number, '+' || number, '+628110000000', 'text', text,
           CASE WHEN is_out THEN 'INBOX' ELSE 'MSGAPP_CLOUD' END, CASE WHEN is_out THEN 'read' ELSE 'received' END, at,
           reported, reported, reported, reported, CASE WHEN n % 4 = 0 THEN reported END, {_TICKET}
      FROM (SELECT n, turn % 2 = 0 AS is_out, '62811' || lpad(n::text, 8, '0') AS number, at,
                   CASE WHEN turn % 2 = 0 THEN at END AS reported,
                   (SELECT string_agg(($3::text[])[1 + floor(power(random(), 3) * cardinality($3::text[]))::int], ' ')
                      FROM generate_series(0, 3 + (n + turn) % 9) WHERE n > 0 AND turn > 0)
                   || CASE WHEN turn = 3 THEN ' inv-' || n ELSE '' END AS text
              FROM generate_series(1, $2::bigint) AS n
             CROSS JOIN generate_series(1, {MESSAGES_EACH}) AS turn
             CROSS JOIN LATERAL (
                   SELECT now() - n * interval '1 minute' - ({MESSAGES_EACH} - turn) * interval '5 seconds' AS at) AS t
           ) AS written"""

CELLS = """
    INSERT INTO counter_cells (company_id, counter, cell, total)
    SELECT $1, 'tickets', cell, count(*) FROM tickets WHERE company_id = $1 GROUP BY cell
     UNION ALL
    SELECT $1, 'ticket_labels', '', count(*) FROM ticket_labels WHERE company_id = $1
     UNION ALL
    SELECT $1, 'teams', '', count(*) FROM teams WHERE company_id = $1"""

INDEXES = ("messages_text_idx", "messages_ticket_idx")
"""Built once the rows are there."""


async def seed_talk(db: Connection, company_id: int, messages: int) -> list[str]:
    """Needs as many customers as there are tickets, and agents. Returns the words, the common ones first."""
    words = [*WORDS, *(word.lower() for name in (*GOODS, *CITIES, *FIRST_NAMES) for word in name.split())]
    count = messages // MESSAGES_EACH
    label_ids, team_ids = [LABEL_ID.new() for _ in LABELS], [TEAM_ID.new() for _ in TEAMS]
    definitions = [await db.fetchval("SELECT pg_get_indexdef($1::regclass)", name) for name in INDEXES]
    for name in INDEXES:
        await db.execute(f"DROP INDEX {name}")
    await db.execute(CONTACTS, company_id, count, FIRST_NAMES)
    await db.execute(IDENTITIES, company_id, count)
    await db.execute(ADD_LABELS, company_id, label_ids, LABELS)
    await db.execute(ADD_TEAMS, company_id, team_ids, TEAMS)
    await db.execute(TICKETS, company_id, count, label_ids, team_ids)
    await db.execute(MESSAGES, company_id, count, words)
    await db.execute(CELLS, company_id)
    for definition in definitions:
        await db.execute(definition)
    return words
