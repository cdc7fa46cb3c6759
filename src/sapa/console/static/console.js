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

// A page that answers a form is reloaded, and come back to, as the page of the form: nothing is sent a second time.
if (document.body.dataset.here) history.replaceState(null, "", document.body.dataset.here);

// What is shown once is not kept in a page that the browser puts aside for its back button.
addEventListener("pagehide", () => {
  for (const secret of document.querySelectorAll("[data-once]")) secret.remove();
});

const make = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const nameDeed = ({ dataset, form, textContent }) => {
  const deed = dataset.deed ?? textContent.trim().replace(/…$/, "");
  const field = dataset.amount && form.elements[dataset.amount];
  const amount = field && (field.value.trim() ? echoAmount(field) : echoUnits(form, field.dataset));
  return amount ? `${deed} ${amount}` : deed;
};

// What cannot be undone is asked first. The question is the title, the rest says what follows, and the red button repeats
// the verb, and the amount that was typed.
const ask = (button) => {
  const [, title, rest] = button.dataset.sure.match(/^(.*?\?)\s*(.*)$/) ?? [null, button.dataset.sure, ""];
  const no = make("button", { type: "button", autofocus: "" }, document.body.dataset.back);
  const yes = make("button", { type: "button", class: "danger main", "data-yes": "" }, nameDeed(button));
  const dialog = make("dialog", { "aria-labelledby": "asked" }, make("h2", { id: "asked" }, title));
  if (rest) dialog.append(make("p", {}, rest));
  dialog.append(make("div", { class: "buttons" }, no, yes));
  no.addEventListener("click", () => dialog.close());
  yes.addEventListener("click", () => {
    dialog.close();
    button.dataset.isSure = "1";
    button.form.requestSubmit(button);
  });
  dialog.addEventListener("close", () => {
    dialog.remove();
    button.focus();
  });
  document.body.append(dialog);
  dialog.showModal();
};

// Being offline is said; what was typed stays in the page, and what was sent goes out, once, when the browser is online again.
const offline = document.querySelector("[data-offline]");
const waiting = new Set();
const setOffline = () => {
  if (!offline) return;
  offline.hidden = navigator.onLine;
  offline.textContent = waiting.size ? offline.dataset.waiting : offline.dataset.offline;
};
addEventListener("offline", setOffline);
addEventListener("online", () => {
  const buttons = [...waiting];
  waiting.clear();
  setOffline();
  for (const button of buttons) if (button.isConnected) button.form.requestSubmit(button);
});
setOffline();

// The page of worker.js stands in for another one until the server is there again.
if ("away" in document.body.dataset && !location.pathname.startsWith("/console/offline/")) {
  setTimeout(() => location.reload(), 10000);
  addEventListener("online", () => location.reload());
}

document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button) return;
  if (!navigator.onLine) {
    event.preventDefault();
    waiting.add(button);
    setOffline();
  } else if (button.dataset.sure && !button.dataset.isSure) {
    event.preventDefault();
    ask(button);
  } else if (button.getAttribute("aria-busy")) {
    event.preventDefault();
  } else if (event.target.getAttribute("method") === "post") {
    setTimeout(() => button.setAttribute("aria-busy", "true"));
    setTimeout(() => button.removeAttribute("aria-busy"), 10000); // the answer may be a file, and the page stays
  }
});
addEventListener("pageshow", () => {
  for (const button of document.querySelectorAll("[aria-busy=true]")) button.removeAttribute("aria-busy");
});

