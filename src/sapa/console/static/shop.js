// Forms and lists of the shop: choosing while typing, ticking rows, and not leaving what was not saved.
"use strict";

// A field that chooses a customer or an article: results appear while somebody types, and choosing one fills the hidden
// field behind it. Text without a choice is sent as it is.
for (const field of document.querySelectorAll("[data-pick]")) {
  const input = field.querySelector("label input");
  const chosen = field.querySelector("input[type=hidden]");
  const list = document.createElement("ul");
  list.id = `pick-${[...document.querySelectorAll("[data-pick]")].indexOf(field)}`;
  list.className = "options";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.labels[0].firstChild.textContent);
  list.hidden = true;
  field.append(list);
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
    chosen.value = option.dataset.value;
    input.value = option.dataset.label;
    close();
  };
  const build = (one, n) => {
    const option = document.createElement("li");
    option.id = `${list.id}-${n}`;
    option.setAttribute("role", "option");
    option.textContent = one.label;
    if (one.hint) {
      const hint = document.createElement("span");
      hint.className = "quiet";
      hint.textContent = ` ${one.hint}`;
      option.append(hint);
    }
    if (one.value) Object.assign(option.dataset, { value: one.value, label: one.label });
    else option.setAttribute("aria-disabled", "true");
    return option;
  };
  const search = async () => {
    const number = ++asked;
    if (input.value.trim().length < 2) return close();
    const answer = await fetch(`${field.dataset.pick}?q=${encodeURIComponent(input.value)}`);
    if (!answer.ok || number !== asked) return;
    const found = await answer.json();
    list.replaceChildren(...(found.length ? found : [{ label: field.dataset.none }]).map(build));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(found.length ? 0 : -1);
  };
  input.addEventListener("input", () => {
    chosen.value = "";
    clearTimeout(timer);
    timer = setTimeout(search, 150);
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (list.hidden) return;
    if (step) mark((active + step + list.children.length) % list.children.length);
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

// Rows are ticked one by one or all at once; the actions appear with the first tick.
const prepareTicks = () => {
  const form = document.querySelector("[data-bulk]");
  if (!form) return;
  const boxes = [...form.querySelectorAll("[name=id]")];
  const all = form.querySelector("[data-all]");
  const actions = form.querySelector("[data-bulk-actions]");
  const count = form.querySelector("[data-ticked]");
  const show = () => {
    const ticked = boxes.filter((box) => box.checked).length;
    actions.hidden = !ticked;
    count.textContent = count.dataset.ticked.replace("#", ticked);
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  };
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    show();
  });
  form.addEventListener("change", show);
  show();
};
prepareTicks();

// A list is searched while somebody types, and keeps its place in the history. What exports or saves its filter follows.
for (const input of document.querySelectorAll("form.search input[type=search][data-as-typed]")) {
  let timer, asked = 0;
  const look = async () => {
    const number = ++asked;
    const query = new URLSearchParams([...new FormData(input.form)].filter(([, value]) => value));
    const answer = await fetch(`${location.pathname}?${query}`);
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (number !== asked || !page.getElementById("list")) return;
    history.replaceState(null, "", `?${query}`);
    for (const part of document.querySelectorAll("#list, #saved, #export")) part.replaceWith(document.adoptNode(page.getElementById(part.id)));
    prepareTicks();
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, 250);
  });
}

// Leaving a form that was changed and not saved asks first, also while it waits for the connection or for a question's answer.
for (const form of document.querySelectorAll("[data-guard]")) {
  let isChanged = false;
  form.addEventListener("input", () => (isChanged = true));
  addEventListener("submit", (event) => {
    if (event.target === form && !event.defaultPrevented) isChanged = false;
  });
  addEventListener("beforeunload", (event) => isChanged && event.preventDefault());
}

// The web chat's preview follows what is typed.
for (const preview of document.querySelectorAll("[data-chat-preview]")) {
  const form = preview.closest("form");
  const picker = form.querySelector("[data-picks]");
  picker.hidden = false;
  form.addEventListener("input", (event) => {
    if (event.target === picker) form.elements.color.value = picker.value;
    for (const part of preview.querySelectorAll("[data-when-form]"))
      part.toggleAttribute("hidden", !part.dataset.whenForm.split(" ").includes(form.elements.form.value));
    for (const text of preview.querySelectorAll("[data-text]"))
      text.textContent = (form.elements[text.dataset.text].value || text.dataset.default).slice(0, 48);
    const color = form.elements.color.value;
    if (!/^#[0-9a-f]{6}$/i.test(color)) return;
    picker.value = color;
    for (const part of preview.querySelectorAll("[data-fill]")) part.setAttribute("fill", color);
  });
}
