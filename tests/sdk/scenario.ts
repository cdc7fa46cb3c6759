// A shop's day with the TypeScript SDK on a real server, over all domains.

import { type ApiError, CustomerExists, NotFound, Sapa, type Import } from "@sapa/client";

const sapa = new Sapa();

function check(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`not as expected: ${what}`);
}

async function collect<Item>(list: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of list) found.push(item);
  return found;
}

async function waitFor<Seen>(look: () => Promise<Seen | undefined>): Promise<Seen> {
  const deadline = Date.now() + 60_000;
  while (Date.now() < deadline) {
    const seen = await look();
    if (seen !== undefined) return seen;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("it did not happen in time");
}

// Customers
const customer = await sapa.customers.create({
  email: "ayu@example.com",
  phoneNumber: "0812-3456-789",
  tags: ["vip", "reseller"],
  addresses: [{ address1: "Jl. Melawai 8", city: "Jakarta" }],
  additionalData: { card: "A-17", visits: 12 },
});
check(customer.phoneNumber === "+628123456789", "the number");
const changed = await sapa.customers.update(customer.id, { lastName: "Lestari", firstName: null });
check(changed.lastName === "Lestari" && changed.tags.length === 2, "the update");
const upserted = await sapa.customers.upsert("shop/1042 ☕", { email: "budi@example.com" });
check(upserted.externalId === "shop/1042 ☕", "the external id");
const found = await collect(sapa.customers.list({ tags: ["vip", "reseller"], limit: 1 }));
check(found.length === 1 && found[0]?.id === customer.id, "the list by tags");
for (let number = 0; number < 5; number += 1) await sapa.customers.create({ email: `c${number}@example.com` });
check((await collect(sapa.customers.list({ limit: 2 }))).length === 7, "all pages");
const page = await sapa.customers.list({ limit: 2, page: 2, sort: "createdAt:asc" });
check(page.data.length === 2 && page.meta.page === 2 && page.meta.total === 7, "one page");
const error = await sapa.customers.create({ email: "ayu@example.com" }).catch((error: ApiError) => error);
check(error instanceof CustomerExists && error.details[0]?.id === customer.id, "the conflict");
const timeline = await collect(sapa.customers.timeline(customer.id, { limit: 1 }));
check(timeline.length >= 2, "the timeline");

// Products and orders
const product = await sapa.products.create({ name: "Kopi Gayo", variants: [{ title: "250 g", price: 85000.5 }] });
await sapa.products.update(product.id, { description: "From Aceh" });
const order = await sapa.orders.create({
  customer: { email: "ayu@example.com" },
  lineItems: [{ title: "Kopi Gayo", price: 85000.5, quantity: 2 }],
});
check(order.total === 170001, "the total");
check((await sapa.orders.list({ status: "active", customerId: customer.id })).data[0]?.id === order.id, "the orders");

// Payments, refunds, drafts and cash on delivery
await sapa.orders.recordPayment(order.id, { amount: 170001, method: "transfer", reference: "T-1" });
check((await sapa.orders.get(order.id)).financialStatus === "paid", "the payment");
await sapa.orders.fulfill(order.id);
check((await sapa.orders.refund(order.id, { amount: 0.5, reason: "Rounding" })).amount === 0.5, "the refund");
check((await collect(sapa.orders.listHistory(order.id, { limit: 1 }))).length >= 3, "the order's history");
const draft = await sapa.draftOrders.create({ lineItems: [{ title: "Kopi Toraja", price: 90000, quantity: 1 }] });
check((await sapa.draftOrders.complete(draft.id)).total === 90000, "the draft");
const settlement = await sapa.cashOnDelivery.createSettlement({
  provider: "aggregator_carrier",
  reference: "S-1",
  remittedAt: new Date(),
  lines: [{ parcel: "JNE-unknown", amount: 1000 }],
});
const [difference] = await collect(sapa.cashOnDelivery.listDifferences({ settlementId: settlement.id }));
check(difference?.kind === "unknown_parcel", "the difference");

// Loyalty, rewards and redemptions
await sapa.loyalty.updateSettings({ enabled: true });
for (const points of [100, 20, 30]) await sapa.loyalty.adjustPoints(customer.id, { direction: "add", points });
const history = await collect(sapa.loyalty.listHistory(customer.id, { limit: 1 }));
check(history.map((entry) => entry.pointsDelta).join() === "30,20,100", "the history");
const reward = await sapa.rewards.create({ rewardName: "Kopi", costToRedeem: 50, discountType: "free_shipping" });
const redeemed = await sapa.rewards.redeem(customer.id, {
  rewardOptionId: reward.id,
  rewardName: "Kopi",
  pointsCost: 50,
});
check((await sapa.redemptions.commit(redeemed.redemption.id)).status === "committed", "the redemption");
check((await collect(sapa.redemptions.list(customer.id, { limit: 1 }))).length === 1, "the redemptions");
check((await sapa.loyalty.checkLedger()).driftingWallets === 0, "the ledger");

// Shipping
check((await sapa.shipping.listProviders()).length > 0, "the providers");
check((await sapa.shipping.listProvinces()).length > 0, "the provinces");
const store = await sapa.storeLocations.create({ name: "Gudang", address: "Jl. Menteng Raya No. 21" });
await sapa.storeLocations.delete(store.id);
const party = { name: "Ayu", phone: "081234567890", address: "Jl. Melawai Raya No. 8, Kebayoran Baru" };
const shipment = await sapa.shipments.create({
  provider: "custom",
  serviceName: "Rider",
  fee: 10000,
  sender: party,
  delivery: party,
  orderId: order.id,
});
const printed = await sapa.shipments.getLabel(shipment.id);
check(new TextDecoder().decode(printed.content.slice(0, 4)) === "%PDF", "the label");
const batch = await sapa.shipments.createLabelBatch({ ids: [shipment.id] });
await waitFor(async () => (await sapa.shipments.getLabelBatch(batch.id)) ?? undefined);
check((await sapa.shipments.cancel(shipment.id)).shippingStatus === "cancelled", "the shipment");

// Messages and templates
const message = await sapa.messages.send({ to: "+12015550100", message: "Halo", sources: ["MSGAPP_CLOUD"] });
const buttons = { type: "buttons", body: "Cocok?", buttons: [{ id: "yes", title: "Ya" }] } as const;
await sapa.messages.sendInteractive({ to: "+12015550100", interactive: buttons, sources: "MSGAPP_CLOUD" });
const template = await sapa.templates.create({ name: "hello", language: "id", category: "UTILITY", body: "Halo {{1}}, apa kabar?" });
check((await sapa.templates.preview(template.id, { params: ["Ayu"] })).text.includes("Ayu"), "the preview");
await waitFor(async () => ((await sapa.messages.get(message.messageId2)).status === "read" ? true : undefined));
check((await collect(sapa.messages.listRequests({ limit: 1 }))).length === 2, "the requests");
check((await sapa.sandbox.listOutbox()).meta.total >= 2, "the outbox");
const pdf = new File(["%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"], "nota.pdf");
const attachment = await sapa.attachments.upload(pdf, {}, { contentType: "application/octet-stream" });
await sapa.messages.sendMedia({ to: "+12015550100", attachmentId: attachment.id, sources: "MSGAPP_CLOUD" });
check((await sapa.costs.export()).contentType.startsWith("text/csv"), "the costs");
check((await sapa.channelEvents.list()).meta.page === 1, "the channel events");

// Tickets, agents and analytics
const sender = `${crypto.randomUUID()}@example.com`;
await sapa.sandbox.receive({ source: "MAIL", from: sender, text: "Apakah masih ada?" });
const agent = await sapa.agents.create({ name: "Sari" });
const ticket = await waitFor(async () => (await sapa.tickets.list()).data.find((one) => one.clientNumber === sender));
await sapa.tickets.assign(ticket.id, { agentId: agent.id });
await sapa.tickets.reply(ticket.id, { agentId: agent.id, body: "Masih ada." });
const label = await sapa.labels.create({ name: crypto.randomUUID() });
const team = await sapa.teams.create({ name: crypto.randomUUID(), agentIds: [agent.id] });
const filed = await sapa.tickets.update(ticket.id, { labelIds: [label.id], teamId: team.id, priority: "high" });
check(filed.labelIds[0] === label.id && filed.teamId === team.id, "the filed ticket");
const saved = await sapa.savedReplies.create({ shortcut: crypto.randomUUID(), text: "Halo, saya {agen}." });
check((await sapa.savedReplies.fill(ticket.id, saved.id, { agentId: agent.id })).text === "Halo, saya Sari.", "the saved reply");
const tomorrow = new Date(Date.now() + 86_400_000);
const later = await sapa.scheduledReplies.create(ticket.id, { agentId: agent.id, body: "Sudah tiba?", sendAt: tomorrow });
check((await sapa.scheduledReplies.list(ticket.id))[0].id === later.id, "the reply that is sent later");
await sapa.scheduledReplies.delete(later.id);
await sapa.replyDrafts.set(ticket.id, agent.id, { body: "Sudah, Kak." });
check((await sapa.replyDrafts.list(ticket.id))[0].body === "Sudah, Kak.", "the draft");
await sapa.replyDrafts.delete(ticket.id, agent.id);
check((await sapa.agents.listMentions(agent.id)).meta.total === 0, "the mentions");
check((await sapa.views.create({ name: crypto.randomUUID(), filters: { priority: "high" } })).agentId === null, "the view");
check((await sapa.businessHours.get()).timeZone === "Asia/Jakarta", "the business hours");
await sapa.slaPolicies.delete((await sapa.slaPolicies.create({ name: crypto.randomUUID(), resolutionMinutes: 60 })).id);
const macro = await sapa.macros.create({ name: crypto.randomUUID(), reply: "Halo, saya {agen}." });
check((await sapa.macros.apply(ticket.id, macro.id, { agentId: agent.id })).ticket.id === ticket.id, "the macro");
check((await sapa.ratings.list({ ticketId: ticket.id })).meta.total === 0, "the ratings");
check((await sapa.tickets.resolve(ticket.id)).status === "resolved", "the ticket");
const now = Date.now();
const report = await sapa.analytics.agents({ startAt: new Date(now - 86_400_000), endAt: new Date(now + 86_400_000) });
check(report.records.some((record) => record.agent_id === agent.id), "the report");
check((await sapa.support.getSettings()) !== undefined, "the settings");

// Imports
const file = new File(["email\ncitra@example.com\nnot an address\n"], "customers.csv");
const upload = await sapa.imports.create(file, { resource: "customers" });
const done = await waitFor<Import>(async () => {
  const current = await sapa.imports.get(upload.id);
  return current.finishedAt === null ? undefined : current;
});
check(done.created === 1 && done.failed === 1, "the import");
check((await collect(sapa.imports.listErrors(upload.id)))[0]?.field === "email", "its errors");

// Management
check((await sapa.company.update({ timeZone: "Asia/Makassar" })).timeZone === "Asia/Makassar", "the company");
check((await sapa.channels.list()).length > 0 && (await sapa.carriers.list()).length > 0, "the connections");
const endpoint = await sapa.webhooks.createEndpoint({ url: "https://hooks.example.com/sapa" });
check((await sapa.webhooks.pauseEndpoint(endpoint.id)).status === "paused", "the webhook endpoint");
check(Array.isArray(await collect(sapa.webhooks.listDeliveries({ limit: 1 }))), "the deliveries");
const key = await sapa.apiKeys.create({ name: "reports", scopes: ["orders:READ"] });
await sapa.apiKeys.revoke(key.id);
await waitFor(async () => (await sapa.apiCalls.list({ route: "/customer/v1/company" })).data[0]);

check((await sapa.products.delete(product.id)) === undefined, "the deletion");
const gone = await sapa.products.get(product.id).catch((error: ApiError) => error);
check(gone instanceof NotFound && gone.requestId !== null, "what is gone");
console.log("done");
