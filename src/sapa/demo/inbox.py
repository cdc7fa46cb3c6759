"""What the demo shop's agents work with."""

from datetime import date

from sapa.support.business_hours.types import DAYS, BusinessHoursIn, Holiday, OpenHours
from sapa.support.labels.types import LabelIn
from sapa.support.macros.types import MacroIn
from sapa.support.requests import TicketActions
from sapa.support.saved_replies.types import SavedReplyIn
from sapa.support.sla.types import SlaPolicyIn
from sapa.support.teams.types import AgentTeamIn
from sapa.support.views.types import ViewFilters, ViewIn

LABELS = (
    LabelIn(name="Keluhan", color="#b3261e"),
    LabelIn(name="Retur", color="#864c00"),
    LabelIn(name="Grosir", color="#1c5ca3"),
)
TEAMS = (AgentTeamIn(name="Layanan pelanggan"), AgentTeamIn(name="Gudang"))
SAVED_REPLIES = (
    SavedReplyIn(shortcut="halo", text="Halo {nama}, saya {agen}. Ada yang bisa kami bantu?"),
    SavedReplyIn(shortcut="resi", text="Pesanan {pesanan} sudah dikirim. Nomor resinya {resi}."),
    SavedReplyIn(shortcut="ongkir", text="Gratis ongkir untuk belanja di atas Rp 300.000, {nama}."),
)
VIEWS = (
    ViewIn(name="Mendesak", filters=ViewFilters(priority="urgent", snoozed=False, sort="waitingSince:asc")),
    ViewIn(name="Lewat target", filters=ViewFilters(breached=True)),
)
MACROS = (
    MacroIn(name="Tutup sebagai spam", actions=TicketActions(priority="low", resolve=True), note="Spam"),
    MacroIn(
        name="Minta foto",
        actions=TicketActions(snooze_minutes=60),
        reply="Halo {nama}, boleh kirim foto barangnya?",
    ),
)
POLICIES = (
    SlaPolicyIn(name="Mendesak", position=1, priorities=["urgent"], first_response_minutes=15, resolution_minutes=240),
    SlaPolicyIn(name="Biasa", position=2, first_response_minutes=60, resolution_minutes=1_440),
)
HOURS = BusinessHoursIn(
    weekly=[OpenHours(day=day, opens="08:00", closes="17:00" if day != "saturday" else "12:00") for day in DAYS[:6]],
    holidays=[Holiday(date=date(2026, 12, 25), name="Natal"), Holiday(date=date(2027, 1, 1), name="Tahun Baru")],
)
