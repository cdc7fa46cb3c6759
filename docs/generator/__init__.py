"""Builds the documentation site from the Markdown files of the repository, with Sphinx, and writes generated pages."""
