// What waits: in the tab's title and on the app's icon, with a sound and on the desktop if the person wants that.
"use strict";

const alerts = document.body.dataset.alerts;
const ALERTS = `sapa-alerts ${alerts}`;
const plainTitle = document.title;
const alertWords = JSON.parse(document.body.dataset.alertWords ?? "{}");
let audio;

const beep = () => {
  try {
    audio ??= new AudioContext();
    if (audio.state === "suspended") return audio.resume(); // before the page was touched; a tone of now would come late
    const tone = audio.createOscillator(), volume = audio.createGain();
    tone.frequency.value = 880;
    volume.gain.setValueAtTime(0.08, audio.currentTime);
    volume.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.4);
    tone.connect(volume).connect(audio.destination);
    tone.start();
    tone.stop(audio.currentTime + 0.4);
  } catch {
    // A browser that plays nothing before the page was touched says so.
  }
};

// Over plain HTTP there is no worker.
navigator.serviceWorker?.register(document.body.dataset.worker, { scope: "/console" }).catch(() => {});

// Browsers of phones show notifications of a worker only, which opens their place. Others show them without one, too.
const notify = async (kinds, place) => {
  const title = document.querySelector(".brand span").firstChild.textContent;
  const options = { body: kinds.map((kind) => alertWords[kind]).join("\n"), tag: "sapa", renotify: true };
  try {
    const worker = await navigator.serviceWorker?.getRegistration();
    if (worker?.active) return await worker.showNotification(title, { ...options, data: place, icon: "/console/static/icon-192.png" });
    const shown = new Notification(title, options);
    shown.addEventListener("click", () => {
      shown.close();
      focus();
      location.assign(place);
    });
  } catch {
    // This browser does not.
  }
};

const lookForAlerts = async () => {
  const answer = await fetch(alerts).catch(() => null);
  if (!answer?.ok || answer.redirected) return;
  const { counts, newest, places, sound, desktop } = await answer.json();
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  // The inbox counts its own conversations there.
  if (!document.querySelector(".inbox")) document.title = all ? `(${all}) ${plainTitle}` : plainTitle;
  navigator.setAppBadge?.(all).catch(() => {});
  // The tabs of a browser share what was announced: one of them announces.
  const before = JSON.parse(localStorage.getItem(ALERTS) ?? "{}");
  localStorage.setItem(ALERTS, JSON.stringify({ ...counts, newest }));
  // One may have been answered when another came.
  const isNew = (kind) => counts[kind] > before[kind] || newest[kind] > before.newest?.[kind];
  const grown = Object.keys(counts).filter((kind) => kind in before && isNew(kind));
  if (!grown.length) return;
  document.body.dataset.alerted = grown.join(" ");
  if (sound) beep();
  if (desktop && window.Notification?.permission === "granted" && document.hidden) notify(grown, places[grown[0]]);
};

if (alerts) {
  lookForAlerts();
  setInterval(lookForAlerts, Number(document.body.dataset.alertSeconds) * 1000);
}
for (const box of document.querySelectorAll("[data-asks-desktop]"))
  box.addEventListener("change", () => box.checked && window.Notification?.requestPermission());
