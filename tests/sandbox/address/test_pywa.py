"""pywa, a WhatsApp library that others wrote, uses the simulator instead of Meta."""

import base64
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from aiohttp import web
from pywa import errors
from pywa_async import handlers
from pywa_async.client import WhatsApp
from pywa_async.types.callback import Button, FlowButton, Section, SectionList, SectionRow, URLButton
from pywa_async.types.flows import FlowActionType, FlowStatus
from pywa_async.types.templates import (
    BodyText,
    Buttons,
    ParamFormat,
    Template,
    TemplateCategory,
    TemplateLanguage,
)
from pywa_async.types.templates import URLButton as TemplateLink

from sapa.sandbox.channels.whatsapp_contents import CONTENTS
from tests.conftest import TLS
from tests.http.wire import eventually
from tests.sandbox.address.outside import CUSTOMER, Json, OutsideProgram

VERIFY_TOKEN = "pywa"
PICTURE = "https://shop.example/kopi.png"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
KINDS: Json = {
    "order": {"items": [{"productId": "GAYO", "quantity": 2, "price": 75000}], "text": "Cepat ya"},
    "flow": {"data": {"city": "Bandung"}, "token": "t-1"},
    "location": {"latitude": -6.175, "longitude": 106.827, "name": "Monas"},
    "contactCards": [{"name": "Budi", "phone": "+62 811", "email": "budi@example.com"}],
    "referral": {"sourceId": "1202", "headline": "Kopi baru", "imageUrl": "https://cdn.example/a.jpg", "ctwaClid": "x"},
    "product": {"productId": "GAYO", "catalogId": "1948"},
    "forwarded": True,
    "preference": "stop",
}
OF_A_MESSAGE: Json = {"edit": {"text": "Dua kopi"}, "reaction": {"emoji": "👍"}, "revocation": {}}
BESIDE = ("referral", "product", "forwarded")
WITHOUT_A_CLASS = {"error", "unknown"}
"""Of what has no class in pywa: errors of the account without a message, and kinds that do not exist."""


class PywaBot:
    """A client of pywa behind a server of its own."""

    def __init__(self, program: OutsideProgram, source: str = "MSGAPP_CLOUD") -> None:
        account, credentials = program.accounts[source]["account"], program.accounts[source]["credentials"]
        session = httpx.AsyncClient(timeout=120, verify=TLS)
        self.client = WhatsApp(
            phone_id=account["phone_number_id"],
            token=credentials["access_token"],
            waba_id=account["waba_id"],
            app_id=int(account["app_id"]),
            app_secret=credentials["app_secret"],
            verify_token=VERIFY_TOKEN,
            session=session,
            server=None,
        )
        session.base_url = program.accounts[source]["address"]
        self.updates: list[Any] = []
        self.posts = 0
        kinds = [
            getattr(handlers, name)
            for name in dir(handlers)
            if name.endswith("Handler") and name not in {"Handler", "RawUpdateHandler", "FlowRequestHandler"}
        ]
        self.client.add_handlers(*(kind(self._keep) for kind in kinds))

    async def _keep(self, _: WhatsApp, update: Any) -> None:
        self.updates.append(update)

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET":
            query = request.query
            text, status = await self.client.webhook_challenge_handler(
                query["hub.verify_token"], query["hub.challenge"]
            )
            return web.Response(text=text, status=status)
        body = await request.read()
        self.posts += 1
        refusal = await self.client.webhook_update_validator(body, request.headers["X-Hub-Signature-256"])
        answer, status = refusal or await self.client.webhook_update_handler(body)
        return web.Response(text=answer, status=status)

    async def wait_for(self, kind: str, count: int = 1) -> list[Any]:
        """Updates of this class, once there are so many."""

        async def look() -> list[Any] | None:
            found = [update for update in self.updates if type(update).__name__ == kind]
            return found if len(found) >= count else None

        return await eventually(look)


