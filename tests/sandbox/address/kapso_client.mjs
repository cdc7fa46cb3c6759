// Kapso's client for the WhatsApp Cloud API uses the simulator: it subscribes, sends, and reads what comes back.
// usage: node kapso_client.mjs '{"base", "version", "token", "secret", "number", "account", "api", "key", "customer", "kinds", "changes", "picture"}'
import { createServer } from "node:http";
import { WhatsAppClient } from "@kapso/whatsapp-cloud-api";
import { normalizeWebhook, verifySignature } from "@kapso/whatsapp-cloud-api/server";

const given = JSON.parse(process.argv[2]);
const client = new WhatsAppClient({
  accessToken: given.token,
  baseUrl: given.base,
  graphVersion: given.version,
});
const received = { posts: 0, unsigned: 0, unread: 0, fields: [], messages: [], statuses: [], contacts: [] };

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  if (request.method === "GET") {
    response.end(url.searchParams.get("hub.challenge"));
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const rawBody = Buffer.concat(chunks);
  const signatureHeader = request.headers["x-hub-signature-256"];
  received.posts += 1;
  if (!verifySignature({ appSecret: given.secret, rawBody, signatureHeader })) received.unsigned += 1;
  const read = normalizeWebhook(JSON.parse(rawBody.toString()));
  const isRead = read.messages.length || read.statuses.length || Object.keys(read.raw).length;
  if (!isRead) received.unread += 1;
  received.fields.push(...Object.keys(read.raw));
  received.messages.push(...read.messages);
  received.statuses.push(...read.statuses);
  received.contacts.push(...read.contacts);
  response.end("ok");
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));

async function until(isThere) {
  const deadline = Date.now() + 60_000;
  while (!isThere()) {
    if (Date.now() > deadline) throw new Error(`nothing came: ${JSON.stringify(received)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

async function write(text, more = {}) {
  const answer = await fetch(`${given.api}/sandbox/inbound`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": given.key },
    body: JSON.stringify({ source: "MSGAPP_CLOUD", from: `+${given.customer}`, text, ...more }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

const callback = `http://127.0.0.1:${server.address().port}/`;
const configuration = { webhook_configuration: { override_callback_uri: callback, verify_token: "kapso" } };
await client.request("POST", given.number, { body: configuration, responseType: "json" });

await write("Halo", { name: "Budi" });
await until(() => received.messages.length === 1);
const to = { phoneNumberId: given.number, to: given.customer };
const reply = { ...to, contextMessageId: received.messages[0].id };
const sends = [
  client.messages.sendText({ ...reply, body: "Halo juga", bizOpaqueCallbackData: "order-1" }),
  client.messages.sendText({ phoneNumberId: given.number, recipient: `ID.${given.customer}`, body: "By user id" }),
  client.messages.sendImage({ ...to, image: { link: "https://shop.example/kopi.png", caption: "Kopi" } }),
  client.messages.sendDocument({ ...to, document: { link: "https://shop.example/nota.pdf", filename: "nota.pdf" } }),
  client.messages.sendLocation({ ...to, location: { latitude: -6.2, longitude: 106.8, name: "Toko", address: "Jl." } }),
  client.messages.sendInteractiveButtons({
    ...to,
    bodyText: "Cocok?",
    buttons: [{ id: "yes", title: "Ya" }, { id: "no", title: "Tidak" }],
  }),
  client.messages.sendInteractiveList({
    ...to,
    bodyText: "Pilih",
    buttonText: "Buka",
    sections: [{ title: "Kopi", rows: [{ id: "gayo", title: "Gayo", description: "Aceh" }] }],
  }),
  client.messages.sendInteractiveCtaUrl({
    ...to,
    bodyText: "Buka",
    parameters: { displayText: "Toko", url: "https://shop.example" },
  }),
  client.messages.sendInteractiveLocationRequest({ ...to, bodyText: "Di mana?", parameters: { requestMessage: "?" } }),
];
const file = new Blob([Buffer.from(given.picture, "base64")], { type: "image/png" });
const uploaded = await client.media.upload({ phoneNumberId: given.number, type: "image/png", file, fileName: "kopi.png" });
sends.push(client.messages.sendImage({ ...to, image: { id: uploaded.id } }));
const sent = [];
for (const send of sends) sent.push((await send).messages[0].id);

const created = await client.templates.create({
  businessAccountId: given.account,
  name: "order_ready",
  language: "id",
  category: "UTILITY",
  components: [{ type: "BODY", text: "Pesanan {{1}} siap diambil.", example: { bodyText: [["INV-1"]] } }],
});
const components = [{ type: "body", parameters: [{ type: "text", text: "INV-7" }] }];
const template = { name: "order_ready", language: { code: "id" }, components };
sent.push((await client.messages.sendTemplate({ ...to, template })).messages[0].id);
const listed = await client.templates.list({ businessAccountId: given.account });

const reaction = { messageId: received.messages[0].id, emoji: "👍" };
const reacted = (await client.messages.sendReaction({ ...to, reaction })).messages[0].id;
await client.messages.markRead({ phoneNumberId: given.number, messageId: received.messages[0].id });
await until(() => received.statuses.length === 3 * sent.length + 1);

for (const media of ["image", "video", "audio", "document"]) await write(media === "audio" ? undefined : "Lihat", { media });
await write(undefined, { button: { id: "yes", title: "Ya" } });
await until(() => received.messages.length === 6);

const others = given.kinds.filter(([name]) => name !== "preference");
for (const [name, text, content] of given.kinds) await write(text, { [name]: content });
for (const [name, content] of given.changes) {
  await write(undefined, { [name]: { messageId: received.messages[0].id, ...content } });
}
await until(() => received.messages.length === 6 + others.length + given.changes.length);
await until(() => received.fields.includes("userPreferences"));

const refusals = {};
for (const [name, recipient] of Object.entries({ undeliverable: "12015550110", pair: "12015550115", locked: "12015550134" })) {
  try {
    await client.messages.sendText({ ...to, to: recipient, body: "Halo" });
  } catch (error) {
    refusals[name] = [error.httpStatus ?? error.status, error.code];
  }
}
console.log(JSON.stringify({ ...received, sent, reacted, created, templates: listed.data.map((each) => each.name), refusals }));
server.close();