// What was typed into a form survives a session that expired: the sign-in page and the page of an expired form keep it, and
// the form's own page takes it back, each field by its place among those of its name and ticks by their value. Passwords and
// files are never kept.
const KEPT = "sapa-typed";
const UNSAVED = "sapa-unsaved"; // what drafts.js keeps
const { person } = document.body.dataset;
const isRefuge = document.querySelector("[data-keeps-input]") !== null;
// Not form.action: a field of that name would stand in for it.
const readPath = (form) => new URL(form.getAttribute("action") ?? "", location).pathname;
const listForms = (path) => [...document.forms].filter((form) => readPath(form) === path);
const listFields = (form, name) => [...form.elements].filter((field) => field.name === name);
const isKept = ({ name, type }) => name && !/^(token|once|seen)$/.test(name) && !/^(password|file|submit|button|fieldset)$/.test(type);
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.getAttribute("method") !== "post" || isRefuge || form.querySelector("[type=password]")) return;
  if (form.matches("[data-forgets]")) {
    sessionStorage.removeItem(KEPT);
    navigator.serviceWorker?.controller?.postMessage("end");
    return localStorage.removeItem(UNSAVED);
  }
  const values = {};
  for (const field of [...form.elements].filter(isKept)) (values[field.name] ??= []).push([field.value, field.checked]);
  const action = readPath(form);
  sessionStorage.setItem(KEPT, JSON.stringify({ person, action, place: listForms(action).indexOf(form), values }));
});
const restore = (form, values) => {
  for (const [name, typed] of Object.entries(values)) {
    // Rows that were added to the form are added again.
    const row = listFields(form, name).at(-1)?.closest("[data-row]");
    for (let more = typed.length - listFields(form, name).length; row && more > 0; more--) row.after(row.cloneNode(true));
    const ticked = typed.filter(([, isChecked]) => isChecked).map(([value]) => value);
    listFields(form, name).forEach((field, place) => {
      if (!row && /^(checkbox|radio)$/.test(field.type)) field.checked = ticked.includes(field.value);
      else if (place < typed.length) [field.value, field.checked] = typed[place];
    });
  }
  for (const folded of document.querySelectorAll("details")) if (folded.contains(form)) folded.open = true;
  for (const folded of form.querySelectorAll("details"))
    if ([...folded.querySelectorAll("input")].some((field) => field.value !== field.defaultValue)) folded.open = true;
  form.querySelector("textarea, input:not([type=hidden])")?.focus();
};
const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
if (kept && isRefuge) {
  sessionStorage.setItem(KEPT, JSON.stringify({ ...kept, isLost: true }));
} else if (kept) {
  sessionStorage.removeItem(KEPT);
  const forms = listForms(kept.action);
  if (kept.isLost && kept.person === person && forms.length) restore(forms[kept.place] ?? forms[0], kept.values);
}

// What a form did is said for six seconds.
for (const toast of document.querySelectorAll(".toasts p")) setTimeout(() => toast.remove(), 6000);

// Ctrl K: one search over everything, with the results of its page.
const jump = document.querySelector("[data-palette]");
const openPalette = () => {
  const input = make("input", { type: "search", "aria-label": jump.dataset.palette, placeholder: jump.dataset.palette, autocomplete: "off" });
  const results = make("div", { class: "results" });
  const dialog = make("dialog", { class: "search", "aria-label": jump.dataset.palette }, input, results);
  let timer, asked = 0;
  const look = async () => {
    const number = ++asked;
    const answer = await fetch(`${jump.action}?q=${encodeURIComponent(input.value)}`);
    if (!answer.ok || number !== asked) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    results.replaceChildren(...document.adoptNode(page.getElementById("results")).childNodes);
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 150);
  });
  dialog.addEventListener("keydown", (event) => {
    const links = [input, ...results.querySelectorAll("a")];
    const place = links.indexOf(document.activeElement);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) links[(place + step + links.length) % links.length].focus();
    else if (event.key === "Enter" && place === 0) results.querySelector("a")?.click();
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  look();
};

// g and a letter opens a page of the menu; never while somebody types.
let isGoing;
document.addEventListener("keydown", (event) => {
  if (!jump || document.querySelector("dialog[open]")) return;
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    return openPalette();
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (isGoing) document.querySelector(`.nav [data-key="${CSS.escape(event.key)}"]`)?.click();
  isGoing = !isGoing && event.key === "g";
});

