// What the pages do better with a script; without one they do the same, more plainly.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy);
    getSelection().selectAllChildren(text);
    if (!navigator.clipboard) return; // over plain HTTP there is none: it is selected, to be copied by hand
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "✓";
  });
}

// What is shown once is not kept in a page that the browser puts aside for its back button.
addEventListener("pagehide", () => {
  for (const secret of document.querySelectorAll("[data-once]")) secret.remove();
});

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.sure;
  if (question && !confirm(question)) event.preventDefault();
});

// Files for a reply: picked, pasted or dropped. They are in the form's own field, so they are sent as without a script.
for (const form of document.querySelectorAll("[data-files]")) {
  const field = form.querySelector("input[type=file]");
  const list = form.querySelector("[data-chosen]");
  let files = [];

  const put = (chosen) => {
    files = chosen;
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    field.files = all.files;
    list.hidden = !files.length;
    list.replaceChildren(...files.map((file) => {
      const row = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "✕";
      button.setAttribute("aria-label", `${list.dataset.remove} ${file.name}`);
      button.addEventListener("click", () => put(files.filter((other) => other !== file)));
      row.append(`${file.name} (${Math.ceil(file.size / 1024)} KB)`, button);
      return row;
    }));
  };

  const add = (more) => put(field.multiple ? [...files, ...more].slice(0, 10) : [...more].slice(0, 1));

  field.addEventListener("change", () => add(field.files));
  form.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    add(event.clipboardData.files);
  });
  form.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) form.classList.remove("dropping");
  });
  form.addEventListener("drop", (event) => {
    form.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });
}

const countDown = () => {
  for (const time of document.querySelectorAll("[data-until]")) {
    const seconds = Math.max(0, (new Date(time.dataset.until) - Date.now()) / 1000);
    const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
    time.textContent = parts.join(":");
  }
};
countDown();
setInterval(countDown, 1000);

// A part of the page that is not finished yet is looked at again until it is.
const refresh = async () => {
  const part = document.querySelector("[data-refresh]");
  if (!part) return;
  const text = await (await fetch(location.href)).text();
  const page = new DOMParser().parseFromString(text, "text/html");
  document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
  setTimeout(refresh, 1000);
};
setTimeout(refresh, 1000);

// What others change, too: a stream says when, and the parts that differ are put in place. Rows are matched by their id,
// so that a screen reader hears of the new ones only; a part that somebody is typing in is left alone.
const watched = document.querySelector("[data-events]");
let stream, isLooking, isDue;

const isInUse = (part) =>
  part.contains(document.activeElement) ||
  [...part.querySelectorAll("textarea, input")].some((field) => field.value !== field.defaultValue);

const mergeRows = (old, fresh) => {
  const rows = [...fresh.children];
  const wanted = new Set(rows.map((row) => row.id));
  for (const row of [...old.children]) if (!wanted.has(row.id)) row.remove();
  rows.forEach((row, place) => {
    const known = [...old.children].find((other) => other.id === row.id);
    if (!known) old.insertBefore(row, old.children[place] ?? null);
    else if (!known.isEqualNode(row)) known.replaceWith(row);
  });
};

const putInPlace = (fresh) => {
  const old = document.getElementById(fresh.id);
  if (!old || old.isEqualNode(fresh)) return;
  if (fresh.dataset.live === "rows") return mergeRows(old, fresh);
  if (fresh.dataset.stand && (fresh.dataset.stand === old.dataset.stand || isInUse(old))) return;
  const link = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
  old.replaceWith(fresh);
  if (link) [...fresh.querySelectorAll("a")].find((other) => other.getAttribute("href") === link)?.focus();
};

const look = async () => {
  isDue = true;
  if (isLooking) return;
  isLooking = true;
  try {
    while (isDue) {
      isDue = false;
      const answer = await fetch(watched.dataset.part);
      if (answer.redirected) location.reload();
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const fresh of page.querySelectorAll("[data-live]")) putInPlace(document.adoptNode(fresh));
      countDown();
    }
  } catch {
    // The network is away: the stream notices that, too, and comes back.
  } finally {
    isLooking = false;
  }
};

