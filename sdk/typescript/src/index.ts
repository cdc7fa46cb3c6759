/** The TypeScript client of Sapa. */

export * from "./api-error.ts";
export * from "./errors.ts";
export type * from "./events.ts";
export type * from "./types.ts";
export * from "./client.ts";
export * from "./paging.ts";
export type * from "./resources.ts";
export type { RequestOptions, UploadOptions } from "./transport.ts";
export type { DownloadedFile, FileSource } from "./values.ts";
export { type HeaderSource, InvalidWebhook, verifyWebhook } from "./webhooks.ts";
export { VERSION } from "./version.ts";
