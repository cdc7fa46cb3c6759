"""The words of the question and of the rating page in both languages."""

from collections.abc import Mapping

LANGUAGE_NAMES: Mapping[str, str] = {"id": "Bahasa Indonesia", "en": "English"}

QUESTIONS: Mapping[str, str] = {
    "id": "Terima kasih sudah menghubungi kami. Bagaimana bantuan kami? Beri nilai di sini: {link}",
    "en": "Thank you for contacting us. How did we do? Rate us here: {link}",
}

TEXTS: Mapping[str, Mapping[str, str]] = {
    "id": {
        "title": "Beri nilai",
        "question": "Bagaimana bantuan {shop}?",
        "scores": "Nilai",
        "1": "Sangat buruk",
        "2": "Buruk",
        "3": "Cukup",
        "4": "Baik",
        "5": "Sangat baik",
        "comment": "Komentar (opsional)",
        "send": "Kirim nilai",
        "choose": "Pilih nilai dari 1 sampai 5.",
        "thanks": "Terima kasih atas nilai Anda",
        "thanks_detail": "{shop} sudah menerima nilai Anda: {score} dari 5.",
        "missing": "Tautan ini tidak dikenal",
        "missing_detail": "Periksa apakah alamatnya lengkap, seperti dalam pesan.",
        "language": "Bahasa",
    },
    "en": {
        "title": "Rate us",
        "question": "How did {shop} do?",
        "scores": "Score",
        "1": "Very bad",
        "2": "Bad",
        "3": "Fair",
        "4": "Good",
        "5": "Very good",
        "comment": "Comment (optional)",
        "send": "Send rating",
        "choose": "Choose a score from 1 to 5.",
        "thanks": "Thank you for your rating",
        "thanks_detail": "{shop} has your rating: {score} of 5.",
        "missing": "This link is not known",
        "missing_detail": "Check that the address is complete, as in the message.",
        "language": "Language",
    },
}
