// What the pages do better with a script; without one they do the same, more plainly.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "✓";
  });
}

document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.sure;
  if (question && !confirm(question)) event.preventDefault();
});

const countDown = () => {
  for (const time of document.querySelectorAll("[data-until]")) {
    const seconds = Math.max(0, (new Date(time.dataset.until) - Date.now()) / 1000);
    const parts = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
    time.textContent = parts.join(":");
  }
};
if (document.querySelector("[data-until]")) {
  countDown();
  setInterval(countDown, 1000);
}

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
