// What was written in the inbox and not sent. Texts are kept on the server for each conversation, and in the browser until the
// server has them; files only here. All of it is carried over when the conversation is drawn anew, and comes back when it was not
// sent.
"use strict";

const say = (words) => {
  const toasts = make("div", { class: "toasts", role: "status" }, make("p", {}, words));
  document.querySelector("main").prepend(toasts);
  setTimeout(() => toasts.remove(), 6000);
};

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
  let possible = {}; // what it may have by this page's doing; anything else was typed on another device
  let timer = null, saving = Promise.resolve();

  // Resolves to the texts of another device, which the server has kept instead; to null if it could not be asked.
  const post = async ({ address, token, texts, bases }, keepalive = false) => {
    const fields = Object.entries({ token, ...texts });
    for (const [name, earlier] of Object.entries(bases)) for (const text of earlier ?? []) fields.push([`${name}Was`, text]);
    try {
      const answer = await fetch(address, { method: "POST", body: new URLSearchParams(fields), keepalive, signal: AbortSignal.timeout(10000) });
      if (answer.status === 409) return await answer.json();
      return answer.ok && !answer.redirected ? {} : null;
    } catch {
      return null;
    }
  };
  // Both texts, if the server's is of another device.
  const combine = (typed, earlier, fresh) => {
    if (!earlier || earlier.includes(fresh) || typed.includes(fresh)) return typed;
    const base = earlier.findLast((text) => text && fresh.startsWith(text));
    return base ? typed + fresh.slice(base.length) : join(fresh, typed);
  };
  const addPossible = (name, ...texts) => {
    possible[name] = [...new Set([...(possible[name] ?? []), ...texts])].slice(-5);
  };
  const listUnsaved = () => listNames().filter((name) => getBox(name).value !== (asked[name] ?? stored[name]));
  const pick = (from, names) => Object.fromEntries(names.map((name) => [name, from[name]]));
  const build = (names) => {
    const form = getForm("body");
    return { address: form.dataset.draft, token: form.elements.token.value, texts: pick(readTexts(), names), bases: pick(possible, names) };
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
  const rememberTexts = (ticket, texts, bases) => {
    const fields = Object.entries(texts).flatMap(([name, text]) => [[name, text], [`${name}Was`, text === undefined ? undefined : bases[name]]]);
    remember(ticket, Object.fromEntries(fields));
  };
  const rememberShown = () => {
    const texts = listNames().map((name) => [name, getBox(name).value === stored[name] ? undefined : getBox(name).value]);
    rememberTexts(inbox.dataset.ticket, Object.fromEntries(texts), possible);
  };
  const forget = (ticket, saved) => {
    const kept = listRemembered(ticket);
    const same = Object.keys(saved).filter((name) => kept[name] === saved[name]);
    rememberTexts(ticket, Object.fromEntries(same.map((name) => [name, undefined])), {});
  };

  // One after the other, so that the last one is the one that stays.
  const RETRY = 15000;
  const save = () => {
    clearTimeout(timer);
    timer = null;
    const names = listUnsaved();
    if (!names.length) return saving;
    const request = build(names), ticket = inbox.dataset.ticket, { texts } = request;
    for (const name of names) {
      posted.push((asked[name] = texts[name]));
      addPossible(name, texts[name]);
    }
    saving = saving.then(async () => {
      const others = await post(request);
      const saved = names.filter((name) => others && !(name in others));
      forget(ticket, pick(texts, saved));
      if (!isShown(ticket)) return;
      for (const name of saved) possible[name] = possible[name].slice(possible[name].lastIndexOf(texts[name]));
      for (const name of names) {
        if (asked[name] !== texts[name]) continue;
        stored[name] = saved.includes(name) ? texts[name] : undefined;
        delete asked[name];
      }
      for (const [name, text] of Object.entries(others ?? {})) putOther(name, possible[name], text);
      rememberShown();
      if (saved.length < names.length) timer ??= setTimeout(save, others ? 1000 : RETRY);
    });
    return saving;
  };
  const putOther = (name, earlier, text) => {
    const box = getBox(name), both = combine(box.value, earlier, text);
    if (both !== box.value) say(inbox.dataset.both);
    box.value = both;
    possible[name] = [text];
    stored[name] = text;
  };
  const saveSoon = () => {
    rememberShown();
    if (listUnsaved().length) timer ??= setTimeout(save, 1000);
  };
  inbox.addEventListener("input", saveSoon);
  addEventListener("pagehide", () => {
    const names = listUnsaved();
    if (names.length) post(build(names), true);
  });

  // The texts of now, once the server has them; those that it did not take are undefined.
  const settle = async () => {
    const texts = readTexts();
    await save();
    posted = [];
    return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, stored[name] === undefined ? undefined : text]));
  };

  // What this tab is sending is not what another one has sent.
  let underWay = [];
  const release = (sent) => { underWay = underWay.filter((one) => one !== sent); };

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
      possible: { ...possible, ...(name && { [name]: [...possible[name], ""] }) },
      text: name ? getBox(name).value : "",
      files: form === reply ? reply.chosenFiles ?? [] : [],
    };
    if (name) {
      getBox(name).value = stored[name] = "";
      addPossible(name, "");
      delete asked[name];
      rememberShown();
    }
    if (sent.files.length) composer.setFiles(reply, []);
    underWay.push(sent);
    return sent;
  };

  // What was sent from another tab or device is not sent from this one, too.
  const clearSent = (name, texts) => {
    const box = getBox(name);
    const others = texts.filter((text) => !underWay.some((sent) => sent.name === name && sent.text.trim() === text));
    if (!box?.value.trim() || !others.includes(box.value.trim())) return;
    box.value = stored[name] = "";
    addPossible(name, "");
    delete asked[name];
    rememberShown();
  };

  // To the server, for a conversation that is not shown any more.
  const keep = async (was, names) => {
    if (!names.length) return;
    const texts = pick(was.texts, names), bases = pick(was.possible, names);
    rememberTexts(was.ticket, texts, bases);
    const others = await post({ address: was.draft, token: was.token, texts, bases });
    if (!others) return;
    forget(was.ticket, pick(texts, names.filter((name) => !(name in others))));
    for (const [name, text] of Object.entries(others)) {
      was.texts[name] = combine(was.texts[name], was.possible[name], text);
      was.possible[name] = [text];
    }
    await keep(was, Object.keys(others));
  };
  addEventListener("online", () => {
    save();
    left.forEach((was) => keep(was, Object.keys(was.texts).filter((name) => name in listRemembered(was.ticket))));
  });

  // Back to where it was written: into its field, or to its conversation if another one is shown.
  const giveBack = ({ name, ticket, text, files, possible, draft, token }) => {
    if (!name) return;
    if (isShown(ticket)) {
      getBox(name).value = join(text, getBox(name).value);
      stored[name] = undefined;
      if (files.length) composer.setFiles(getForm("body"), [...files, ...(getForm("body").chosenFiles ?? [])]);
      return saveSoon();
    }
    const was = left.get(ticket) ?? { ticket, texts: {}, files: [], possible, draft, token };
    was.texts[name] = join(text, was.texts[name]);
    was.files = [...files, ...was.files];
    left.set(ticket, was);
    keep(was, [name]);
  };

  // What was typed while the server was asked is kept, and so is what the server added to a text that it had.
  const merge = (typed, before, fresh) => {
    const known = before === undefined ? undefined : [before, ...posted];
    return typed === before && !known?.includes(fresh) ? fresh : combine(typed, known, fresh);
  };

  // The composer as it is, before the conversation is replaced.
  const leave = () => {
    const form = getForm("body"), box = document.activeElement;
    return form && {
      ticket: inbox.dataset.ticket,
      texts: readTexts(),
      files: form.chosenFiles ?? [],
      possible,
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
    possible = was && isShown(was.ticket) ? was.possible : {};
    for (const name of listNames()) addPossible(name, stored[name]);
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
    const remembered = listRemembered(inbox.dataset.ticket);
    for (const name of listNames()) {
      if (remembered[name] === undefined) continue;
      const text = stored[name];
      getBox(name).value = remembered[name];
      putOther(name, remembered[`${name}Was`], text);
      addPossible(name, remembered[name]);
    }
    const earlier = left.get(inbox.dataset.ticket);
    left.delete(inbox.dataset.ticket);
    if (earlier?.files.length) composer.setFiles(getForm("body"), earlier.files);
    saveSoon();
  };

  enter(null);
  return { settle, take, release, clearSent, giveBack, leave, enter };
})();