// As the server says it: in days from two on, in minutes below an hour.
const saySpan = (seconds, { days, hours, minutes }) => {
  const whole = Math.floor(seconds / 60), h = Math.floor(whole / 60);
  if (h >= 48) return days.replace("{n}", Math.floor(h / 24));
  return h ? hours.replace("{h}", h).replace("{m}", whole % 60) : minutes.replace("{n}", whole);
};
const countDown = () => {
  for (const time of document.querySelectorAll("[data-until]")) {
    const seconds = Math.max(0, (new Date(time.dataset.until) - Date.now()) / 1000);
    if (time.dataset.hours) {
      time.textContent = saySpan(seconds, time.dataset);
      continue;
    }
    const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
    time.textContent = parts.join(":");
  }
};
countDown();
setInterval(countDown, 1000);

// A part of the page that is not finished yet is looked at again until it is, also after the server was away.
const refresh = async () => {
  if (!document.querySelector("[data-refresh]")) return;
  const answer = await fetch(location.href).catch(() => null);
  if (answer?.redirected) return location.assign(answer.url); // to the sign-in page
  if (answer?.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.querySelector("main").replaceWith(document.adoptNode(page.querySelector("main")));
  }
  setTimeout(refresh, 1000);
};
setTimeout(refresh, 1000);

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

  const showChosen = (label) => {
    chosen.textContent = label;
    chosen.parentElement.hidden = false;
  };
  const stored = input.form.elements[prefix + "areaLabel"].value;
  if (stored) showChosen(stored);
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
    showChosen(label);
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

// An amount is echoed as it will be stored: people group thousands, and a mistake of three zeros is seen at once. It is read as
// amounts.py reads it; what the server refuses has no echo.
const UNITS = { rb: 3, ribu: 3, k: 3, jt: 6, juta: 6 };
const isGrouped = (number) => /^[1-9][0-9]{0,2}([.,])[0-9]{3}(\1[0-9]{3})*$/.test(number);
const readNumber = (number, group, isWhole) => {
  const marks = number.match(/[.,]/g) ?? [], last = marks.at(-1);
  if (!marks.length) return number;
  if (new Set(marks).size === 1 && isGrouped(number) && (marks.length > 1 || isWhole || last === group)) return number.replaceAll(last, "");
  const place = number.lastIndexOf(last), whole = number.slice(0, place), decimals = number.slice(place + 1);
  if (!decimals || whole.includes(last) || (marks.length > 1 && !isGrouped(whole))) return null;
  return `${whole.replace(/[.,]/g, "")}.${decimals}`;
};
const readAmount = (text, language, currency, digits) => {
  let plain = text.replace(/\s+/g, " ").trim();
  for (const symbol of ["rp.", "rp", currency.toLowerCase()]) if (plain.toLowerCase().startsWith(symbol)) plain = plain.slice(symbol.length).trim();
  const typed = plain.match(/^([0-9][0-9., ]*?)(?:,-|\.-)?\s*(rb|ribu|k|jt|juta)?$/i);
  if (!typed || plain.replace(/[^0-9]/g, "").length > 15) return null;
  const zeros = UNITS[typed[2]?.toLowerCase()] ?? 0;
  const number = readNumber(typed[1].replaceAll(" ", ""), language === "id" ? "." : ",", !zeros && (currency === "IDR" || digits === 0));
  if (number === null) return null;
  const decimals = number.split(".")[1] ?? "", amount = Number(`${number}e${zeros}`);
  if (!zeros && decimals.length > Math.max(digits, 2)) return null;
  return decimals.replace(/0+$/, "").length - zeros > digits || amount >= 1e15 ? null : amount;
};
const writeNumber = (number) => number.toLocaleString(document.documentElement.lang === "id" ? "id-ID" : "en-GB", { maximumFractionDigits: 4 });
const echoAmount = ({ value, dataset: { money, language, digits } }) => {
  const amount = readAmount(value, language, money, Number(digits));
  if (amount === null) return null;
  return `${money === "IDR" ? "Rp" : money}\u00a0${writeNumber(amount)}`;
};
// What the units and the shipping of a refund cost.
const echoUnits = (form, { money, language, digits }) => {
  const shipping = form.elements.shipping?.value ?? "", place = 10 ** digits;
  let amount = readAmount(shipping, language, money, Number(digits)) ?? 0;
  for (const { value, dataset: { charged, quantity, refunded } } of form.querySelectorAll("[data-charged]")) {
    const share = (units) => Math.round((charged * units * place) / quantity) / place;
    amount += share(Number(refunded) + Number(value)) - share(Number(refunded));
  }
  return amount ? echoAmount({ value: String(amount), dataset: { money, language: "en", digits } }) : null;
};
// A measure with its unit; of things that have no halves, which have no unit, only what was grouped.
const readMeasure = (text, language) => (/^[0-9][0-9., ]*$/.test(text) ? readNumber(text.replaceAll(" ", ""), language === "id" ? "." : ",", false) : null);
const echoNumber = ({ value, dataset: { unit } }) => {
  const text = value.trim();
  if (!unit) return isGrouped(text) ? writeNumber(Number(text.replace(/[.,]/g, ""))) : null;
  const number = readMeasure(text, document.documentElement.lang);
  return number === null ? null : `${writeNumber(Number(number))}\u00a0${unit}`;
};
for (const input of document.querySelectorAll("[data-money], [data-unit]")) {
  const [name, value] = input.dataset.when?.split(" ") ?? [];
  const echo = make("p", { class: "echo", role: "status" });
  (input.closest("label") ?? input).after(echo);
  const show = () => {
    const isMoney = !name || input.form.elements[name].value === value;
    const read = !isMoney ? null : input.dataset.money ? echoAmount(input) : echoNumber(input);
    echo.hidden = read === null;
    if (read !== null) echo.textContent = `= ${read}`;
  };
  (name ? input.form : input).addEventListener("input", show);
  show();
}

