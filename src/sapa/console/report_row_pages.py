"""The rows behind the figures of a breakdown: an article's orders, a channel's or an agent's conversations, ratings."""

from collections.abc import Sequence

from starlette.responses import Response

from sapa.console.inbox_pages import list_channels, parse_agent
from sapa.console.page_request import PageRequest
from sapa.console.report_pages import get_company, get_frame, read_page, read_window
from sapa.console.roles import DEVELOPERS
from sapa.console.routes import console
from sapa.customers import actions as customers
from sapa.http.errors import Invalid, NotFound
from sapa.messaging.channels.interface import Source
from sapa.messaging.channels.registry import CHANNEL_NAMES
from sapa.reports import actions as reports
from sapa.reports.types import AgentRating, ArticleOrder, ReportConversation
from sapa.support.agents import actions as agents
from sapa.support.types import Agent

ROWS = 50
"""On one page."""


@console.get("/{environment}/reports/orders", roles=DEVELOPERS)
async def show_article_orders(page: PageRequest) -> Response:
    company = await get_company(page)
    window = await read_window(page, company)
    currency = page.session.currency_of_sales(company)
    article, number = page.request.query_params.get("article", "").replace("\0", ""), read_page(page)
    orders: Sequence[ArticleOrder] = []
    try:
        async with page.context.long_reads.snapshot(company.id) as db:
            orders = await reports.list_article_orders(
                db, company, window, currency, article, ROWS, (number - 1) * ROWS
            )
    except Invalid as error:
        page.error = error
    return page.show(
        "report_orders.html",
        orders=orders,
        article=article,
        currency=currency,
        query={"article": article, "from": window.first, "to": window.last},
        meta=_build_meta(orders, number),
        **get_frame(page, window),
    )


@console.get("/{environment}/reports/conversations", roles=DEVELOPERS)
async def show_conversations(page: PageRequest) -> Response:
    """An agent's, or those of a channel's source."""
    company = await get_company(page)
    window = await read_window(page, company)
    chosen = {name: text for name in ("agentId", "channel", "source") if (text := page.request.query_params.get(name))}
    number = read_page(page)
    rows, offset = ROWS, (number - 1) * ROWS
    agent: Agent | None = None
    async with page.context.long_reads.snapshot(company.id) as db:
        if "agentId" in chosen:
            agent = await agents.get_agent(db, company, parse_agent(chosen["agentId"]))
            sources = CHANNEL_NAMES.get(chosen.get("channel", ""))
            found = await reports.list_agent_conversations(db, company, window, agent.id, sources, rows, offset)
        elif chosen.get("source") in set(Source):
            found = await reports.list_channel_conversations(db, company, window, chosen["source"], rows, offset)
        else:
            raise NotFound
        names = await customers.list_names(db, company.id, [one.customer_id for one in found if one.customer_id])
    return page.show(
        "report_conversations.html",
        conversations=found,
        names=names,
        channels=list_channels(),
        agent=agent,
        chosen=chosen,
        query=chosen | {"from": window.first, "to": window.last},
        meta=_build_meta(found, number),
        **get_frame(page, window),
    )


@console.get("/{environment}/reports/ratings", roles=DEVELOPERS)
async def show_ratings(page: PageRequest) -> Response:
    """What customers rated of an agent's conversations."""
    company = await get_company(page)
    window = await read_window(page, company)
    params, number = page.request.query_params, read_page(page)
    chosen = {name: text for name in ("agentId", "channel") if (text := params.get(name))}
    sources, offset = CHANNEL_NAMES.get(chosen.get("channel", "")), (number - 1) * ROWS
    async with page.context.long_reads.snapshot(company.id) as db:
        agent = await agents.get_agent(db, company, parse_agent(chosen.get("agentId", "")))
        found = await reports.list_agent_ratings(db, company, window, agent.id, sources, ROWS, offset)
        names = await customers.list_names(db, company.id, [one.customer_id for one in found if one.customer_id])
    return page.show(
        "report_ratings.html",
        ratings=found,
        names=names,
        channels=list_channels(),
        agent=agent,
        chosen=chosen,
        query=chosen | {"from": window.first, "to": window.last},
        meta=_build_meta(found, number),
        **get_frame(page, window),
    )


def _build_meta(
    found: Sequence[ArticleOrder] | Sequence[ReportConversation] | Sequence[AgentRating], number: int
) -> dict[str, int | bool]:
    total = found[0].total if found else 0
    return {"page": number, "total": total, "hasNextPage": number * ROWS < total}
