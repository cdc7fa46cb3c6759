/* The Sapa chat. One script, no dependency: it draws itself in a shadow root and keeps to its own server. */
(() => {
  "use strict";
  const script = document.currentScript;
  const key = script && script.dataset.key;
  if (!key || window.sapa?.identify) return;
  const base = new URL("./", script.src).href;
  const shelf = `sapa.widget.${key.slice(-24)}`;
  const early = window.sapa?.visitor;

  // Words.

  const lang = (script.dataset.lang || document.documentElement.lang || navigator.language || "en").toLowerCase();
  const locale = /^id\b/.test(lang) ? "id" : "en-GB";
  const words = locale === "id"
    ? {
        open: "Buka obrolan", close: "Tutup obrolan", title: "Obrolan", write: "Tulis pesan", send: "Kirim",
        unread: (n) => `${n} pesan belum dibaca`, you: "Anda", us: "Kami", sending: "Mengirim…", again: "Kirim ulang",
        unsent: "Pesan tidak terkirim.", fast: "Terlalu cepat. Coba lagi sebentar lagi.", earlier: "Pesan sebelumnya",
        away: "Sambungan terputus. Menyambung kembali…", hello: "Halo! Ada yang bisa kami bantu?",
        file: "Lampiran", newTab: "(buka di tab baru)", attach: "Lampirkan berkas",
        remove: (name) => `Hapus ${name}`, big: "Berkas lebih besar dari 10 MB.", many: "Paling banyak 5 berkas.",
        kind: "Hanya gambar dan dokumen yang dapat dikirim.", name: "Nama Anda", contact: "Email atau nomor telepon",
        begin: "Mulai mengobrol", replying: "Sedang menulis balasan…", closed: "Sedang tutup. Buka lagi",
        wrong: "Isi email seperti ayu@contoh.id, atau nomor telepon seperti 0812 3456 7890.",
      }
    : {
        open: "Open chat", close: "Close chat", title: "Chat", write: "Write a message", send: "Send",
        unread: (n) => `${n} unread ${n === 1 ? "message" : "messages"}`, you: "You", us: "Us", sending: "Sending…",
        again: "Send again", unsent: "The message was not sent.", fast: "Too fast. Try again in a moment.",
        earlier: "Earlier messages", away: "The connection was lost. Reconnecting…", hello: "Hello! How can we help?",
        file: "Attachment", newTab: "(opens in a new tab)", attach: "Attach a file",
        remove: (name) => `Remove ${name}`, big: "The file is larger than 10 MB.", many: "At most 5 files.",
        kind: "Only images and documents can be sent.", name: "Your name", contact: "Email or phone number",
        begin: "Start the chat", replying: "Writing a reply…", closed: "Closed now. Open again",
        wrong: "Enter an email like ayu@example.com, or a phone number like +62 812 3456 7890.",
      };

  // Looks. A constructed sheet needs no permission of the page's own policy.

  const day = `--accent: #0b6b5d; --on-accent: #fff; --back: #fff; --ink: #17211f; --faint: #55635f; --line: #d5dedb;
    --theirs: #eef3f1; --bad: #a3211a; --bar: #0b6b5d; --on-bar: #fff; --link: var(--by-day, #0b6b5d);`;
  const night = `--accent: #5fd3bd; --on-accent: #06231e; --back: #16201e; --ink: #e9f0ee; --faint: #a2b2ad;
    --line: #33423e; --theirs: #24322f; --bad: #ffa8a1; --bar: #24322f; --on-bar: #e9f0ee;
    --link: var(--by-night, #5fd3bd);`;
  const css = `
    :host { all: initial; color-scheme: light dark; ${day}
      font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
    @media (prefers-color-scheme: dark) { :host { ${night} } }
    :host([data-theme="light"]) { color-scheme: light; ${day} }
    :host([data-theme="dark"]) { color-scheme: dark; ${night} }
    * { box-sizing: border-box; }
    [hidden] { display: none !important; }
    button, textarea { font: inherit; color: inherit; }
    button { cursor: pointer; }
    :focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
    .aside { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
    .launch { position: fixed; inset-block-end: 20px; inset-inline-end: 20px; z-index: 2147483000; inline-size: 58px;
      block-size: 58px; border: 0; border-radius: 50%; background: var(--accent); color: var(--on-accent);
      display: grid; place-items: center; box-shadow: 0 4px 18px rgb(0 0 0 / .28); }
    .launch svg { inline-size: 28px; block-size: 28px; }
    .badge { position: absolute; inset-block-start: -4px; inset-inline-end: -4px; min-inline-size: 22px; padding: 0 6px;
      border-radius: 11px; background: #a3211a; color: #fff; font-size: 13px; line-height: 22px; font-weight: 600; }
    .panel { position: fixed; inset-block-end: 92px; inset-inline-end: 20px; z-index: 2147483000; inline-size: 372px;
      block-size: min(600px, calc(100dvh - 112px)); display: flex; flex-direction: column; overflow: hidden;
      background: var(--back); color: var(--ink); border: 1px solid var(--line); border-radius: 16px;
      box-shadow: 0 12px 40px rgb(0 0 0 / .25); }
    header { display: flex; align-items: center; gap: 8px; padding: 12px 8px 12px 16px; background: var(--bar);
      color: var(--on-bar); }
    h2 { all: unset; flex: 1; font-weight: 650; font-size: 16px; overflow: hidden; text-overflow: ellipsis;
      white-space: nowrap; }
    header button { border: 0; background: none; inline-size: 36px; block-size: 36px; border-radius: 8px; display: grid;
      place-items: center; }
    header button:focus-visible { outline-color: currentColor; }
    .launch:focus-visible { outline-color: var(--ink); }
    header svg { inline-size: 20px; block-size: 20px; }
    .log { flex: 1; overflow-y: auto; overscroll-behavior: contain; padding: 16px; display: flex; flex-direction: column;
      gap: 10px; margin: 0; list-style: none; }
    .hello { color: var(--faint); text-align: center; margin: 0; padding: 4px 16px 0; }
    .one { max-inline-size: 84%; align-self: flex-start; display: flex; flex-direction: column; gap: 6px; }
    .one.mine { align-self: flex-end; align-items: flex-end; }
    .bubble { background: var(--theirs); border-radius: 14px 14px 14px 4px; padding: 8px 12px; overflow-wrap: anywhere;
      white-space: pre-wrap; }
    .mine .bubble { background: var(--accent); color: var(--on-accent); border-radius: 14px 14px 4px 14px; }
    .mine.waiting .bubble { opacity: .65; }
    .bubble a { color: inherit; text-decoration: underline; }
    .head { display: block; font-weight: 650; }
    .foot { display: block; color: var(--faint); font-size: 13px; }
    .note { color: var(--faint); font-size: 12px; padding: 0 4px; }
    .note.bad { color: var(--bad); }
    .note button { border: 0; background: none; padding: 0 4px; text-decoration: underline; }
    .picture { display: block; max-inline-size: 100%; max-block-size: 240px; border-radius: 10px; margin-block: 4px; }
    .choices { display: flex; flex-wrap: wrap; gap: 6px; }
    .choices button, .choices a, .rows button, .earlier { border: 1px solid var(--link); background: var(--back);
      color: var(--link); border-radius: 16px; padding: 5px 12px; text-decoration: none; text-align: start; }
    .choices button:hover, .choices a:hover, .rows button:hover { background: var(--theirs); }
    .choices button:disabled, .rows button:disabled { border-color: var(--line); color: var(--faint); cursor: default; }
    .choices button[aria-pressed], .rows button[aria-pressed] { border-color: var(--link); color: var(--link); }
    .rows { display: flex; flex-direction: column; gap: 6px; }
    .rows h3 { all: unset; font-weight: 650; font-size: 13px; color: var(--faint); }
    .rows button { border-radius: 10px; }
    .rows small { display: block; color: var(--faint); font-size: 13px; }
    .earlier { align-self: center; font-size: 13px; }
    .state { margin: 0; padding: 4px 16px; color: var(--bad); font-size: 13px; }
    form { display: flex; gap: 8px; align-items: flex-end; padding: 10px; border-block-start: 1px solid var(--line); }
    textarea { flex: 1; resize: none; border: 1px solid var(--line); border-radius: 12px; padding: 8px 12px;
      background: var(--back); max-block-size: 120px; min-block-size: 40px; }
    textarea::placeholder { color: var(--faint); opacity: 1; }
    .chosen { display: flex; flex-wrap: wrap; gap: 6px; margin: 0; padding: 8px 10px 0; list-style: none; }
    .chosen li { display: flex; align-items: center; gap: 4px; max-inline-size: 100%; border: 1px solid var(--line);
      border-radius: 10px; padding: 2px 4px 2px 10px; font-size: 13px; }
    .chosen span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    .chosen button { border: 0; background: none; inline-size: 24px; block-size: 24px; padding: 0; }
    .panel.dropping .log { outline: 2px dashed var(--link); outline-offset: -8px; }
    .file { display: block; }
    form button { border: 0; border-radius: 12px; background: var(--accent); color: var(--on-accent); font-weight: 600;
      padding: 0 14px; block-size: 40px; }
    form .attach { background: none; color: var(--faint); padding: 0; inline-size: 36px; }
    form .attach svg { inline-size: 22px; block-size: 22px; }
    .hours { margin: 0; padding: 0 16px 10px; background: var(--bar); color: var(--on-bar); font-size: 13px; }
    .by { color: var(--faint); font-size: 12px; font-weight: 600; }
    .ask { flex: 1; flex-direction: column; align-items: stretch; gap: 12px; padding: 16px; border: 0; }
    .ask label { display: grid; gap: 4px; font-weight: 600; }
    .ask input { font: inherit; font-weight: 400; color: inherit; border: 1px solid var(--line); border-radius: 12px; padding: 8px 12px;
      background: var(--back); }
    .ask .wrong { margin: -8px 0 0; color: var(--bad); font-size: 13px; }
    .ask [aria-invalid] { border-color: var(--bad); }
    @media (max-width: 480px) {
      .panel { inset: 0; inline-size: 100%; block-size: 100dvh; border: 0; border-radius: 0; }
      .panel:not([hidden]) ~ .launch { display: none; } }
    @media (prefers-reduced-motion: no-preference) {
      .panel:not([hidden]) { animation: rise .16s ease-out; }
      @keyframes rise { from { opacity: 0; transform: translateY(8px); } } }`;

  // How the company wants it: loaded with the page, so that the button has its colour before anybody opens the chat.

  let look = {};

  function luminance(color) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16) / 255)
      .map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }

  async function dress() {
    look = await call("GET", "look").catch(() => ({}));
    if (look.title) heading.textContent = look.title;
    if (look.greeting) hello.textContent = look.greeting;
    showHours();
    const { color } = look;
    if (!/^#[0-9a-f]{6}$/i.test(color)) return;
    const light = luminance(color);
    const ink = light > 0.179 ? "#000" : "#fff";
    // As text the colour has 4.5:1 on --back, or is not used.
    for (const [name, value] of Object.entries({
      accent: color, bar: color, "on-accent": ink, "on-bar": ink,
      "by-day": light < 0.183 ? color : "var(--ink)", "by-night": light > 0.234 ? color : "var(--ink)",
    })) host.style.setProperty(`--${name}`, value);
  }

  // The hours as the company writes them and, while nobody is there, when somebody is by the visitor's own clock.
  function showHours() {
    const opens = new Date(look.opensAt || 0);
    const form = { weekday: "short", day: "numeric", month: "short", hour: "numeric", minute: "2-digit" };
    const closed = opens > Date.now() && `${words.closed} ${new Intl.DateTimeFormat(locale, form).format(opens)}.`;
    hours.textContent = [look.hours, closed].filter(Boolean).join(" · ");
    hours.hidden = !hours.textContent;
  }

  // The form before the first message.
  let hasStated = false;

  function ask() {
    const isDue = look.form && !hasStated && !shown.size && !visitor;
    for (const part of [log, form]) part.hidden = Boolean(isDue);
    asked.hidden = !isDue;
    if (!isDue || asked.childElementCount) return;
    const field = (name) => make("label", {}, words[name],
      make("input", { name, maxlength: "100", pattern: ".*\\S.*", required: true }));
    asked.append(hello.cloneNode(true), field("name"));
    if (look.form === "contact") asked.append(field("contact"), wrong);
    asked.append(make("button", {}, words.begin));
  }

  async function introduce(event) {
    event.preventDefault();
    try {
      await joined();
      await call("POST", "statement", Object.fromEntries(new FormData(asked)));
      hasStated = true;
      report("");
      ask();
      box.focus();
    } catch (error) {
      const { contact } = asked.elements;
      if (error.status !== 400 || !contact) return report(error.status === 429 ? words.fast : words.away);
      wrong.hidden = false;
      contact.setAttribute("aria-invalid", "true");
      contact.setAttribute("aria-describedby", "wrong");
      contact.focus();
    }
  }

  // Drawing.

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value !== undefined && value !== null) node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }

  function icon(path) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    for (const [name, value] of Object.entries({ viewBox: "0 0 24 24", fill: "none", "aria-hidden": "true" })) {
      svg.setAttribute(name, value);
    }
    const pen = { d: path, stroke: "currentColor", "stroke-width": 2, "stroke-linecap": "round", "stroke-linejoin": "round" };
    for (const [name, value] of Object.entries(pen)) line.setAttribute(name, value);
    svg.append(line);
    return svg;
  }

  const host = make("div", { "data-sapa-widget": true, "data-theme": script.dataset.theme, lang: locale });
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];

  const heading = make("h2", { id: "title" }, words.title);
  const log = make("ol", { class: "log", role: "log", "aria-live": "polite", "aria-labelledby": "title", tabindex: "0" });
  const hello = make("p", { class: "hello" }, words.hello);
  const state = make("p", { class: "state", role: "status", hidden: true });
  const replying = make("p", { class: "hello", role: "status", hidden: true });
  const box = make("textarea", { id: "text", rows: "1", maxlength: "4096", placeholder: words.write, autocomplete: "off" });
  const picker = make("input", { type: "file", multiple: true, hidden: true, tabindex: "-1", "aria-hidden": "true",
    accept: "image/png,image/jpeg,image/webp,image/gif,.pdf,.txt,.csv,.rtf,.doc,.docx,.xls,.xlsx,.ppt,.pptx,.odt,.ods,.odp" });
  const attach = make("button", { class: "attach", type: "button", "aria-label": words.attach, title: words.attach,
    onclick: () => picker.click() }, icon("M20 11l-8.5 8.5a5 5 0 01-7-7L13 4a3.3 3.3 0 015 5l-8.5 8.5a1.7 1.7 0 01-2.5-2.5L15 7"));
  const chosen = make("ul", { class: "chosen", hidden: true });
  // Hidden until it is known what to ask first.
  const form = make("form", { hidden: true }, picker, attach,
    make("label", { class: "aside", for: "text" }, words.write), box, make("button", { type: "submit" }, words.send));
  const hours = make("p", { class: "hours", hidden: true });
  const asked = make("form", { class: "ask", hidden: true });
  const wrong = make("p", { class: "wrong", id: "wrong", role: "alert", hidden: true }, words.wrong);
  const shut = make("button", { type: "button", "aria-label": words.close, onclick: () => close() }, icon("M6 6l12 12M18 6L6 18"));
  const panel = make("section", { class: "panel", id: "panel", role: "dialog", "aria-labelledby": "title", hidden: true },
    make("header", {}, heading, shut), hours, asked, log, replying, state, chosen, form);
  const badge = make("span", { class: "badge", hidden: true, "aria-hidden": "true" });
  const launch = make("button", { class: "launch", type: "button", "aria-label": words.open, "aria-expanded": "false",
    "aria-controls": "panel", onclick: () => (panel.hidden ? open() : close()) },
    icon("M4 5h16v11H9l-5 4z"), badge);
  root.append(panel, launch);

  function isWeb(url) {
    try {
      return /^https?:$/.test(new URL(url).protocol);
    } catch {
      return false;
    }
  }

  function link(url, text, attributes = {}) {
    return make("a", { href: url, target: "_blank", rel: "noopener noreferrer nofollow", ...attributes }, text,
      make("span", { class: "aside" }, ` ${words.newTab}`));
  }

  function linked(text) {
    return text.split(/(https?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]])/).map((part, place) =>
      place % 2 && isWeb(part) ? link(part, part) : part);
  }

  function drawMedia(media) {
    if (!isWeb(media.url)) return null;
    const name = media.filename || `${words.file}: ${media.type}`;
    if (media.type !== "image") return link(media.url, name);
    const picture = make("img", { class: "picture", src: media.url, alt: media.filename || words.file, loading: "lazy",
      referrerpolicy: "no-referrer", onerror: () => picture.replaceWith(name), onload: () => stayAtEnd() });
    return link(media.url, picture);
  }

  function drawFile(file) {
    const name = file.filename || words.file;
    const text = make("span", { class: "file" }, `📎 ${name}`);
    if (!file.url) return text;
    if (file.type !== "image") return link(file.url, text);
    const picture = make("img", { class: "picture", src: file.thumbnailUrl || file.url, alt: name, loading: "lazy",
      referrerpolicy: "no-referrer", onload: () => stayAtEnd(), onerror: () => {
        // There is no thumbnail yet: the image itself, and its name if that cannot be shown, either.
        if (picture.getAttribute("src") !== file.url) picture.setAttribute("src", file.url);
        else picture.replaceWith(text);
      } });
    return /^blob:/.test(file.url) ? picture : link(file.url, picture);
  }

  function drawBubble(content) {
    const parts = [
      content.header && make("span", { class: "head" }, content.header),
      content.media && drawMedia(content.media),
      ...(content.files || []).map(drawFile),
      ...(content.text ? linked(content.text) : []),
      content.footer && make("span", { class: "foot" }, content.footer),
    ].filter(Boolean);
    return parts.length ? make("div", { class: "bubble" }, ...parts) : null;
  }

  function drawChoices(line) {
    const { buttons = [], sections = [], openLabel, linkLabel, linkUrl } = line.content;
    if (linkUrl && isWeb(linkUrl)) return make("div", { class: "choices" }, link(linkUrl, linkLabel || linkUrl));
    const pick = (one, group) => make("button", { type: "button", onclick: (event) => {
      group().querySelectorAll("button").forEach((button) => (button.disabled = true));
      event.currentTarget.setAttribute("aria-pressed", "true");
      say(one.title, { number: line.number, id: one.id });
      box.focus();
    } }, one.title, one.description ? make("small", {}, one.description) : null);
    if (buttons.length) {
      const group = make("div", { class: "choices", role: "group" });
      group.append(...buttons.map((one) => pick(one, () => group)));
      return group;
    }
    if (!sections.length) return null;
    const rows = make("div", { class: "rows", hidden: true });
    for (const section of sections) {
      rows.append(make("h3", {}, section.title), ...section.rows.map((one) => pick(one, () => rows)));
    }
    const toggle = make("button", { type: "button", "aria-expanded": "false", onclick: () => {
      rows.hidden = !rows.hidden;
      toggle.setAttribute("aria-expanded", String(!rows.hidden));
      stayAtEnd();
    } }, openLabel || "…");
    return make("div", { class: "rows" }, make("div", { class: "choices" }, toggle), rows);
  }

  function clock(at) {
    const when = new Date(at);
    const isToday = when.toDateString() === new Date().toDateString();
    const form = isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
    return make("time", { datetime: at }, new Intl.DateTimeFormat(locale, form).format(when));
  }

  function draw(line) {
    const isMine = line.direction === "in";
    return make("li", { class: isMine ? "one mine" : "one" },
      isMine || !look.agent ? make("span", { class: "aside" }, `${isMine ? words.you : words.us}: `)
        : make("span", { class: "by" }, look.agent),
      drawBubble(line.content), isMine ? null : drawChoices(line), make("span", { class: "note" }, clock(line.at)));
  }

  // The conversation.

  let last = 0; // the newest line that came in order
  let first = Infinity;
  let unread = new Set();
  const shown = new Map(); // reference → { node, number }
  const numbers = new WeakMap(); // node → number, of lines that wait to be seen

  const isAtEnd = () => log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  let wasAtEnd = true;
  log.addEventListener("scroll", () => (wasAtEnd = isAtEnd()));
  function stayAtEnd() {
    if (wasAtEnd) log.scrollTop = log.scrollHeight;
  }

  function place(line, node) {
    const later = [...log.children].find((other) => Number(other.dataset.number || Infinity) > line.number);
    log.insertBefore(node, later || null);
  }

  function show(line) {
    first = Math.min(first, line.number);
    const before = shown.get(line.reference);
    if (before && before.number) return;
    const node = draw(line);
    node.dataset.number = line.number;
    shown.set(line.reference, { node, number: line.number });
    if (before) before.node.remove();
    hello.remove();
    place(line, node);
    stayAtEnd();
    if (line.direction === "out" && !line.isRead) {
      unread.add(line.number);
      numbers.set(node, line.number);
      watcher.observe(node);
      acknowledge("delivered", line.number);
    }
    count();
  }

  function count() {
    const many = unread.size;
    badge.hidden = !many || !panel.hidden;
    badge.textContent = many > 99 ? "99+" : String(many);
    const verb = panel.hidden ? words.open : words.close;
    launch.setAttribute("aria-label", many && panel.hidden ? `${verb}, ${words.unread(many)}` : verb);
  }

  function forget() {
    last = 0;
    first = Infinity;
    unread = new Set();
    shown.clear();
    watcher.disconnect();
    log.replaceChildren(hello);
    count();
  }

  function offerEarlier() {
    log.querySelector(".earlier")?.remove();
    if (first <= 1 || first === Infinity) return;
    const button = make("button", { class: "earlier", type: "button", onclick: async () => {
      const height = log.scrollHeight;
      wasAtEnd = false;
      (await call("GET", `messages?before=${first}`)).forEach(show);
      offerEarlier();
      log.scrollTop = log.scrollHeight - height;
    } }, words.earlier);
    log.prepend(make("li", { class: "earlier-line", "data-number": "0" }, button));
    log.firstChild.style.alignSelf = "center";
  }

  // Acknowledgements: delivered when it is drawn, read when it was seen.

  const waiting = { delivered: new Set(), read: new Set() };
  let acknowledging = null;
  const canSee = () => !panel.hidden && document.visibilityState === "visible";

  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting && canSee()) see(target);
  }, { root: log, threshold: 0.5 });

  function see(node) {
    const number = numbers.get(node);
    if (!unread.delete(number)) return;
    watcher.unobserve(node);
    acknowledge("read", number);
    count();
  }

  function lookAgain() {
    for (const { node, number } of shown.values()) {
      if (unread.has(number)) {
        watcher.unobserve(node);
        watcher.observe(node);
      }
    }
  }

  function acknowledge(what, number) {
    waiting[what].add(number);
    acknowledging ||= setTimeout(sendAcknowledgements, 150);
  }

  async function sendAcknowledgements(patience = 1000) {
    const take = (what) => [...waiting[what]].slice(0, 100);
    const given = { delivered: take("delivered"), read: take("read") };
    try {
      await call("POST", "acks", given, { keepalive: true });
      for (const what of ["delivered", "read"]) given[what].forEach((number) => waiting[what].delete(number));
      patience = 150;
    } catch (error) {
      if (error.status >= 400 && error.status < 500 && error.status !== 429) waiting.delivered.clear(), waiting.read.clear();
      else patience = Math.min(patience * 2, 60000);
    }
    const isLeft = waiting.delivered.size || waiting.read.size;
    acknowledging = isLeft ? setTimeout(() => sendAcknowledgements(patience), patience) : null;
  }

  // The server.

  let token = recall();
  let visitor = null;
  let joining = null;

  function recall() {
    try {
      return localStorage.getItem(shelf);
    } catch {
      return null;
    }
  }

  function keep(value) {
    token = value;
    try {
      if (value) localStorage.setItem(shelf, value);
      else localStorage.removeItem(shelf);
    } catch {
      // this page's memory has to do
    }
  }

  function headers(more = {}) {
    return { "x-widget-key": key, ...(token ? { authorization: `Bearer ${token}` } : {}), ...more };
  }

  async function call(method, path, body, options = {}) {
    const answer = await fetch(base + path, {
      method, credentials: "omit", cache: "no-store", ...options,
      headers: headers(body === undefined ? {} : { "content-type": "application/json" }),
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return unpack(answer);
  }

  async function unpack(answer) {
    const said = answer.status === 204 ? {} : await answer.json();
    if (!answer.ok) throw Object.assign(new Error(said.error?.message || answer.statusText), { status: answer.status, code: said.error?.code });
    return said.data;
  }

  // Agents see that somebody writes. It is said again while the typing goes on, and nobody waits for it.
  let toldTyping = 0, telling = null;

  function tellTyping() {
    if (!token || !box.value.trim() || Date.now() - toldTyping < 5000) return;
    toldTyping = Date.now();
    telling = call("POST", "typing").catch(() => {});
  }

  // Begins a session or goes on with one; shows how the conversation stands.
  async function join() {
    const session = await call("POST", "sessions", visitor ? { visitor } : {});
    if (session.token) keep(session.token);
    if (session.visitorId !== join.visitorId) forget();
    join.visitorId = session.visitorId;
    // The messages carry the agent's name.
    await dressed;
    hasStated = session.hasStated;
    session.messages.forEach(show);
    last = session.lastNumber;
    offerEarlier();
    wasAtEnd = true;
    stayAtEnd();
  }

  function joined() {
    joining ||= join().then(listen, (error) => {
      joining = null;
      if (error.status === 404 || error.status === 403) host.remove();
      throw error;
    });
    return joining;
  }

  async function rejoin() {
    stopListening();
    joining = null;
    token = recall() || token;
    await joined();
  }

  // Replies: server-sent events, read with fetch so that the token stays out of addresses and logs.

  let stream = null;
  let pause = 1000;

  function stopListening() {
    stream?.abort();
    stream = null;
  }

  function listen() {
    if (stream || document.visibilityState === "hidden") return;
    const own = (stream = new AbortController());
    follow(own).catch((error) => error).then((error) => {
      if (stream !== own) return;
      stream = null;
      const wait = pause * (0.75 + Math.random() / 2);
      pause = Math.min(pause * 2, 30000);
      report(words.away);
      setTimeout(() => (error?.status === 401 ? rejoin().catch(() => {}) : joining && listen()), wait);
    });
  }

  async function follow(own) {
    const answer = await fetch(`${base}events`, {
      credentials: "omit", cache: "no-store", signal: own.signal, headers: headers({ "last-event-id": String(last) }),
    });
    if (!answer.ok) throw Object.assign(new Error(answer.statusText), { status: answer.status });
    pause = 1000;
    report("");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const watch = setTimeout(() => own.abort(), 45000); // a heartbeat comes every 15 seconds
      const { value, done } = await reader.read().finally(() => clearTimeout(watch));
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      events.forEach(hear);
    }
  }

  function hear(event) {
    if (event.startsWith("event: typing")) return showReplying(true);
    const data = event.split("\n").find((text) => text.startsWith("data: "));
    if (!data) return;
    const line = JSON.parse(data.slice(6));
    last = Math.max(last, line.number);
    show(line);
    if (line.direction === "out") showReplying(false);
  }

  // Until the reply comes, or for as long as other messengers show it.
  let writing = null;

  function showReplying(isWriting) {
    clearTimeout(writing);
    if (isWriting) writing = setTimeout(showReplying, 25000);
    replying.textContent = words.replying;
    replying.hidden = !isWriting;
    stayAtEnd();
  }

  function report(text) {
    state.textContent = text;
    state.hidden = !text;
  }

  // What the visitor does.

  function newId() {
    return `p_${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }

  function say(text, choice, files = []) {
    const reference = newId();
    const shownFiles = files.map(({ file }) => file.type.startsWith("image/")
      ? { type: "image", filename: file.name, url: URL.createObjectURL(file) } : { type: "document", filename: file.name });
    const node = draw({ direction: "in", content: { text, files: shownFiles }, at: new Date().toISOString() });
    node.classList.add("waiting");
    shown.set(reference, { node });
    hello.remove();
    log.append(node);
    wasAtEnd = true;
    stayAtEnd();
    deliver(reference, node, choice ? { id: reference, choice } : { id: reference, text }, files);
  }

  // An upload is not repeated with the message: each file keeps the id that it got.
  async function upload(one) {
    if (one.id) return one.id;
    const answer = await fetch(`${base}files?filename=${encodeURIComponent(one.file.name)}`, {
      method: "POST", credentials: "omit", cache: "no-store", body: one.file,
      headers: headers({ "content-type": one.file.type || "application/octet-stream" }),
    });
    return (one.id = (await unpack(answer)).id);
  }

  async function deliver(reference, node, body, files = [], tries = 3) {
    const note = node.querySelector(".note");
    note.classList.remove("bad");
    note.replaceChildren(words.sending);
    try {
      await joined();
      for (const one of files) await upload(one);
      await Promise.race([telling, new Promise((done) => setTimeout(done, 1000))]); // what comes after the message would stay
      const line = await call("POST", "messages", files.length ? { ...body, files: files.map((one) => one.id) } : body);
      show(line);
      report("");
    } catch (error) {
      if (error.status === 401 && tries) return rejoin().then(() => deliver(reference, node, body, files, 0), () => fail(reference, node, body, files, error));
      if (!error.status && tries > 1) {
        await new Promise((done) => setTimeout(done, 1500));
        return deliver(reference, node, body, files, tries - 1);
      }
      fail(reference, node, body, files, error);
    }
  }

  function fail(reference, node, body, files, error) {
    if (shown.get(reference)?.number) return;
    const note = node.querySelector(".note");
    note.classList.add("bad");
    const refused = { 413: words.big, 415: words.kind }[error.status];
    if (refused) return note.replaceChildren(refused);
    const again = make("button", { type: "button", onclick: () => deliver(reference, node, body, files) }, words.again);
    note.replaceChildren(error.status === 429 ? words.fast : words.unsent, " ", again);
  }

  // Files to send with the next message: picked, pasted or dropped.

  let pending = [];

  function addFiles(files) {
    report("");
    for (const file of files) {
      if (file.size > 10 * 1024 * 1024) report(words.big);
      else if (pending.length >= 5) report(words.many);
      else pending.push({ file, id: null });
    }
    drawPending();
    box.focus();
  }

  function drawPending() {
    chosen.hidden = !pending.length;
    chosen.replaceChildren(...pending.map((one) => make("li", {}, make("span", {}, one.file.name),
      make("button", { type: "button", "aria-label": words.remove(one.file.name), onclick: () => {
        pending = pending.filter((other) => other !== one);
        drawPending();
        box.focus();
      } }, "✕"))));
  }

  picker.addEventListener("change", () => {
    addFiles([...picker.files]);
    picker.value = "";
  });
  box.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    addFiles([...event.clipboardData.files]);
  });
  panel.addEventListener("dragover", (event) => {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    panel.classList.add("dropping");
  });
  panel.addEventListener("dragleave", (event) => {
    if (!panel.contains(event.relatedTarget)) panel.classList.remove("dropping");
  });
  panel.addEventListener("drop", (event) => {
    panel.classList.remove("dropping");
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    addFiles([...event.dataTransfer.files]);
  });

  function grow() {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, 120)}px`;
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text && !pending.length) return;
    const files = pending;
    pending = [];
    drawPending();
    box.value = "";
    toldTyping = 0;
    grow();
    say(text, null, files);
  });
  asked.addEventListener("submit", introduce);
  box.addEventListener("input", grow);
  box.addEventListener("input", tellTyping);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    event.stopPropagation();
  });

  function open() {
    panel.hidden = false;
    showHours();
    launch.setAttribute("aria-expanded", "true");
    count();
    if (!shown.size) log.replaceChildren(hello);
    wasAtEnd = true;
    stayAtEnd();
    dressed.then(() => {
      ask();
      (asked.hidden ? box : asked.querySelector("input")).focus();
    });
    lookAgain();
    joined().then(ask, () => report(words.away));
  }

  function close() {
    panel.hidden = true;
    launch.setAttribute("aria-expanded", "false");
    count();
    launch.focus();
  }

  // What the site can do.

  async function identify(who) {
    const { id, name, email, hash, emailHash } = who || {};
    if (!id || !hash) throw new TypeError("sapa.identify needs an id and its hash");
    visitor = { id: String(id), hash, name: name || null, email: email || null, emailHash: emailHash || null };
    try {
      await rejoin();
    } catch (error) {
      if (error.code === "INVALID_HASH") visitor = null;
      throw error;
    }
  }

  async function reset() {
    visitor = null;
    const leaving = token && call("DELETE", "sessions").catch(() => {});
    stopListening();
    joining = null;
    keep(null);
    forget();
    join.visitorId = null;
    hasStated = false;
    ask();
    await leaving;
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "hidden") return stopListening();
    lookAgain();
    if (joining) joining.then(listen, () => {});
  });
  window.addEventListener("online", () => {
    pause = 1000;
    if (joining) joining.then(listen, () => {});
  });
  window.addEventListener("storage", (event) => {
    if (event.key === shelf && event.newValue && event.newValue !== token) rejoin().catch(() => {});
  });

  function begin() {
    document.body.append(host);
    if (early) identify(early).catch((error) => console.warn(`sapa: ${error.message}`));
    else if (token) joined().catch(() => {});
    window.dispatchEvent(new Event("sapa:ready"));
  }

  // Nobody waits for the looks longer than this.
  const dressed = Promise.race([dress(), new Promise((done) => setTimeout(done, 3000))]);

  window.sapa = { identify, reset, open, close };
  if (document.body) begin();
  else document.addEventListener("DOMContentLoaded", begin);
})();
