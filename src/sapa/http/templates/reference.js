"use strict";
(() => {
  const nav = document.querySelector("nav");
  const filter = document.getElementById("filter");
  const nothing = nav.querySelector(".nothing");
  const menu = nav.querySelector(".menu");
  const links = [...nav.querySelectorAll("li a")];
  const own = links.filter((link) => link.pathname === location.pathname);
  document.documentElement.classList.add("scripted");
  menu.hidden = false;

  const textOf = (link) => `${link.textContent} ${link.dataset.words || ""}`.toLowerCase();
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const link of links) link.parentElement.hidden = !words.every((word) => textOf(link).includes(word));
    for (const list of nav.querySelectorAll("ul")) {
      list.hidden = list.previousElementSibling.hidden = !list.querySelector("li:not([hidden])");
    }
    nothing.hidden = links.some((link) => !link.parentElement.hidden);
  };
  filter.addEventListener("input", narrow);
  filter.addEventListener("keydown", (event) => {
    const first = links.find((link) => !link.parentElement.hidden);
    if (event.key === "Enter" && first) first.click();
    if (event.key === "Escape") { filter.value = ""; narrow(); }
  });
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) { event.preventDefault(); open(true); filter.focus(); }
  });

  const open = (yes) => { nav.classList.toggle("open", yes); menu.setAttribute("aria-expanded", String(yes)); };
  menu.addEventListener("click", () => open(!nav.classList.contains("open")));
  for (const link of links) link.addEventListener("click", () => open(false));

  // A link to the place of another page, such as one that was saved when all places were on one page.
  const follow = () => {
    const elsewhere = location.hash && links.find((link) => link.hash === location.hash && !own.includes(link));
    if (elsewhere) location.replace(elsewhere.href);
  };
  addEventListener("hashchange", follow);
  follow();

  const byId = new Map(own.map((link) => [link.hash.slice(1), link]));
  const mark = (id) => {
    for (const link of links) link.removeAttribute("aria-current");
    const link = byId.get(id);
    link.setAttribute("aria-current", "true");
    const box = document.getElementById("contents");
    const place = link.getBoundingClientRect(), frame = box.getBoundingClientRect();
    if (place.top < frame.top || place.bottom > frame.bottom) box.scrollTop += place.top - frame.top - frame.height / 3;
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) mark(entry.target.id);
  }, { rootMargin: "-12% 0px -80% 0px" });
  for (const id of byId.keys()) seen.observe(document.getElementById(id));

  for (const figure of document.querySelectorAll("figure")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      const code = figure.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    figure.append(button);
  }
})();
