// The versions that are published beside this one; `python -m docs.generator.publish` writes it anew.
window.SAPA_VERSIONS = [];
