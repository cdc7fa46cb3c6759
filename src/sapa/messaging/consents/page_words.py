"""The words of the unsubscribe page in its two languages."""

from collections.abc import Mapping

LANGUAGE_NAMES: Mapping[str, str] = {"id": "Bahasa Indonesia", "en": "English"}

TEXTS: Mapping[str, Mapping[str, str]] = {
    "id": {
        "title": "Pesan promosi",
        "question": "Berhenti menerima pesan promosi dari {shop}?",
        "detail": "Pesan tentang pesanan Anda tetap dikirim ke {address}.",
        "stop": "Berhenti berlangganan",
        "stopped": "Anda sudah berhenti berlangganan.",
        "stopped_detail": "{shop} tidak akan mengirim pesan promosi ke {address} lagi.",
        "start": "Berlangganan lagi",
        "started": "Anda berlangganan lagi.",
        "missing": "Tautan ini tidak dikenal",
        "missing_detail": "Periksa apakah alamatnya lengkap, seperti dalam email.",
        "language": "Bahasa",
    },
    "en": {
        "title": "Promotional messages",
        "question": "Stop promotional messages from {shop}?",
        "detail": "Messages about your orders are still sent to {address}.",
        "stop": "Unsubscribe",
        "stopped": "You are unsubscribed.",
        "stopped_detail": "{shop} sends no more promotional messages to {address}.",
        "start": "Subscribe again",
        "started": "You are subscribed again.",
        "missing": "This link is not known",
        "missing_detail": "Check that the address is complete, as in the e-mail.",
        "language": "Language",
    },
}
