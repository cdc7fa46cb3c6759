// The inbox as one screen: conversations open, and forms are sent, without loading the page again. Links and forms do the
// same without this script.
"use strict";

{
  const inbox = document.querySelector(".inbox");
  const find = (selector) => inbox.querySelector(selector);
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  let stream, isLooking, isDue, number = 0;

  // What others change, too: a stream says when, and the parts that differ are put in place. Rows are matched by their id,
  // so that a screen reader hears of the new ones only; a part that somebody uses is left alone.
  const isInUse = (part) => part.contains(document.activeElement) || part.querySelector("details[open]") !== null;

  const mergeRows = (old, fresh) => {
    const rows = [...fresh.children];
    const ids = new Set(rows.map((row) => row.id));
    for (const row of [...old.children]) if (!ids.has(row.id) && !row.classList.contains("sending")) row.remove();
    rows.forEach((row, place) => {
      const existing = [...old.children].find((other) => other.id === row.id);
      if (existing && existing.isEqualNode(row)) {
        if (old.children[place] !== existing && !existing.contains(document.activeElement)) old.insertBefore(existing, old.children[place]);
        return;
      }
      const isChosen = existing?.querySelector(".pick:checked");
      const hasFocus = existing?.contains(document.activeElement);
      existing?.remove();
      old.insertBefore(row, old.children[place] ?? null);
      if (isChosen) row.querySelector(".pick").checked = true;
      if (hasFocus) row.querySelector("a")?.focus();
    });
  };

  const countPicked = () => {
    const output = find("#bulk output");
    if (output) output.textContent = output.dataset.words.replace("#", inbox.querySelectorAll(".pick:checked").length);
  };
  inbox.addEventListener("change", (event) => event.target.matches(".pick") && countPicked());

  // Rows never move under the pointer: new ones wait behind a button.
  let waitingRows;
  const putQueue = (fresh) => {
    mergeRows(find("#rows"), fresh);
    waitingRows = null;
    find("[data-fresh]").hidden = true;
    countPicked();
  };
  const showWaiting = () => waitingRows && putQueue(waitingRows);
  const putRows = (old, fresh) => {
    if (old.id !== "rows") return mergeRows(old, fresh);
    const news = [...fresh.children].filter((row) => row.id.startsWith("tkt_") && !document.getElementById(row.id)).length;
    if (!news || !find("#tickets").matches(":hover") || !old.querySelector(".ticket")) return putQueue(fresh);
    waitingRows = fresh;
    const button = find("[data-fresh]");
    button.textContent = button.dataset.fresh.replace("{n}", news);
    button.hidden = false;
  };
  inbox.addEventListener("click", (event) => event.target.closest("[data-fresh]") && showWaiting());
  find(".queue").addEventListener("mouseleave", showWaiting);

  const putInPlace = (fresh) => {
    const old = document.getElementById(fresh.id);
    if (!old || old.isEqualNode(fresh)) return;
    if (fresh.dataset.live === "rows") return putRows(old, fresh);
    if (isInUse(old)) return;
    old.replaceWith(fresh);
  };

  const showCounts = () => {
    const { waiting, unassigned } = find("#queue-tabs").dataset;
    document.title = (Number(waiting) ? `(${waiting}) ` : "") + document.title.replace(/^\(\d+\) /, "");
    for (const link of document.querySelectorAll(".nav a[data-key=i], .tabbar a[href$='/inbox']")) {
      const count = link.querySelector(".count") ?? link.appendChild(make("span", { class: "count hot" }));
      count.firstChild ? (count.firstChild.data = unassigned) : count.append(unassigned);
      count.hidden = !Number(unassigned);
    }
  };

  // The session has expired. A text that was being sent is kept with what is typed.
  const hasLeft = (answer, sent) => {
    if (new URL(answer.url).pathname !== "/console/sign-in") return false;
    if (sent) drafts.giveBack(sent);
    location.assign(answer.url);
    return true;
  };

  // Who has begun to write has seen what was there before, and nobody reads an answer the moment it appears: a newer answer of
  // somebody else stops the reply.
  const READING_TIME = 3000;
  const markSeen = (form, sequence) => {
    const { body, seen } = form.elements;
    if (!body.value && document.activeElement !== body) seen.value = Math.max(seen.value, sequence);
  };

  const look = async () => {
    isDue = true;
    if (isLooking || !inbox.dataset.part) return;
    isLooking = true;
    try {
      while (isDue) {
        isDue = false;
        const asked = inbox.dataset.part;
        const answer = await fetch(asked);
        if (!answer.ok || hasLeft(answer)) return;
        const page = parse(await answer.text());
        if (asked !== inbox.dataset.part) continue;
        const mine = [...page.querySelectorAll("[data-mine]")].filter((line) => !document.getElementById(line.id));
        for (const fresh of page.querySelectorAll("[data-live]")) putInPlace(document.adoptNode(fresh));
        for (const line of mine) {
          const texts = [...line.querySelectorAll(".words")].map((words) => words.textContent.trim());
          drafts.clearSent(line.matches(".note") ? "note" : "body", texts);
        }
        const state = page.querySelector(".inbox").dataset;
        inbox.dataset.seen = state.seen;
        const form = find("#reply");
        if (form) setTimeout(markSeen, READING_TIME, form, state.sequence);
        showCounts();
        countDown();
      }
    } catch {
      // The network is away: the stream notices that, too, and comes back.
    } finally {
      isLooking = false;
    }
  };
  setInterval(() => document.hidden || look(), 60000); // how long people wait, in minutes

  const setLost = (isLost) => {
    for (const link of document.querySelectorAll("[data-lost]")) link.hidden = !isLost;
  };

  // Browsers keep few connections to one server: a page that nobody looks at gives its own back.
  const connect = () => {
    stream?.close();
    if (!inbox.dataset.events || document.hidden) return;
    const address = new URL(inbox.dataset.events, location.href);
    address.searchParams.set("seen", inbox.dataset.seen);
    const opened = (stream = new EventSource(address));
    opened.addEventListener("open", () => setLost(false));
    opened.addEventListener("changed", look);
    opened.addEventListener("error", () => {
      if (opened !== stream) return;
      setLost(true);
      if (opened.readyState === EventSource.CLOSED) setTimeout(() => opened === stream && connect(), 15000);
    });
  };
  document.addEventListener("visibilitychange", connect);

  // Opens what an address shows: the queue stays where it is, the conversation and the customer are replaced.
  const main = document.querySelector("main");
  const showNotices = (page) => {
    for (const old of main.querySelectorAll(":scope > .toasts, :scope > .alert:not(.unsent)")) old.remove();
    for (const fresh of [...page.querySelectorAll("main > .toasts, main > .alert")].reverse()) main.prepend(document.adoptNode(fresh));
    for (const toast of main.querySelectorAll(".toasts p")) setTimeout(() => toast.remove(), 6000);
    main.querySelector(`.unsent[data-ticket="${inbox.dataset.ticket}"]`)?.remove();
  };

  const show = (page, asked) => {
    const fresh = page.querySelector(".inbox"), was = drafts.leave();
    for (const name of ["view", "ticket", "events", "part", "seen"]) {
      if (fresh.dataset[name] === undefined) delete inbox.dataset[name];
      else inbox.dataset[name] = fresh.dataset[name];
    }
    showNotices(page);
    for (const selector of ["#talk", "#about", "#bulk", "#queue-tabs", "#queue-mentions", ".queue-head"]) {
      const old = find(selector), put = fresh.querySelector(selector);
      if (!old || !put) continue;
      if (selector === ".queue-head" && old.querySelector(".find").contains(document.activeElement)) {
        old.querySelector(".find").setAttribute("action", put.querySelector(".find").getAttribute("action"));
        continue;
      }
      const hasFocus = old.contains(document.activeElement);
      old.replaceWith(document.adoptNode(put));
      if (hasFocus && selector === ".queue-head") put.querySelector("summary").focus();
    }
    find("#queue-kept")?.remove();
    const kept = fresh.querySelector("#queue-kept");
    if (kept) find("#tickets").before(document.adoptNode(kept));
    putQueue(document.adoptNode(fresh.querySelector("#rows")));
    document.title = page.title;
    drafts.enter(was, asked);
    showCounts();
    countDown();
    connect();
  };

  // Of several messages the first may have been sent: the text, and as many files as the page says.
  const dropSent = (sent, page) => {
    const count = page.querySelector("#reply")?.dataset.sent;
    return count === undefined ? sent : { ...sent, text: "", files: sent.files.slice(count) };
  };

  // Resolves to the answer, what of a message was not sent if it is a refusal, and whether it is shown: another one may have been
  // opened meanwhile. To null if the page is left.
  let searchTimer;
  const open = async (address, { options, sent, history: step = "pushState" } = {}) => {
    clearTimeout(searchTimer); // who opens something meanwhile does not wait for the search
    const mine = ++number;
    const before = await drafts.settle();
    const answer = await fetch(address, options);
    if (hasLeft(answer, sent)) return null;
    const page = parse(await answer.text());
    const unsent = sent && dropSent(sent, page);
    if (mine !== number) return { answer, unsent, isShown: false };
    if (!page.querySelector(".inbox")) {
      const typed = options && JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
      if (typed) sessionStorage.setItem(KEPT, JSON.stringify({ ...typed, isLost: true }));
      if (sent) drafts.giveBack(sent);
      location.reload();
      return null;
    }
    if (answer.ok && step && answer.url !== location.href) history[step](null, "", answer.url);
    show(page, { before, sent: unsent, isRefused: !answer.ok });
    return { answer, unsent, isShown: true };
  };
  const visit = (address, settings) => open(address, settings).catch(() => say(inbox.dataset.away));

  // Meanwhile nothing reaches the conversation that is left: what somebody types now is meant for the next one.
  let opening = 0, aimed = "", wanted = null;
  const openTicket = async (link) => {
    aimed = link.closest("li").id;
    opening += 1;
    find("#talk").inert = true;
    const outcome = await visit(link.href);
    opening -= 1;
    if (opening) return;
    aimed = "";
    find("#talk").inert = false;
    find(".ticket[aria-current]")?.scrollIntoView({ block: "nearest" });
    if (wanted && outcome?.isShown) write(wanted);
    wanted = null;
  };

  inbox.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.target) return;
    const photo = link.dataset.photo;
    const view = link.dataset.viewTo;
    if (photo) {
      event.preventDefault();
      return showPhoto(photo, link.querySelector("img").alt);
    }
    if (link.dataset.shortcut) {
      event.preventDefault();
      link.closest("details").open = false;
      return composer.insertReply(find(`.canned [data-shortcut="${CSS.escape(link.dataset.shortcut)}"]`), "");
    }
    if (view && view !== "queue") {
      event.preventDefault();
      return view === "customer" ? togglePane() : showPane(view);
    }
    if (!/^\/console\/(live|test)\/inbox(\/tkt_\w+)?$/.test(new URL(link.href).pathname)) return;
    event.preventDefault();
    link.closest("details.pop")?.removeAttribute("open");
    if (link.classList.contains("ticket")) openTicket(link);
    else visit(link.href);
  });
  const isWithPane = () => new URL(location.href).searchParams.get("pane") === "customer";
  addEventListener("popstate", () => {
    if (location.pathname.endsWith(`/${inbox.dataset.ticket}`)) inbox.dataset.view = isWithPane() ? "customer" : "talk";
    visit(location.href, { history: null });
  });

  // Where one thing is shown at a time, Back leads from the customer to the conversation.
  const showPane = (view) => {
    inbox.dataset.view = view;
    const address = new URL(location.href);
    if (view === "customer") {
      address.searchParams.set("pane", view);
      history.pushState({ isPane: true }, "", address);
    } else if (history.state?.isPane) history.back();
    else {
      address.searchParams.delete("pane");
      history.replaceState(null, "", address);
    }
  };
  const togglePane = () => {
    if (matchMedia("(min-width: 80.01rem)").matches) inbox.toggleAttribute("data-folded");
    else if (inbox.dataset.ticket) showPane(inbox.dataset.view === "customer" ? "talk" : "customer");
  };

  const showPhoto = (address, words) => {
    const dialog = make("dialog", { class: "lightbox", "aria-label": words }, make("img", { src: address, alt: words }));
    dialog.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      dialog.remove();
      // Its line may have been drawn anew meanwhile.
      [...document.querySelectorAll(".photo")].find((link) => link.dataset.photo === address)?.focus();
    });
    document.body.append(dialog);
    dialog.showModal();
  };

  // Forms. A message is shown at once as being sent, and comes back into its field if it was not.
  const showSending = ({ form, text }) => {
    const line = make("li", { class: `line ${form.id === "note" ? "note" : "out"} sending`, id: "line-sending" }, make("p", { class: "words" }, text));
    find("#conversation").append(line);
    return line;
  };
  const addUndo = (form, token) => {
    const toast = document.querySelector(".toasts p");
    if (!toast) return;
    const button = make("button", { type: "button", class: "plain" }, form.dataset.undo);
    button.addEventListener("click", () => {
      visit(form.dataset.undoTo, { options: { method: "POST", body: new URLSearchParams({ token }) } });
    });
    toast.append(" ", button);
  };
  // Told until its conversation is opened, whatever else is opened before.
  const tellUnsent = ({ name, person, ticket, address }) => {
    const words = name ? inbox.dataset.unsent : inbox.dataset.unsentTemplate;
    const link = make("a", { href: address }, inbox.dataset.open);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      visit(address);
    });
    main.querySelector(`.unsent[data-ticket="${ticket}"]`)?.remove();
    main.prepend(make("p", { class: "alert unsent", role: "alert", "data-ticket": ticket }, words.replace("{name}", person), " ", link));
  };

  const send = async (form, button) => {
    const data = new FormData(form, button);
    if (form.dataset.with) for (const [name, value] of new FormData(find(form.dataset.with))) data.append(name, value);
    const options = { method: "POST", body: form.enctype === "multipart/form-data" ? data : new URLSearchParams(data) };
    const sent = form.matches("#reply, #note, #template form") ? drafts.take(form) : null;
    const line = sent?.text.trim() && !sent.files.length && button?.name !== "later" ? showSending(sent) : null;
    const outcome = await open(button?.getAttribute("formaction") ?? form.getAttribute("action"), { options, sent }).catch(() => undefined);
    drafts.release(sent);
    if (outcome === null) return;
    sessionStorage.removeItem(KEPT);
    const { answer, isShown, unsent = sent } = outcome ?? {};
    if (answer?.ok && form.id === "bulk") {
      for (const pick of inbox.querySelectorAll(".pick:checked")) pick.checked = false;
      countPicked();
    }
    if (answer?.ok && isShown && form.dataset.undo) addUndo(form, data.get("token"));
    if (!isShown && !answer?.ok) {
      line?.remove();
      button?.removeAttribute("aria-busy");
      if (sent) drafts.giveBack(unsent);
      if (!sent || sent.ticket === inbox.dataset.ticket) say(inbox.dataset.failed);
      else tellUnsent(sent);
    }
    // Who has gone elsewhere meanwhile stays there.
    if (document.activeElement !== document.body) return;
    if (sent) find(".composer:has(#kind-note:checked) #note textarea, .composer:not(:has(#kind-note:checked)) #reply textarea")?.focus();
    else find(".ticket[aria-current]")?.focus({ preventScroll: true });
    const wrong = find("[aria-invalid=true]"), pop = wrong?.closest("details.pop");
    if (pop) openPop(pop.id);
    wrong?.focus();
  };

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || !inbox.contains(form) || form.method === "dialog") return;
    if (form.method === "get" && form.dataset.stay === undefined) return;
    event.preventDefault();
    if (form.method === "get") visit(getAddress(form));
    else send(form, event.submitter);
  });

  const getAddress = (form) => {
    const address = new URL(form.getAttribute("action"), location.href);
    for (const [name, value] of new FormData(form)) if (value) address.searchParams.set(name, value);
    return address.href;
  };

  // Search while somebody types.
  inbox.addEventListener("input", (event) => {
    const form = event.target.closest("[data-typed]");
    if (!form) return;
    clearTimeout(searchTimer);
    searchTimer = setTimeout(() => visit(getAddress(form), { history: "replaceState" }), 300);
  });

  // Keys.
  const openPop = (id) => {
    const pop = document.getElementById(id);
    if (!pop) return;
    const menu = pop.closest("[popover]");
    if (menu?.previousElementSibling.offsetParent && !menu.matches(":popover-open")) menu.showPopover();
    pop.open = true;
    pop.querySelector(".sheet button, .sheet input:not([type=hidden]), .sheet select")?.focus();
  };
  const press = (selector) => {
    const button = find(selector);
    button?.form.requestSubmit(button);
  };
  const write = (kind) => {
    const radio = document.getElementById(`kind-${kind}`);
    if (!radio) return;
    radio.checked = true;
    find(`#${kind} textarea`).focus();
  };
  const step = (by) => {
    const links = [...inbox.querySelectorAll("#rows a.ticket")];
    const place = links.findIndex((link) => link.closest("li").id === (aimed || inbox.dataset.ticket));
    const link = links[place < 0 ? 0 : Math.min(links.length - 1, Math.max(0, place + by))];
    if (!link) return;
    link.focus({ preventScroll: true });
    openTicket(link);
  };
  const KEYS = {
    j: () => step(1), k: () => step(-1), r: () => write("reply"), n: () => write("note"), i: togglePane,
    "/": () => find(".find [type=search]").focus(), e: () => press("#resolve"), m: () => press("#take"),
    a: () => openPop("pop-assign"), l: () => openPop("pop-labels"), s: () => openPop("pop-snooze"), p: () => openPop("pop-priority"),
    "?": () => document.getElementById("keys").showModal(),
  };
  const SINGLE = "sapa-single-keys";
  const single = document.querySelector("[data-single-keys]");
  single.checked = localStorage.getItem(SINGLE) !== "off";
  single.addEventListener("change", () => localStorage.setItem(SINGLE, single.checked ? "on" : "off"));
  let wasGo = false;

  document.addEventListener("keydown", (event) => {
    if (composer.isBox(event.target)) return composer.useKey(event);
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") {
      const pop = find("details.pop[open]");
      if (pop) {
        pop.open = false;
        pop.querySelector("summary").focus();
      } else if (event.target.matches("input")) event.target.blur();
      else if (inbox.dataset.view === "customer") showPane("talk");
      return;
    }
    const isAfterGo = wasGo;
    wasGo = event.key === "g";
    if (event.ctrlKey || event.metaKey || event.altKey || isAfterGo || !single.checked) return;
    if (event.target.closest("input:not([type=checkbox], [type=radio]), select, textarea")) return;
    const digit = /^[1-9]$/.test(event.key) && `[data-digit="${event.key}"]`;
    if (!digit && !(event.key in KEYS)) return;
    event.preventDefault();
    if (opening && !"jk/?".includes(event.key)) wanted = { r: "reply", n: "note" }[event.key] ?? null;
    else if (digit) press(digit);
    else KEYS[event.key]();
  });
  document.addEventListener("click", (event) => {
    for (const pop of inbox.querySelectorAll("details.pop[open]")) if (!pop.contains(event.target)) pop.open = false;
  });

  // The keyboard of a phone covers a part of the page where the browser does not make the page smaller for it.
  const fit = () => {
    const covered = innerHeight - visualViewport.height * visualViewport.scale;
    document.documentElement.style.setProperty("--covered", `${Math.max(0, Math.round(covered))}px`);
  };
  visualViewport.addEventListener("resize", fit);

  connect();
}
