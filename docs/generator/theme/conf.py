"""Settings of Sphinx for the site; `docs/generator/__main__.py` hands it the pages."""

from sapa import __version__

project = "Sapa"
release = version = __version__
extensions = ["myst_parser"]
exclude_patterns: list[str] = []
suppress_warnings = ["misc.highlighting_failure"]  # examples have "…" where a real text would be long

smartquotes = False  # which would make a dash of the beginning of an option
myst_heading_anchors = 4
myst_linkify_fuzzy_links = False

html_theme = "furo"
html_title = f"Sapa {__version__}"
html_favicon = "static/icon.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0f766e", "color-brand-content": "#0f766e"},
    "dark_css_variables": {"color-brand-primary": "#5eead4", "color-brand-content": "#5eead4"},
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js", "version-menu.js"]
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "version-menu.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "reference-links.html",
        "sidebar/scroll-end.html",
    ]
}
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_use_index = False
html_permalinks_icon = "#"

linkcheck_ignore = [r"https?://(127\.0\.0\.1|localhost|([\w-]+\.)?example(\.com|\.org)?)\b"]
