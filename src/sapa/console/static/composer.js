// Writing in the inbox: files, saved replies by "/" and mentions by "@". inbox.js sends what was written.
"use strict";

const composer = (() => {
  const inbox = document.querySelector(".inbox");

  // Files for a reply: picked, pasted or dropped. They are in the form's own field, so they are sent as without a script.
  const setFiles = (form, files) => {
    const field = form.querySelector("input[type=file]");
    const list = form.querySelector("[data-chosen]");
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    field.files = all.files;
    form.chosenFiles = files;
    list.hidden = !files.length;
    list.replaceChildren(...files.map((file) => {
      const button = make("button", { type: "button", "aria-label": `${list.dataset.remove} ${file.name}` }, "✕");
      button.addEventListener("click", () => setFiles(form, files.filter((other) => other !== file)));
      return make("li", {}, `${file.name} (${Math.ceil(file.size / 1024)} KB)`, button);
    }));
  };
  const addFiles = (form, more) => {
    const isMultiple = form.querySelector("input[type=file]").multiple;
    setFiles(form, isMultiple ? [...(form.chosenFiles ?? []), ...more].slice(0, 10) : [...more].slice(0, 1));
  };
  const getFileForm = (event) => event.target.closest?.("[data-files]");
  inbox.addEventListener("change", (event) => {
    if (event.target.type === "file" && getFileForm(event)) addFiles(getFileForm(event), event.target.files);
  });
  inbox.addEventListener("paste", (event) => {
    if (!getFileForm(event) || !event.clipboardData?.files.length) return;
    event.preventDefault();
    addFiles(getFileForm(event), event.clipboardData.files);
  });
  inbox.addEventListener("dragover", (event) => {
    if (!getFileForm(event) || ![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    getFileForm(event).classList.add("dropping");
  });
  inbox.addEventListener("dragleave", (event) => {
    if (getFileForm(event) && !getFileForm(event).contains(event.relatedTarget)) getFileForm(event).classList.remove("dropping");
  });
  inbox.addEventListener("drop", (event) => {
    const form = getFileForm(event);
    form?.classList.remove("dropping");
    if (!form || !event.dataTransfer.files.length) return;
    event.preventDefault();
    addFiles(form, event.dataTransfer.files);
  });

  // "/" offers saved replies, "@" the team.
  const findTyped = (field) => {
    const before = field.value.slice(0, field.selectionStart);
    return before.match(field.name === "body" ? /(?:^|\s)\/([a-z0-9_-]*)$/i : /(?:^|\s)@([^\s@]*)$/);
  };
  const listOptions = (list) => [...list.children].filter((option) => !option.hidden);
  const closeOptions = (field) => {
    field.form.querySelector(".canned").hidden = true;
    field.removeAttribute("aria-activedescendant");
  };
  const mark = (field, options, place) => {
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === place)));
    field.setAttribute("aria-activedescendant", options[place].id);
    options[place].scrollIntoView({ block: "nearest" });
  };
  const listBeginnings = ({ dataset }) => (dataset.mention ? dataset.mention.toLowerCase().split(/\s+/) : [dataset.shortcut]);
  const offer = (field) => {
    const list = field.form.querySelector(".canned"), typed = findTyped(field);
    if (!typed) return closeOptions(field);
    const words = typed[1].toLowerCase();
    for (const option of list.children)
      option.hidden = !listBeginnings(option).some((text) => text.startsWith(words)) && !(option.dataset.shortcut && option.textContent.toLowerCase().includes(words));
    const options = listOptions(list);
    list.hidden = !options.length;
    if (options.length) mark(field, options, 0);
  };
  const insert = (field, typed, text) => {
    const end = field.selectionStart, start = end - typed.length;
    field.setRangeText(text, start, end, "end");
    closeOptions(field);
    field.focus();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const insertReply = async (option, typed) => {
    const { ticket } = inbox.dataset;
    const answer = await fetch(option.dataset.fill).catch(() => null);
    if (!answer?.ok || answer.redirected || inbox.dataset.ticket !== ticket) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const field = inbox.querySelector("#reply textarea"), text = page.querySelector("[name=body]").value;
    insert(field, typed, text);
    // What could not be filled in is chosen, to be typed over.
    const left = text.match(/\{[a-z_]+\}/i);
    if (!left) return;
    const start = field.selectionStart - text.length + left.index;
    field.setSelectionRange(start, start + left[0].length);
  };
  inbox.addEventListener("click", (event) => {
    const { insert: text } = event.target.closest("[data-insert]")?.dataset ?? {};
    if (text) insert(inbox.querySelector(inbox.querySelector("#kind-note:checked") ? "#note textarea" : "#reply textarea"), "", text);
  });
  const choose = (field, option) => {
    const typed = findTyped(field)[1];
    if (option.dataset.mention) insert(field, `@${typed}`, `@${option.dataset.mention} `);
    else insertReply(option, `/${typed}`);
  };
  const isBox = (field) => field.matches?.("#reply textarea, #note textarea");
  inbox.addEventListener("input", (event) => isBox(event.target) && offer(event.target));
  inbox.addEventListener("focusout", (event) => isBox(event.target) && closeOptions(event.target));
  inbox.addEventListener("pointerdown", (event) => {
    const option = event.target.closest(".canned [role=option]");
    if (!option) return;
    event.preventDefault();
    choose(option.closest("form").querySelector("textarea"), option);
  });

  const useKey = (event) => {
    const field = event.target, list = field.form.querySelector(".canned");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      const button = (event.shiftKey && field.form.querySelector("[name=resolve]")) || field.form.querySelector("[data-send]");
      field.form.requestSubmit(button);
    } else if (list.hidden) {
      if (event.key !== "Escape") return;
      field.blur();
    } else {
      const options = listOptions(list), place = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
      if (event.key === "ArrowDown" || event.key === "ArrowUp") mark(field, options, (place + (event.key === "ArrowDown" ? 1 : -1) + options.length) % options.length);
      else if (event.key === "Enter" || event.key === "Tab") choose(field, options[Math.max(0, place)]);
      else if (event.key === "Escape") closeOptions(field);
      else return;
    }
    event.preventDefault();
  };

  return { setFiles, insertReply, isBox, useKey };
})();
