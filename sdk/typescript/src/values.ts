/** Values that calls take, and how they travel. */

/** A value of a query. Lists are separated by commas; what is undefined or null is left out. */
export type QueryValue = string | number | boolean | Date | readonly string[] | null | undefined;

/** A file to upload: a Blob or File, its bytes, or its text. */
export type FileSource = Blob | ArrayBuffer | Uint8Array | string;

/** A file that was downloaded. */
export interface DownloadedFile {
  content: Uint8Array;
  contentType: string;
  filename: string | null;
}

const ANY_FILE = "application/octet-stream";
const TYPES_BY_SUFFIX: Record<string, string> = {
  csv: "text/csv",
  ndjson: "application/x-ndjson",
  jsonl: "application/x-ndjson",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

/** A path with ids in it: path`/customers/${id}`. */
export function path(parts: TemplateStringsArray, ...ids: (string | number)[]): string {
  for (const id of ids) {
    const isId = typeof id === "number" || (typeof id === "string" && id !== "" && id !== "." && id !== "..");
    if (!isId) throw new TypeError(`${JSON.stringify(id)} is not an id.`);
  }
  return String.raw({ raw: parts }, ...ids.map(encodeURIComponent));
}

export function encodeQuery(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query) as [string, QueryValue][]) {
    if (value !== undefined && value !== null) parameters.append(name, encodeValue(name, value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

function encodeValue(name: string, value: NonNullable<QueryValue>): string {
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== "object") return String(value);
  if (value.some((item) => item.includes(","))) {
    throw new TypeError(`A value of ${name} contains a comma, which separates the values.`);
  }
  return value.join(",");
}

/** The media type of an upload: the one that was passed, or that of the file. */
export function findContentType(file: FileSource, passed: string | undefined, accepted: readonly string[]): string {
  if (passed !== undefined) return passed;
  if (accepted.includes(ANY_FILE)) return ANY_FILE;
  const suffix = file instanceof Blob && "name" in file ? String(file.name).split(".").at(-1)!.toLowerCase() : "";
  const stated = file instanceof Blob ? file.type.split(";")[0]!.trim() : "";
  const found = [TYPES_BY_SUFFIX[suffix], stated].find((type) => type !== undefined && accepted.includes(type));
  if (found === undefined) throw new TypeError(`Pass contentType: one of ${accepted.join(", ")}.`);
  return found;
}
