// What was written in the inbox and not sent. Texts are kept on the server for each conversation, files only here. All of it is
// carried over when the conversation is drawn anew, and comes back when it was not sent.
"use strict";

const drafts = (() => {
  const inbox = document.querySelector(".inbox");
  const FORMS = { body: "reply", note: "note" };
  const getForm = (name) => inbox.querySelector(`#${FORMS[name]}`);
  const getBox = (name) => getForm(name)?.elements[name];
  const join = (...texts) => texts.filter(Boolean).join("\n");
  const listNames = () => Object.keys(FORMS).filter((name) => getBox(name));
  const readTexts = () => Object.fromEntries(listNames().map((name) => [name, getBox(name).value]));
  const isShown = (ticket) => inbox.dataset.ticket === ticket && getForm("body") !== null;

  const left = new Map(); // the conversations that were left, as they were
  let stored = {}; // what the server has of the one that is shown
  let timer = null, saving = Promise.resolve();

  const post = async (address, fields, keepalive = false) => {
    try {
      const answer = await fetch(address, { method: "POST", body: new URLSearchParams(fields), keepalive, signal: AbortSignal.timeout(10000) });
      return answer.ok && !answer.redirected;
    } catch {
      return false;
    }
  };
  const listUnsaved = () => listNames().filter((name) => getBox(name).value !== stored[name]);
  const build = (names) => {
    const form = getForm("body");
    const texts = names.map((name) => [name, getBox(name).value]);
    return [form.dataset.draft, { token: form.elements.token.value, ...Object.fromEntries(texts) }];
  };

  // One after the other, so that the last one is the one that stays.
  const save = () => {
    clearTimeout(timer);
    timer = null;
    const names = listUnsaved();
    if (!names.length) return saving;
    const [address, fields] = build(names), ticket = inbox.dataset.ticket;
    for (const name of names) stored[name] = fields[name];
    saving = saving.then(async () => {
      if ((await post(address, fields)) || !isShown(ticket)) return;
      for (const name of names) stored[name] = undefined;
    });
    return saving;
  };
  const saveSoon = () => {
    if (listUnsaved().length) timer ??= setTimeout(save, 1000);
  };
  inbox.addEventListener("input", saveSoon);
  addEventListener("pagehide", () => {
    const names = listUnsaved();
    if (names.length) post(...build(names), true);
  });

  // The texts of now, once the server has them; those that it did not take are undefined.
  const settle = async () => {
    const texts = readTexts();
    await save();
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, stored[name] === undefined ? undefined : text]));
  };

  // Takes what is being sent out of its form: what is typed from now on belongs to the next message.
  const take = (form) => {
    const name = Object.keys(FORMS).find((one) => form.id === FORMS[one]);
    const reply = getForm("body");
    const sent = {
      form,
      name,
      ticket: inbox.dataset.ticket,
      person: inbox.querySelector(".talk-head h2").textContent,
      address: location.href,
      draft: reply.dataset.draft,
      token: reply.elements.token.value,
      text: name ? getBox(name).value : "",
      files: form === reply ? reply.chosenFiles ?? [] : [],
    };
    if (name) getBox(name).value = stored[name] = "";
    if (sent.files.length) composer.setFiles(reply, []);
    return sent;
  };

  // To the server, for a conversation that is not shown any more.
  const keep = async (was, names) => {
    for (const name of names) was.unsaved.add(name);
    const texts = names.map((name) => [name, was.texts[name]]);
    if (!names.length || !(await post(was.draft, { token: was.token, ...Object.fromEntries(texts) }))) return;
    for (const name of names) was.unsaved.delete(name);
  };
  addEventListener("online", () => left.forEach((was) => keep(was, [...was.unsaved])));

  // Back to where it was written: into its field, or to its conversation if another one is shown.
  const giveBack = ({ name, ticket, text, files, draft, token }) => {
    if (!name) return;
    if (isShown(ticket)) {
      getBox(name).value = join(text, getBox(name).value);
      stored[name] = undefined;
      if (files.length) composer.setFiles(getForm("body"), [...files, ...(getForm("body").chosenFiles ?? [])]);
      return saveSoon();
    }
    const was = left.get(ticket) ?? { texts: {}, files: [], draft, token, unsaved: new Set() };
    was.texts[name] = join(text, was.texts[name]);
    was.files = [...files, ...was.files];
    left.set(ticket, was);
    keep(was, [name]);
  };

  // What was typed while the server was asked is kept, and so is what the server added. It keeps no blanks around a text.
  const merge = (typed, before, fresh) => {
    const base = before?.trim();
    if (base === undefined || fresh.trim() === base) return typed;
    if (typed === before || typed === fresh) return fresh;
    return base && fresh.startsWith(base) ? typed + fresh.slice(base.length) : join(fresh, typed);
  };

  // The composer as it is, before the conversation is replaced.
  const leave = () => {
    const form = getForm("body"), box = document.activeElement;
    return form && {
      ticket: inbox.dataset.ticket,
      texts: readTexts(),
      files: form.chosenFiles ?? [],
      draft: form.dataset.draft,
      token: form.elements.token.value,
      unsaved: new Set(),
      isNote: document.getElementById("kind-note").checked,
      seen: form.elements.seen.value,
      template: inbox.querySelector("#template:has(form[method=post])"),
      scroll: inbox.querySelector(".log").scrollTop,
      caret: composer.isBox(box) ? [box.name, box.selectionStart, box.selectionEnd] : null,
    };
  };

  const putTexts = (was, before, sent, isRefused) => {
    for (const name of listNames()) {
      const box = getBox(name);
      box.value = merge(was.texts[name], before[name], box.value);
      if (isRefused) stored[name] = undefined;
    }
    const form = getForm("body");
    // Of several messages some were sent if the text does not come back.
    const files = isRefused && sent && (form.elements.body.defaultValue || !sent.text) ? sent.files : [];
    if (files.length + was.files.length) composer.setFiles(form, [...files, ...was.files]);
    if (sent?.form.id !== "reply" && was.texts.body) form.elements.seen.value = was.seen;
  };
  const putForms = (was, sent, isRefused) => {
    const isNote = was.isNote && !(sent?.name === "note" && !was.texts.note);
    if (!(isRefused && sent)) document.getElementById(isNote ? "kind-note" : "kind-reply").checked = true;
    const template = inbox.querySelector("#template");
    if (was.template && !was.template.contains(sent?.form) && !template.querySelector("form[method=post]")) template.replaceWith(was.template);
    if (!sent) inbox.querySelector(".log").scrollTop = was.scroll;
    if (!was.caret) return;
    const box = getBox(was.caret[0]);
    box.focus({ preventScroll: true });
    box.setSelectionRange(was.caret[1], was.caret[2]);
  };

  // After it was replaced: `was` is how it was left, `before` has the texts at the time when the server was asked, `sent` is what
  // was taken out of a form.
  const enter = (was, { before = {}, sent, isRefused } = {}) => {
    stored = Object.fromEntries(listNames().map((name) => [name, getBox(name).defaultValue]));
    if (was && isShown(was.ticket)) {
      putTexts(was, before, sent, isRefused);
      putForms(was, sent, isRefused);
      return saveSoon();
    }
    if (was) {
      left.set(was.ticket, was);
      keep(was, Object.keys(was.texts).filter((name) => was.texts[name] !== before[name]));
    }
    const earlier = left.get(inbox.dataset.ticket);
    if (!earlier || !getForm("body")) return;
    left.delete(inbox.dataset.ticket);
    for (const name of earlier.unsaved) getBox(name).value = earlier.texts[name];
    if (earlier.files.length) composer.setFiles(getForm("body"), earlier.files);
    saveSoon();
  };

  enter(null);
  saveSoon();
  return { settle, take, giveBack, leave, enter };
})();
