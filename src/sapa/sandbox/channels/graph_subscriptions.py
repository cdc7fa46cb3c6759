"""Simulates how programs subscribe to the Graph API's callbacks: for an app, a business account or one number."""

from typing import Any
from urllib.parse import parse_qsl

import msgspec

from sapa.context import AppContext
from sapa.messaging.channels.interface import Source
from sapa.sandbox.channels import refusals
from sapa.sandbox.channels.accounts import SandboxAccount, build_account, build_app_id
from sapa.sandbox.channels.graph_errors import GraphRefusal, build_refusal
from sapa.sandbox.channels.simulator import build_answer
from sapa.sandbox.subscriptions import actions
from sapa.sandbox.subscriptions.actions import Level, NotVerified
from sapa.values.hook_calls import HookAnswer, HookCall

OBJECTS = {Source.SOCIAL_NETWORK: "page", Source.PHOTO_SOCIAL: "instagram"}
WHATSAPP_OBJECT = "whatsapp_business_account"

_SUCCESS = {"success": True}


def get_app_token(account: SandboxAccount) -> dict[str, str]:
    """GET /oauth/access_token"""
    token = f"{build_app_id(account.company_id, account.source)}|{account.secrets['app_secret']}"
    return {"access_token": token, "token_type": "bearer"}


async def answer_app(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """GET, POST and DELETE /{app}/subscriptions, with parameters in the query or the body."""
    object = OBJECTS.get(account.source, WHATSAPP_OBJECT)
    if call.method == "GET":
        url = await actions.find_url(context, account.company_id, account.hook, Level.APP)
        shown = [{"object": object, "callback_url": url, "active": True, "fields": []}] if url else []
        return build_answer({"data": shown})
    asked = {**_read(call), **call.query}
    if asked.get("object", object) != object:
        return build_refusal(GraphRefusal(code=100, message=f"Param object must be one of {{{object}}}."))
    if call.method == "DELETE":
        await actions.unsubscribe(context, account.company_id, [account.hook], Level.APP)
        return build_answer(_SUCCESS)
    return await _subscribe(context, account, [account.hook], Level.APP, asked, "callback_url")


async def answer_business_account(
    context: AppContext, account: SandboxAccount, call: HookCall, sources: tuple[Source, ...]
) -> HookAnswer:
    """GET, POST and DELETE /{business account}/subscribed_apps; all its numbers have the same address."""
    hooks = [build_account(context, account.company_id, source).hook for source in sources]
    if call.method == "GET":
        return build_answer({"data": [await _show_app(context, account)]})
    asked = _read(call)
    if call.method == "POST" and asked.get("override_callback_uri"):
        level = Level.BUSINESS_ACCOUNT
        return await _subscribe(context, account, hooks, level, asked, "override_callback_uri")
    await actions.unsubscribe(context, account.company_id, hooks, Level.BUSINESS_ACCOUNT)
    return build_answer(_SUCCESS)


async def answer_number(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer | None:
    """POST /{number} with a webhook configuration; None for anything else."""
    asked = _read(call).get("webhook_configuration")
    if not isinstance(asked, dict):
        return None
    if asked.get("override_callback_uri"):
        return await _subscribe(context, account, [account.hook], Level.NUMBER, asked, "override_callback_uri")
    await actions.unsubscribe(context, account.company_id, [account.hook], Level.NUMBER)
    return build_answer(_SUCCESS)


async def _subscribe(
    context: AppContext, account: SandboxAccount, paths: list[str], level: Level, asked: dict[str, Any], name: str
) -> HookAnswer:
    for required in (name, "verify_token"):
        if not isinstance(asked.get(required), str) or not asked[required]:
            return build_refusal(refusals.require(required))
    try:
        await actions.subscribe(context, account.company_id, paths, level, asked[name], asked["verify_token"])
    except NotVerified as failure:
        words = f"Callback verification failed with the following errors: {failure}"
        return build_refusal(GraphRefusal(code=2200, message=words))
    return build_answer(_SUCCESS)


async def _show_app(context: AppContext, account: SandboxAccount) -> dict[str, Any]:
    id = build_app_id(account.company_id, account.source)
    app = {"id": id, "name": "Sandbox", "link": f"https://www.facebook.com/games/?app_id={id}"}
    url = await actions.find_url(context, account.company_id, account.hook, Level.BUSINESS_ACCOUNT)
    return {"whatsapp_business_api_data": app, **({"override_callback_uri": url} if url else {})}


def _read(call: HookCall) -> dict[str, Any]:
    """The body, JSON or a form; a request without one asks for nothing."""
    if call.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(call.body.decode("utf-8", "replace")))
    found = msgspec.json.decode(call.body) if call.body else {}
    return found if isinstance(found, dict) else {}
