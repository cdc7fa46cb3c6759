"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const own = decodeURIComponent(root.pathname.split("/").at(-2));
  const menu = document.querySelector(".version-menu");
  if (!menu || window.SAPA_VERSIONS.length < 2) return;
  const select = menu.querySelector("select");
  for (const version of window.SAPA_VERSIONS) select.add(new Option(version, version, false, version === own));
  menu.hidden = false;
  select.addEventListener("change", async () => {
    const home = new URL(`../${select.value}/index.html`, root);
    const page = new URL(`../${select.value}/${location.href.slice(root.href.length)}`, root);
    // The page may be new or gone in the other version, and a file cannot be asked.
    const found = await fetch(page, { method: "HEAD" }).then((response) => response.ok, () => false);
    location.href = found ? page : home;
  });
});