const setLost = (isLost) => {
  for (const link of document.querySelectorAll("[data-lost]")) link.hidden = !isLost;
};

const watch = () => {
  const address = new URL(watched.dataset.events, location.href);
  address.searchParams.set("seen", watched.querySelector("[data-seen]").dataset.seen);
  const opened = (stream = new EventSource(address));
  opened.addEventListener("open", () => setLost(false));
  opened.addEventListener("changed", look);
  opened.addEventListener("error", () => {
    if (opened !== stream) return;
    setLost(true);
    if (opened.readyState === EventSource.CLOSED) setTimeout(() => opened === stream && !document.hidden && watch(), 15000);
  });
};

// Browsers keep few connections to one server: a page that nobody looks at gives its own back.
if (watched) {
  watch();
  document.addEventListener("visibilitychange", () => {
    stream.close();
    if (!document.hidden) watch();
  });
}

// One field for an area: results appear while somebody types, and choosing one fills the hidden fields.
for (const field of document.querySelectorAll("[data-areas]")) {
  const input = field.querySelector("input[type=search]");
  const prefix = input.name.slice(0, -"areaSearch".length);
  const chosen = field.parentElement.querySelector(".area-chosen");
  const list = document.createElement("ul");
  list.id = `${input.name}-list`;
  list.className = "options";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.labels[0].firstChild.textContent);
  list.hidden = true;
  field.append(list);
  field.querySelector("button").hidden = true;
  for (const [name, value] of [["role", "combobox"], ["aria-expanded", "false"], ["aria-controls", list.id], ["aria-autocomplete", "list"]])
    input.setAttribute(name, value);
  let timer, active = -1, asked = 0;

  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const mark = (place) => {
    active = place;
    [...list.children].forEach((option, n) => option.setAttribute("aria-selected", String(n === place)));
    if (place < 0) return;
    input.setAttribute("aria-activedescendant", list.children[place].id);
    list.children[place].scrollIntoView({ block: "nearest" });
  };
  const choose = (option) => {
    const [ids, label] = option.dataset.value.split("|");
    const form = input.form.elements;
    ["provinceId", "cityId", "kecamatanId", "kelurahanId"].forEach((name, n) => (form[prefix + name].value = ids.split("/")[n]));
    form[prefix + "areaLabel"].value = label;
    const parts = label.split(", ");
    [["city", 2], ["province", 3], ["zip", 4]].forEach(([name, n]) => parts[n] && form[prefix + name] && (form[prefix + name].value = parts[n]));
    chosen.textContent = label;
    chosen.parentElement.hidden = false;
    input.value = "";
    close();
  };
  const search = async () => {
    const number = ++asked;
    if (input.value.trim().length < 3) return close();
    const answer = await fetch(`${field.dataset.areas}?q=${encodeURIComponent(input.value)}`);
    if (!answer.ok || number !== asked) return;
    const found = await answer.json();
    list.replaceChildren(
      ...(found.length ? found : [{ label: field.dataset.none }]).map((area, n) => {
        const option = document.createElement("li");
        option.id = `${list.id}-${n}`;
        option.setAttribute("role", "option");
        option.textContent = area.label;
        if (area.value) option.dataset.value = area.value;
        else option.setAttribute("aria-disabled", "true");
        return option;
      }),
    );
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(found.length ? 0 : -1);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  input.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (list.hidden) return;
    if (event.key in steps) mark((active + steps[event.key] + list.children.length) % list.children.length);
    else if (event.key === "Enter" && list.children[active]?.dataset.value) choose(list.children[active]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  list.addEventListener("pointerdown", (event) => {
    const option = event.target.closest("[data-value]");
    event.preventDefault();
    if (option) choose(option);
  });
  input.addEventListener("blur", close);
}
