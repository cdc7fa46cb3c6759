"""What to do to connect a channel, step by step. The texts are keys of the console's words."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sapa.messaging.channels.interface import Source


class ChannelGuide(Struct, frozen=True):
    """The steps before the account is entered, and the one after it."""

    steps: Sequence[tuple[str, str]]
    callback: str
    page: str
    """Of the documentation."""


_PUBLIC = "This server must have a public https address."
_WHATSAPP = ChannelGuide(
    (
        (
            "What you need",
            "A business portfolio at Meta, and a phone number that is not in use on WhatsApp. " + _PUBLIC,
        ),
        (
            "The app and the number",
            "At developers.facebook.com create an app with the use case WhatsApp and publish it. App settings "
            "> Basic has the app secret; Use cases > Customize > API Setup has the phone number ID and the "
            "WhatsApp Business Account ID.",
        ),
        (
            "The token",
            "At business.facebook.com/settings add a system user, assign the app and the WhatsApp account to "
            "it, and generate a token that never expires, with whatsapp_business_messaging and "
            "whatsapp_business_management.",
        ),
    ),
    "In the app open Use cases > Customize > Configuration. Enter the callback address and the verify token, "
    "and subscribe to messages.",
    "whatsapp",
)

GUIDES: Mapping[Source, ChannelGuide] = {
    Source.MSGAPP_CLOUD: _WHATSAPP,
    Source.MSGAPP_COEX: _WHATSAPP,
    Source.PHOTO_SOCIAL: ChannelGuide(
        (
            (
                "What you need",
                "An Instagram account of the type business or creator that allows access to its messages, and "
                "a developer account at Meta. " + _PUBLIC,
            ),
            (
                "The app and the token",
                "At developers.facebook.com create an app with the use case Instagram. Use cases > Customize "
                "> API setup with Instagram login has the app secret and generates the token.",
            ),
        ),
        "On the same page enter the callback address and the verify token, and subscribe to messages.",
        "instagram",
    ),
    Source.SOCIAL_NETWORK: ChannelGuide(
        (
            (
                "What you need",
                "A Facebook page that you control, and the business portfolio at Meta that owns it. " + _PUBLIC,
            ),
            (
                "The app and the token",
                "At developers.facebook.com create an app with the use case Messenger. App settings > Basic "
                "has the app secret; a system user of the portfolio generates the page's token.",
            ),
        ),
        "In the app open Messenger > Webhooks. Enter the callback address and the verify token, and subscribe "
        "the page to messages.",
        "messenger",
    ),
    Source.SHORT_VIDEO: ChannelGuide(
        (
            (
                "What you need",
                "A TikTok business account that accepts messages from everybody, and a developer account at "
                "business-api.tiktok.com. " + _PUBLIC,
            ),
            (
                "The app and the token",
                "In the portal create an app and ask for Business Messaging. Sign in with the account to get "
                "its tokens.",
            ),
        ),
        "In the portal enter the callback address for messages.",
        "tiktok",
    ),
    Source.MAIL: ChannelGuide(
        (
            (
                "What you need",
                "An email address, and the server that sends for it. To receive answers, a way to have mail "
                "posted to a web address. " + _PUBLIC,
            ),
            ("The server that sends", "Your provider names the SMTP server, the port, the user and the password."),
        ),
        "Let the server of your domain post incoming mail to the callback address.",
        "mail",
    ),
    Source.WIDGET: ChannelGuide(
        (("What you need", "A site into which you can put a line of HTML. The web chat needs no account. " + _PUBLIC),),
        "Put the line before the end of the body of every page that shall have the chat.",
        "web-chat",
    ),
}
