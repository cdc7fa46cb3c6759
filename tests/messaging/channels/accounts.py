"""Accounts for tests that call an adapter directly. The secrets are recognisable, so that tests can search for them."""

from collections.abc import Mapping

from sapa.messaging.channels.interface import ChannelAccount, Identity, Source
from sapa.outbound.client import Client
from sapa.values.company import Company

LIVE = Company(7, "live", "ID", "IDR")
REFERENCE = "0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
TOKEN, APP_SECRET, WORD = "planted-token-7d1f", "planted-app-secret-9c2e", "planted-verify-word"
SECRETS = {
    "access_token": TOKEN,
    "app_secret": APP_SECRET,
    "verify_token": WORD,
    "refresh_token": "planted-refresh-token-5b",
    "password": "planted-password-1a2b",
}

WITHOUT_API = frozenset({Source.MAIL, Source.WIDGET})
"""A mail server, and our own web chat: they have tests of their own."""

ACCOUNTS: Mapping[Source, Mapping[str, str]] = {
    Source.MSGAPP_CLOUD: {"phone_number_id": "1122", "waba_id": "3344", "phone_number": "+6281100001111"},
    Source.MSGAPP_COEX: {"phone_number_id": "1122", "waba_id": "3344", "phone_number": "+6281100001111"},
    Source.SOCIAL_NETWORK: {"page_id": "5566"},
    Source.PHOTO_SOCIAL: {"instagram_id": "17841400"},
    Source.SHORT_VIDEO: {"business_id": "open-id-1", "client_key": "app-1"},
    Source.MAIL: {
        "address": "halo@shop.example",
        "sender_name": "Toko Kopi",
        "smtp_host": "127.0.0.1",
        "security": "plain",
        "username": "halo",
        "inbound_address": "inbox@shop.example",
    },
}

RECIPIENTS: Mapping[Source, Identity] = {
    Source.MSGAPP_CLOUD: Identity("phone", "+628123456789"),
    Source.MSGAPP_COEX: Identity("phone", "+628123456789"),
    Source.SOCIAL_NETWORK: Identity("psid", "2468"),
    Source.PHOTO_SOCIAL: Identity("igsid", "1357"),
    Source.SHORT_VIDEO: Identity("tt_conv", "conversation-1"),
    Source.MAIL: Identity("email", "budi@example.com"),
}


def build_connection(
    source: Source, address: str, client: Client, company: Company = LIVE, **account: str
) -> ChannelAccount:
    fields = {**ACCOUNTS[source], **account}
    return ChannelAccount(
        company,
        "chan_01jc9y3q5me8w92v7x4t6r0n1k",
        source,
        address,
        fields,
        SECRETS,
        client,
        is_internal=company.is_test,
    )