// Codes of countries, currencies and languages have their names in the page's language, and lists of them are sorted by name.
const nameCode = (code, type) => {
  try {
    const names = new Intl.DisplayNames([document.documentElement.lang], { type, languageDisplay: "standard", fallback: "none" });
    const name = names.of(code.replace("_", "-"));
    return name ? `${name} (${code})` : code;
  } catch {
    return code; // a word that is no code
  }
};
for (const part of document.querySelectorAll("[data-names]")) {
  if (!part.options) {
    part.textContent = nameCode(part.textContent, part.dataset.names);
    continue;
  }
  const chosen = part.value, options = [...part.options].filter((option) => option.value);
  for (const option of options) option.textContent = nameCode(option.value, part.dataset.names);
  part.append(...options.sort((a, b) => a.textContent.localeCompare(b.textContent, document.documentElement.lang)));
  part.value = chosen;
}
for (const list of document.querySelectorAll("[data-zones]"))
  list.append(...(Intl.supportedValuesOf?.("timeZone") ?? []).map((value) => make("option", { value })));

// A problem belongs to its field, and the first one has the focus. Rows of a form name their fields alike: theirs, like those that
// the script hides, is the last one before the problem in the same part, and of several ticks the first.
const findBefore = (problem) => {
  const fields = [...(problem.closest("td, fieldset, .panel, form")?.querySelectorAll("input:not([type=hidden]), select, textarea") ?? [])];
  const before = fields.filter((field) => field.compareDocumentPosition(problem) & Node.DOCUMENT_POSITION_FOLLOWING).at(-1);
  return before?.type === "checkbox" ? fields.find((field) => field.name === before.name) : before;
};
for (const problem of document.querySelectorAll(".problem[id]")) {
  const named = problem.closest("form")?.elements[problem.id.replace(/-problem$/, "")];
  const input = named instanceof HTMLElement && named.type !== "hidden" ? named : findBefore(problem);
  input?.setAttribute("aria-invalid", "true");
  input?.setAttribute("aria-describedby", problem.id);
}
const wrong = document.querySelector("[aria-invalid=true]");
for (let folded = wrong?.closest("details"); folded; folded = folded.parentElement.closest("details")) folded.open = true;
wrong?.focus();