@pytest.fixture
async def bot(called_back: OutsideProgram, caplog: pytest.LogCaptureFixture) -> AsyncIterator[PywaBot]:
    """Subscribed to all callbacks. An update that pywa cannot read is logged as an error: there must be none."""
    caplog.set_level(logging.WARNING, logger="pywa")
    opened = PywaBot(called_back)
    runner = web.ServerRunner(web.Server(opened.serve), handle_signals=False, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    try:
        subscribed = await opened.client.override_phone_callback_url(f"http://{host}:{port}/", VERIFY_TOKEN)
        assert subscribed.success if hasattr(subscribed, "success") else subscribed
        yield opened
        await eventually(lambda: _is_quiet(opened))
        assert len(opened.updates) == opened.posts
        assert [record.getMessage() for record in caplog.records if record.name.startswith("pywa")] == []
    finally:
        await opened.client.api._session.aclose()
        await runner.cleanup()


async def _is_quiet(bot: PywaBot) -> bool | None:
    """Every post became an update."""
    return True if bot.posts == len(bot.updates) else None


async def test_pywa_sends_every_kind_and_reads_every_report(bot: PywaBot, called_back: OutsideProgram) -> None:
    await called_back.receive()
    (message,) = await bot.wait_for("Message")
    assert (message.text, message.from_user.wa_id) == ("Halo", CUSTOMER.removeprefix("+"))
    assert message.from_user.bsuid == f"ID.{CUSTOMER.removeprefix('+')}"
    wa, to = bot.client, message.from_user.wa_id
    replied = await message.reply("Halo juga", tracker="order-1")
    sent = [
        replied,
        await wa.send_message(to, "Cocok?", header="H", footer="F", buttons=[Button("Ya", "y"), Button("Tidak", "n")]),
        await wa.send_message(to, "Buka", buttons=URLButton("Toko", "https://shop.example")),
        await wa.send_message(
            to, "Pilih",
            buttons=SectionList("Buka", [Section("Kopi", [SectionRow("Gayo", "gayo", "Aceh")])]),
        ),
        await wa.send_message(
            to, "Isi",
            buttons=FlowButton(
                title="Isi", flow_id="123", flow_token="t", mode=FlowStatus.PUBLISHED,
                flow_action_type=FlowActionType.NAVIGATE, flow_action_screen="S1",
            ),
        ),
        await wa.send_image(to, PICTURE, caption="Kopi"),
        await wa.send_image(to, PNG, mime_type="image/png"),
        await wa.send_image(to, PICTURE, caption="Kopi", buttons=[Button("Beli", "buy")]),
        await wa.send_video(to, "https://shop.example/kopi.mp4"),
        await wa.send_document(to, "https://shop.example/nota.pdf", filename="nota.pdf", caption="Nota"),
        await wa.send_audio(to, "https://shop.example/lagu.ogg"),
        await wa.send_sticker(to, "https://shop.example/stiker.webp"),
        await wa.send_location(to, latitude=-6.2, longitude=106.8, name="Toko", address="Jl. Kopi"),
        await wa.request_location(to, "Di mana?"),
    ]  # fmt: skip
    reacted = await wa.send_reaction(to, "👍", message.id)
    await message.mark_as_read()
    await message.indicate_typing()
    statuses = await bot.wait_for("MessageStatus", 3 * len(sent) + 1)
    by_id: dict[str, list[str]] = {}
    for status in statuses:
        by_id.setdefault(status.id, []).append(str(status.status.value))
    assert by_id == {reacted.id: ["sent"], **{each.id: ["sent", "delivered", "read"] for each in sent}}
    assert {status.tracker for status in statuses if status.id == replied.id} == {"order-1"}
    assert {status.from_user.wa_id for status in statuses} == {to}
    assert all(status.pricing is not None for status in statuses)


async def test_pywa_makes_and_sends_templates(bot: PywaBot, called_back: OutsideProgram) -> None:
    made = Template(
        name="order_ready",
        language=TemplateLanguage.INDONESIAN,
        category=TemplateCategory.UTILITY,
        parameter_format=ParamFormat.NAMED,
        components=[
            (body := BodyText("Halo {{name}}, pesanan {{order}} siap.", name="Ayu", order="INV-1")),
            Buttons(buttons=[(link := TemplateLink(text="Lacak", url="https://s.id/{{1}}", example="abc"))]),
        ],
    )
    created = await bot.client.create_template(made)
    assert created.status.value == "APPROVED"
    listed = list(await bot.client.get_templates())
    assert [template.name for template in listed] == ["order_ready"]
    sent = await bot.client.send_template(
        CUSTOMER.removeprefix("+"),
        "order_ready",
        TemplateLanguage.INDONESIAN,
        [body.params(name="Budi", order="INV-7"), link.params(url_variable="xyz", index=0)],
    )
    statuses = await bot.wait_for("MessageStatus", 3)
    assert [str(status.status.value) for status in statuses] == ["sent", "delivered", "read"]
    assert {status.id for status in statuses} == {sent.id}
    with pytest.raises(errors.TemplateParamCountMismatch):
        await bot.client.send_template(
            CUSTOMER.removeprefix("+"),
            "order_ready",
            TemplateLanguage.INDONESIAN,
            [link.params(url_variable="x", index=0)],
        )
    for name in ("sim_slow_x", "sim_rejected_x", "sim_paused_x", "sim_recategorised_x"):
        await bot.client.create_template(
            Template(
                name=name,
                language=TemplateLanguage.INDONESIAN,
                category=TemplateCategory.UTILITY,
                components=[BodyText("Halo semua.")],
            )
        )
    await bot.wait_for("TemplateStatusUpdate", 3)
    await bot.wait_for("TemplateQualityUpdate")
    await bot.wait_for("TemplateCategoryUpdate")


async def test_pywa_reads_every_kind_of_customers_message(bot: PywaBot, called_back: OutsideProgram) -> None:
    for media in ("image", "video", "audio", "document"):
        await called_back.receive(text="" if media == "audio" else "Lihat", media=media)
    await called_back.receive(text="", button={"id": "yes", "title": "Ya"})
    messages = await bot.wait_for("Message", 4)
    assert [message.type.value for message in messages] == ["image", "video", "audio", "document"]
    for message in messages:
        content = await message.media.get_bytes()
        assert len(content) > 10
    (choice,) = await bot.wait_for("CallbackButton")
    assert (choice.data, choice.title) == ("yes", "Ya")
    sent = await bot.client.send_message("12015550106", "Balas")
    assert sent.id
    replies = await bot.wait_for("Message", 5)
    assert replies[-1].text == "OK"
    assert replies[-1].reply_to_message.id == sent.id
    rows = SectionList("Buka", [Section("S", [SectionRow("Gayo", "gayo")])])
    await bot.client.send_message("12015550107", "Pilih", buttons=rows)
    (selection,) = await bot.wait_for("CallbackSelection")
    assert (selection.data, selection.title) == ("gayo", "Gayo")


def test_every_content_of_a_message_is_tested() -> None:
    names = {"contactCards" if name == "contact_cards" else name for name in CONTENTS}
    assert {*KINDS, *OF_A_MESSAGE} == names - WITHOUT_A_CLASS


async def test_pywa_reads_carts_answers_places_cards_ads_and_changes(bot: PywaBot, called_back: OutsideProgram) -> None:
    first = await called_back.receive()
    for name, content in KINDS.items():
        await called_back.receive(text="Halo" if name in BESIDE else "", **{name: content})
    for name, content in OF_A_MESSAGE.items():
        fields: dict[str, Any] = {name: {"messageId": first["messageId"], **content}}
        await called_back.receive(text="", **fields)
    messages = await bot.wait_for("Message", 8)
    by_type = {message.type.value: message for message in messages}
    (product,) = by_type["order"].order.products
    assert (product.sku, product.quantity, product.price, product.currency) == ("GAYO", 2, 75000, "IDR")
    assert (by_type["location"].location.latitude, by_type["location"].location.name) == (-6.175, "Monas")
    (card,) = by_type["contacts"].contacts
    assert (card.name.formatted_name, card.phones[0].phone) == ("Budi", "+62 811")
    assert by_type["reaction"].reaction.emoji == "👍"
    ad = next(message.referral for message in messages if message.referral)
    assert (ad.source_id, ad.headline, ad.ctwa_clid) == ("1202", "Kopi baru", "x")
    assert [message.forwarded for message in messages].count(True) == 1
    (answer,) = await bot.wait_for("FlowCompletion")
    assert (answer.token, answer.response) == ("t-1", {"city": "Bandung"})
    (preference,) = await bot.wait_for("UserMarketingPreferences")
    assert preference.value.value == "stop"
    (edited,) = await bot.wait_for("EditedMessage")
    (deleted,) = await bot.wait_for("DeletedMessage")
    assert edited.original_message_id == deleted.original_message_id == first["messageId"]


async def test_pywa_reads_what_was_written_in_the_business_app(called_back: OutsideProgram) -> None:
    """On the other number, to which nobody is subscribed: the callback is read as it is."""
    echo = await called_back.receive(source="MSGAPP_COEX", text="Dari telepon", echo=True)
    bot = PywaBot(called_back, "MSGAPP_COEX")
    answer = await bot.client.webhook_update_handler(echo["callback"].encode())
    assert answer == ("ok", 200)
    (message,) = await bot.wait_for("OutgoingMessage")
    assert (message.text, message.to_user.wa_id) == ("Dari telepon", CUSTOMER.removeprefix("+"))
    await bot.client.api._session.aclose()


async def test_pywa_reads_warnings_about_the_account(bot: PywaBot, called_back: OutsideProgram) -> None:
    warnings = ["ACCOUNT_VIOLATION", "ACCOUNT_RESTRICTION", "DISABLED_UPDATE", "REINSTATE"]
    for warning in warnings:
        body = {"source": "MSGAPP_CLOUD", "warning": warning}
        answer = await called_back.api.post("/sandbox/channel-status", json=body)
        assert answer.status_code == 200, answer.text
    updates = await bot.wait_for("AccountUpdate", len(warnings))
    assert [update.event.value for update in updates] == [*warnings[:3], "DISABLED_UPDATE"]


async def test_pywa_raises_its_own_error_for_each_refusal(bot: PywaBot) -> None:
    expected: Json = {
        "12015550110": errors.MessageUndeliverable,
        "12015550114": errors.RateLimitHit,
        "12015550115": errors.TooManyMessages,
        "12015550116": errors.AuthorizationError,
        "12015550132": errors.SpamRateLimitHit,
        "12015550134": errors.AccountLocked,
    }
    for number, kind in expected.items():
        with pytest.raises(kind):
            await bot.client.send_message(number, "Halo")
    sent = await bot.client.send_message("12015550130", "Halo")
    statuses = await bot.wait_for("MessageStatus", 2)
    failed = next(status for status in statuses if status.error)
    assert (failed.id, failed.error.code) == (sent.id, 131050)
