"""A program subscribes to callbacks as it does at Meta, and gets them signed, in order, until it accepts them."""

import httpx

from sapa.db.pool import Database
from tests.conftest import Installation
from tests.http.wire import eventually
from tests.messaging.conversation_steps import advance
from tests.sandbox.address.outside import CUSTOMER, HAPPY, Json, OutsideProgram, open_program
from tests.sandbox.address.receiver import VERIFY_TOKEN, CallbackReceiver

TEXT: Json = {"type": "text", "text": {"body": "Halo"}}
FAILURES = {
    "+12015550111": 131047,
    "+12015550119": 131049,
    "+12015550130": 131050,
    "+12015550131": 130472,
    "+12015550133": 131042,
    "+12015550137": 131053,
}
"""Recipients to whom a message is accepted, and reported as failed a second later."""


async def subscribe_number(
    program: OutsideProgram, receiver: CallbackReceiver, path: str = "/", token: str = VERIFY_TOKEN
) -> httpx.Response:
    asked = {"override_callback_uri": receiver.address + path, "verify_token": token}
    return await program.call("POST", program.number, json={"webhook_configuration": asked})


async def subscribe_business_account(program: OutsideProgram, receiver: CallbackReceiver, path: str) -> None:
    asked = {"override_callback_uri": receiver.address + path, "verify_token": VERIFY_TOKEN}
    answer = await program.call("POST", f"{program.business_account}/subscribed_apps", json=asked)
    assert answer.json() == {"success": True}


async def subscribe_app(program: OutsideProgram, receiver: CallbackReceiver, path: str) -> None:
    """With the app's own token."""
    app_id, secret = program.whatsapp["account"]["app_id"], program.whatsapp["credentials"]["app_secret"]
    base = program.whatsapp["address"]
    asked = {"client_id": app_id, "client_secret": secret, "grant_type": "client_credentials"}
    token = (await program.http.get(f"{base}/oauth/access_token", params=asked)).json()["access_token"]
    wanted = {
        "object": "whatsapp_business_account",
        "callback_url": receiver.address + path,
        "verify_token": VERIFY_TOKEN,
        "access_token": token,
    }
    answer = await program.http.post(f"{base}/{app_id}/subscriptions", params=wanted)
    assert answer.json() == {"success": True}, answer.text


async def test_a_message_is_reported_to_its_sender(called_back: OutsideProgram, receiver: CallbackReceiver) -> None:
    assert (await subscribe_number(called_back, receiver)).json() == {"success": True}
    sent = (await called_back.send({**TEXT, "biz_opaque_callback_data": "ref-1"})).json()
    await receiver.wait_for(lambda: len(receiver.list_values("statuses")) == 3)
    statuses = receiver.list_values("statuses")
    assert [status["status"] for status in statuses] == ["sent", "delivered", "read"]
    assert {status["id"] for status in statuses} == {sent["messages"][0]["id"]}
    assert {status["biz_opaque_callback_data"] for status in statuses} == {"ref-1"}
    assert {(status["recipient_id"], status["recipient_user_id"]) for status in statuses} == {
        ("12015550100", "US.12015550100")
    }
    secret = called_back.whatsapp["credentials"]["app_secret"]
    assert all(post.is_signed(secret) for post in receiver.posts)


async def test_a_customers_message_goes_to_the_program_and_to_sapa(
    called_back: OutsideProgram, receiver: CallbackReceiver
) -> None:
    await subscribe_number(called_back, receiver)
    inbound = await called_back.receive(name="Budi")
    await receiver.wait_for(lambda: bool(receiver.list_values("messages")))
    (message,) = receiver.list_values("messages")
    assert (message["id"], message["from"], message["from_user_id"]) == (
        inbound["messageId"],
        CUSTOMER.removeprefix("+"),
        f"ID.{CUSTOMER.removeprefix('+')}",
    )
    (contact,) = receiver.list_values("contacts")
    assert contact == {
        "profile": {"name": "Budi"},
        "wa_id": CUSTOMER.removeprefix("+"),
        "user_id": f"ID.{CUSTOMER.removeprefix('+')}",
    }

    async def look() -> Json | None:
        tickets = (await called_back.api.get("/tickets")).json()["data"]
        return tickets[0] if tickets else None

    assert await eventually(look)


async def test_reports_on_a_programs_messages_do_not_reach_sapa(
    called_back: OutsideProgram, receiver: CallbackReceiver, post: Database
) -> None:
    await subscribe_number(called_back, receiver)
    await called_back.send({"to": "+12015550106", **TEXT})
    await receiver.wait_for(lambda: bool(receiver.list_values("messages")))  # the customer replies last
    assert [status["status"] for status in receiver.list_values("statuses")] == ["sent", "delivered", "read"]

    async def look() -> Json | None:
        tickets = (await called_back.api.get("/tickets")).json()["data"]
        return tickets[0] if tickets else None

    assert await eventually(look)  # the reply opened it
    async with post.connection() as db:
        bodies = await db.fetch("SELECT body FROM channel_callbacks WHERE company_id = $1", called_back.company_id)
    assert [b"statuses" in row["body"] for row in bodies] == [False]


async def test_a_failure_is_reported_with_its_code(called_back: OutsideProgram, receiver: CallbackReceiver) -> None:
    await subscribe_number(called_back, receiver)
    ids = {}
    for number, code in FAILURES.items():
        ids[(await called_back.send({"to": number, **TEXT})).json()["messages"][0]["id"]] = code
    gif = {"to": HAPPY, "type": "image", "image": {"link": "https://shop.example/a.gif"}}
    ids[(await called_back.send(gif)).json()["messages"][0]["id"]] = 131053

    def list_failed() -> list[Json]:
        return [status for status in receiver.list_values("statuses") if status["status"] == "failed"]

    await receiver.wait_for(lambda: len(list_failed()) == len(ids))
    assert {status["id"]: status["errors"][0]["code"] for status in list_failed()} == ids
    details = {status["errors"][0]["error_data"]["details"] for status in list_failed()}
    assert any("image/jpeg, image/png" in each for each in details)


