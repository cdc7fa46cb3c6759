// Runs beside the console's pages: shows a page of its own when the server cannot be reached, keeps the static files of its
// version, and shows notifications. Nothing of a company is kept. Forms, streams and what scripts fetch do not pass through it.
"use strict";

const asked = new URL(location).searchParams;
const version = asked.get("v");
const CACHE = `sapa ${location.search}`;
const OFFLINE = `/console/offline/${asked.get("language")}`;
const STATIC = "/console/static/";

const install = async () => {
  const cache = await caches.open(CACHE);
  await cache.addAll([OFFLINE, ...["console.css", "console.js"].map((name) => `${STATIC}${name}?v=${version}`)]);
  await skipWaiting();
};
const clear = async (isOld) => {
  for (const name of await caches.keys()) if (isOld(name)) await caches.delete(name);
};
const activate = async () => {
  await clear((name) => name !== CACHE);
  await registration.navigationPreload?.enable(); // a page does not wait for this worker to start
  await clients.claim();
};
addEventListener("install", (event) => event.waitUntil(install()));
addEventListener("activate", (event) => event.waitUntil(activate()));

const openPage = async ({ request, preloadResponse }) => {
  try {
    return (await preloadResponse) ?? (await fetch(request));
  } catch {
    return (await caches.match(OFFLINE)) ?? Response.error();
  }
};
const getFile = async (request) => {
  const kept = await caches.match(request);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await (await caches.open(CACHE)).put(request, answer.clone());
  return answer;
};
addEventListener("fetch", (event) => {
  const { request } = event, { pathname, searchParams } = new URL(request.url);
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(openPage(event));
  else if (pathname.startsWith(STATIC) && searchParams.get("v") === version) event.respondWith(getFile(request));
});

// A tab with the inbox keeps what was typed there; others are left alone.
const openPlace = async (place) => {
  const tabs = await clients.matchAll({ type: "window" });
  const inbox = tabs.find(({ url }) => /^\/console\/(live|test)\/inbox/.test(new URL(url).pathname));
  if (!inbox) return clients.openWindow(place);
  await inbox.focus();
  return inbox.navigate(place);
};
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openPlace(event.notification.data));
});

// Signing out ends it.
const end = async () => {
  for (const shown of await registration.getNotifications()) shown.close();
  await clear(() => true);
  await registration.unregister();
};
addEventListener("message", (event) => {
  if (event.data === "end") event.waitUntil(end());
});
