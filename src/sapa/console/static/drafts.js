// What was written in the inbox and not sent. Texts are kept on the server for each conversation, and in the browser until the
// server has them; files only here. All of it is carried over when the conversation is drawn anew, and comes back when it was not
// sent.
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
  let asked = {}; // what it is being asked to store
  let posted = []; // what was saved since the server was last asked for a page
  let timer = null, saving = Promise.resolve();

  const post = async (address, fields, keepalive = false) => {
    try {
      const answer = await fetch(address, { method: "POST", body: new URLSearchParams(fields), keepalive, signal: AbortSignal.timeout(10000) });
      return answer.ok && !answer.redirected;
    } catch {
      return false;
    }
  };
  const listUnsaved = () => listNames().filter((name) => getBox(name).value !== (asked[name] ?? stored[name]));
  const build = (names) => {
    const form = getForm("body");
    const texts = names.map((name) => [name, getBox(name).value]);
    return [form.dataset.draft, { token: form.elements.token.value, ...Object.fromEntries(texts) }];
  };

  // A tab that is closed while it is offline, and a session that has expired, lose nothing.
  const getKey = (ticket) => `${document.body.dataset.person} ${ticket}`;
  const readUnsaved = () => JSON.parse(localStorage.getItem(UNSAVED) ?? "{}");
  const listRemembered = (ticket) => readUnsaved()[getKey(ticket)] ?? {};
  const remember = (ticket, texts) => {
    const all = readUnsaved(), rest = { ...all[getKey(ticket)], ...texts };
    all[getKey(ticket)] = Object.values(rest).some((text) => text !== undefined) ? rest : undefined;
    localStorage.setItem(UNSAVED, JSON.stringify(all));
  };
  const rememberShown = () => {
    const texts = listNames().map((name) => [name, getBox(name).value === stored[name] ? undefined : getBox(name).value]);
    remember(inbox.dataset.ticket, Object.fromEntries(texts));
  };
  const forget = (ticket, saved) => {
    const same = Object.entries(listRemembered(ticket)).filter(([name, text]) => text === saved[name]);
    remember(ticket, Object.fromEntries(same.map(([name]) => [name, undefined])));
  };

  // One after the other, so that the last one is the one that stays.
  const RETRY = 15000;
  const save = () => {
    clearTimeout(timer);
    timer = null;
    const names = listUnsaved();
    if (!names.length) return saving;
    const [address, fields] = build(names), ticket = inbox.dataset.ticket;
    for (const name of names) posted.push((asked[name] = fields[name]));
    saving = saving.then(async () => {
      const isSaved = await post(address, fields);
      if (isSaved) forget(ticket, fields);
      if (!isShown(ticket)) return;
      for (const name of names) {
        if (asked[name] !== fields[name]) continue;
        stored[name] = isSaved ? fields[name] : undefined;
        delete asked[name];
      }
      rememberShown();
      if (!isSaved) timer ??= setTimeout(save, RETRY);
    });
    return saving;
  };
  const saveSoon = () => {
    rememberShown();
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
    posted = [];
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
    if (name) {
      getBox(name).value = stored[name] = "";
      delete asked[name];
      rememberShown();
    }
    if (sent.files.length) composer.setFiles(reply, []);
    return sent;
  };

  // To the server, for a conversation that is not shown any more.
  const keep = async (was, names) => {
    const texts = Object.fromEntries(names.map((name) => [name, was.texts[name]]));
    remember(was.ticket, texts);
    if (names.length && (await post(was.draft, { token: was.token, ...texts }))) forget(was.ticket, texts);
  };
  addEventListener("online", () => {
    save();
    left.forEach((was) => keep(was, Object.keys(listRemembered(was.ticket))));
  });

  // Back to where it was written: into its field, or to its conversation if another one is shown.
  const giveBack = ({ name, ticket, text, files, draft, token }) => {
    if (!name) return;
    if (isShown(ticket)) {
      getBox(name).value = join(text, getBox(name).value);
      stored[name] = undefined;
      if (files.length) composer.setFiles(getForm("body"), [...files, ...(getForm("body").chosenFiles ?? [])]);
      return saveSoon();
    }
    const was = left.get(ticket) ?? { ticket, texts: {}, files: [], draft, token };
    was.texts[name] = join(text, was.texts[name]);
    was.files = [...files, ...was.files];
    left.set(ticket, was);
    keep(was, [name]);
  };

  // What was typed while the server was asked is kept, and so is what the server added to a text that it had.
  const merge = (typed, before, fresh) => {
    const known = [before, ...posted];
    if (before === undefined || known.includes(fresh)) return typed;
    if (typed === before || typed === fresh) return fresh;
    const base = known.findLast((text) => text && fresh.startsWith(text));
    return base ? typed + fresh.slice(base.length) : join(fresh, typed);
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
    const files = isRefused && sent ? sent.files : [];
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
    asked = {};
    if (was && isShown(was.ticket)) {
      putTexts(was, before, sent, isRefused);
      putForms(was, sent, isRefused);
      return saveSoon();
    }
    if (was) {
      left.set(was.ticket, was);
      keep(was, Object.keys(was.texts).filter((name) => was.texts[name] !== before[name]));
    }
    if (!getForm("body")) return;
    for (const [name, text] of Object.entries(listRemembered(inbox.dataset.ticket))) getBox(name).value = text;
    const earlier = left.get(inbox.dataset.ticket);
    left.delete(inbox.dataset.ticket);
    if (earlier?.files.length) composer.setFiles(getForm("body"), earlier.files);
    saveSoon();
  };

  enter(null);
  return { settle, take, giveBack, leave, enter };
})();