async def test_the_window_closes_24_hours_after_the_customer_wrote(
    called_back: OutsideProgram, receiver: CallbackReceiver
) -> None:
    await subscribe_number(called_back, receiver)

    async def send_text() -> str:
        """The last status of a text to the customer."""
        sent = (await called_back.send({"to": CUSTOMER, **TEXT})).json()["messages"][0]["id"]

        def list_words() -> list[str]:
            return [status["status"] for status in receiver.list_values("statuses") if status["id"] == sent]

        await receiver.wait_for(lambda: bool({"failed", "read"} & set(list_words())))
        return list_words()[-1]

    assert await send_text() == "failed"  # they never wrote
    await called_back.receive()
    assert await send_text() == "read"
    await advance(called_back.api, 25 * 3600)
    assert await send_text() == "failed"
    created = await called_back.call(
        "POST",
        f"{called_back.business_account}/message_templates",
        json={"name": "hi", "language": "id", "category": "UTILITY", "components": [{"type": "BODY", "text": "Hai."}]},
    )
    assert created.status_code == 200
    template = {"type": "template", "template": {"name": "hi", "language": {"code": "id"}}}
    sent = (await called_back.send({"to": CUSTOMER, **template})).json()["messages"][0]
    assert sent["message_status"] == "accepted"
    await receiver.wait_for(
        lambda: any(each["id"] == sent["id"] and each["status"] == "read" for each in receiver.list_values("statuses"))
    )


async def test_an_address_has_to_confirm(called_back: OutsideProgram, receiver: CallbackReceiver) -> None:
    refused = await subscribe_number(called_back, receiver, token="another")
    error = refused.json()["error"]
    assert (refused.status_code, error["code"]) == (400, 2200)
    assert error["message"] == (
        "(#2200) Callback verification failed with the following errors: HTTP Status Code = 403"
    )
    asked = {"override_callback_uri": "http://127.0.0.1:1/", "verify_token": VERIFY_TOKEN}
    refused = await called_back.call("POST", called_back.number, json={"webhook_configuration": asked})
    assert refused.json()["error"]["code"] == 2200
    await called_back.send(TEXT)
    assert receiver.posts == []


async def test_an_app_is_subscribed_with_its_own_token_only(
    called_back: OutsideProgram, receiver: CallbackReceiver
) -> None:
    app_id = called_back.whatsapp["account"]["app_id"]
    refused = await called_back.call("POST", f"{app_id}/subscriptions", params={"callback_url": receiver.address})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, 15)
    secret = called_back.whatsapp["credentials"]["app_secret"]
    token = {"access_token": f"{app_id}|{secret}"}
    body = {"messaging_product": "whatsapp", "to": HAPPY, **TEXT}
    url = f"{called_back.whatsapp['address']}/{called_back.number}/messages"
    assert (await called_back.http.post(url, params=token, json=body)).status_code == 401
    listed = await called_back.http.get(f"{called_back.whatsapp['address']}/{app_id}/subscriptions", params=token)
    assert listed.json() == {"data": []}


async def test_addresses_inside_the_network_are_refused(installation: Installation, database: Database) -> None:
    """By an installation with the usual settings."""
    async with open_program(installation, database) as program:
        for url in ("http://shop.example/hook", "https://127.0.0.1/hook", "https://169.254.169.254/"):
            asked = {"override_callback_uri": url, "verify_token": VERIFY_TOKEN}
            refused = await program.call("POST", program.number, json={"webhook_configuration": asked})
            assert refused.json()["error"]["code"] == 2200, refused.text


async def test_the_most_particular_address_gets_the_callbacks(
    called_back: OutsideProgram, receiver: CallbackReceiver
) -> None:
    await subscribe_app(called_back, receiver, "/app")
    await called_back.receive(text="one")
    await receiver.wait_for(lambda: bool(receiver.list_values("messages", "/app")))
    await subscribe_business_account(called_back, receiver, "/account")
    await called_back.receive(text="two")
    await receiver.wait_for(lambda: bool(receiver.list_values("messages", "/account")))
    await subscribe_number(called_back, receiver, "/number")
    await called_back.receive(text="three")
    await receiver.wait_for(lambda: bool(receiver.list_values("messages", "/number")))
    listed = (await called_back.call("GET", f"{called_back.business_account}/subscribed_apps")).json()["data"]
    assert listed[0]["override_callback_uri"] == f"{receiver.address}/account"
    nothing = {"webhook_configuration": {"override_callback_uri": ""}}
    assert (await called_back.call("POST", called_back.number, json=nothing)).json() == {"success": True}
    removed = await called_back.call("POST", f"{called_back.business_account}/subscribed_apps")
    assert removed.json() == {"success": True}
    await called_back.receive(text="four")
    await receiver.wait_for(lambda: len(receiver.list_values("messages", "/app")) == 2)
    got = {
        path: [each["text"]["body"] for each in receiver.list_values("messages", path)]
        for path in ("/app", "/account", "/number")
    }
    assert got == {"/app": ["one", "four"], "/account": ["two"], "/number": ["three"]}


async def test_a_callback_is_posted_until_it_is_accepted(
    called_back: OutsideProgram, receiver: CallbackReceiver
) -> None:
    await subscribe_number(called_back, receiver)
    receiver.statuses = [500, 503]
    await called_back.receive(text="again")
    await receiver.wait_for(lambda: len(receiver.posts) >= 3)
    assert len({post.body for post in receiver.posts}) == 1
