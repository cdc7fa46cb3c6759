"""Simulates the Graph API's templates: each one is approved at once."""

from hashlib import sha256
from typing import Any

import msgspec

from sapa.context import AppContext
from sapa.sandbox.channels import outbox, queries
from sapa.sandbox.channels.accounts import SandboxAccount
from sapa.sandbox.channels.simulator import build_answer
from sapa.values.hook_calls import HookAnswer, HookCall


async def answer(context: AppContext, account: SandboxAccount, call: HookCall) -> HookAnswer:
    """GET, POST and DELETE /{business account}/message_templates"""
    if call.method == "GET":
        return await _list(context, account)
    async with context.database.transaction() as tx:
        if call.method == "DELETE":
            await queries.delete_template(tx, account.company_id, account.source, call.query.get("name", ""))
            answer = build_answer({"success": True})
        else:
            body = msgspec.json.decode(call.body, type=dict[str, Any])
            key = (account.source, body["name"], body["language"])
            await queries.put_template(tx, account.company_id, *key, msgspec.json.encode(body))
            answer = build_answer({"id": _id(*key), "status": "APPROVED", "category": body["category"]})
        await outbox.record(tx, account.company_id, account.source, call, answer)
    return answer


async def _list(context: AppContext, account: SandboxAccount) -> HookAnswer:
    async with context.database.connection() as db:
        rows = await queries.list_templates(db, account.company_id, account.source)
    templates = [
        {**msgspec.json.decode(row.content), "id": _id(account.source, row.name, row.language), "status": "APPROVED"}
        for row in rows
    ]
    return build_answer({"data": templates, "paging": {"cursors": {"before": "", "after": ""}}})


def _id(*key: str) -> str:
    return str(int.from_bytes(sha256("/".join(key).encode()).digest()[:6]))
